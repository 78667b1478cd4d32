"""Recognisers for the tests, reached as `python:support.standin:<name>`."""

from __future__ import annotations

import os
import time

import numpy as np

transcribed = 0  # by slow_count in this process


def number_of(clip: np.ndarray) -> int:
    """Which clip this is: small_configs.tone writes it into every sample."""
    return round(float(clip[0]) * 1024)


def count(clips, rate, language):
    """Says the number of each clip."""
    return [f"clip {number_of(clip)} in {language}" for clip in clips]


def slow_count(clips, rate, language):
    """The same, slowly enough to be killed; after as many clips as STANDIN_CLIPS allows, it waits for the kill."""
    global transcribed
    if transcribed + len(clips) > int(os.environ.get("STANDIN_CLIPS", "1000000")):
        time.sleep(3600)
    transcribed += len(clips)
    time.sleep(0.02)
    return count(clips, rate, language)


def at_once(clips, rate, language):
    """No work at all."""
    return [""] * len(clips)


def fails_on_seven(clips, rate, language):
    """Cannot bear clip 7, alone or in company."""
    if any(number_of(clip) == 7 for clip in clips):
        raise ValueError("seven\nis too much")
    return count(clips, rate, language)


class SmallMemory:
    """Holds at most one second of padded audio."""

    revision = "2"
    options = {"memory_s": 1}  # noqa: RUF012
    calls: list[int] = []  # noqa: RUF012
    too_big: list[int] = []  # noqa: RUF012

    def transcribe(self, clips, rate, language):
        if len(clips) > 1 and len(clips) * max(map(len, clips)) > rate:
            self.too_big.append(len(clips))
            raise RuntimeError("CUDA out of memory. Tried to allocate 2 GiB")
        self.calls.append(len(clips))
        return count(clips, rate, language)


def broken(clips, rate, language):
    """Never works."""
    raise OSError("no such device")


def forgets_one(clips, rate, language):
    """Returns too few texts for a batch of several."""
    return count(clips, rate, language)[: max(1, len(clips) - 1)]
