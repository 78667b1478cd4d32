"""What SoX's echo, chorus and phaser share: delays in whole samples, and the slow waves that move them.

A modulated delay moves by whole samples, so it stands still for hundreds of samples at a time. `Sweep` keeps one period
of it as runs of constant delay, which lets a kernel work on slices instead of looking up every sample.
Facts from SoX 14.4.2 (its manual, and the program's output).
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Literal, NamedTuple

import numpy as np

Wave = Literal["sine", "triangle"]


class Sweep(NamedTuple):
    """One period of a modulated delay: run `i` holds `delays[i]` from `starts[i]` up to `starts[i + 1]`."""

    starts: np.ndarray  # int64, one longer than `delays`; the last one is the period
    delays: np.ndarray  # int64, whole samples


def whole_samples(duration_ms: float, rate: int) -> int:
    """A duration cut to whole samples, through the single precision in which SoX reads it."""
    return int(float(np.float32(duration_ms)) * rate / 1000)


def runs(delays: np.ndarray) -> Sweep:
    """One period of delays, sample by sample, as runs of equal values."""
    edges = np.flatnonzero(np.diff(delays)) + 1
    starts = np.concatenate(([0], edges, [len(delays)])).astype(np.int64)
    return Sweep(starts, np.ascontiguousarray(delays[starts[:-1]], dtype=np.int64))


@lru_cache(maxsize=64)
def oscillator(wave: Wave, period: int, low: float, high: float, phase: float) -> np.ndarray:
    """One period of a wave between `low` and `high`, in whole numbers; it starts `phase` of a period late."""
    points = (np.arange(period) + int(phase * period + 0.5)) % period
    if wave == "triangle":  # from the middle up, down through the middle, and back
        turns = points * 2 / period
        quarter = 4 * points // period
        unit = np.select([quarter == 0, quarter <= 2], [turns + 0.5, 1.5 - turns], turns - 1.5)
    else:  # the C library's sine: NumPy's own differs in the last bit between processors
        unit = (np.array([math.sin(point / period * 2 * math.pi) for point in points.tolist()]) + 1) / 2
    value = unit * (high - low) + low
    return np.trunc(value + np.where(value < 0, -0.5, 0.5)).astype(np.int64)
