"""Recordings drawn from a bank, and rooms by severity.

Those on disk are decoded once, and no more of them than a clip needs. Rooms have four severities:
equal-width bins over the rooms' reverberance, bin 1 the driest.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from pathlib import Path
from typing import Protocol

import numpy as np
import soundfile

from speech_robust_bench.core.audio import RATE, Samples, read
from speech_robust_bench.core.errors import UserError

SEVERITIES = 4
CACHE_BYTES = 256 * 2**20
# A long file is decoded in steps of this many samples, so that clips of many lengths share one cached prefix.
PREFIX = 30 * RATE


@dataclass(frozen=True, eq=False)
class Recording:
    """A recording as drawn: mono float32 at 16 kHz, read-only because banks share it between clips.

    `name` is the file's path inside its bank, or starts with `builtin/`. `measures` holds what is known about it and
    worth a place in the row's parameters (`rt60_s`, `srmr`).
    """

    name: str
    samples: Samples
    measures: Mapping[str, float] = field(default_factory=dict)


class RecordingBank(Protocol):
    """A bank. Noise-like banks ignore `severity`, rooms need it; `clip` is the speech that the recording is for."""

    @property
    def kind(self) -> str:
        """Which bank of the scenario table this is."""

    @property
    def title(self) -> str:
        """Where the recordings come from, for cards and listings."""

    def draw(self, rng: np.random.Generator, *, clip: Samples, severity: int) -> Recording:
        """One recording; the start of it at least as long as the clip, or the whole of it where it is shorter."""


def frozen(samples: np.ndarray) -> Samples:
    """Contiguous float32 that nobody can write to."""
    samples = np.ascontiguousarray(samples, dtype=np.float32)
    samples.setflags(write=False)
    return samples


class ByteCache:
    """Least recently used recordings, bounded by their bytes."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.bytes = 0
        self._entries: OrderedDict[tuple, Samples] = OrderedDict()

    def get(self, key: tuple) -> Samples | None:
        samples = self._entries.get(key)
        if samples is not None:
            self._entries.move_to_end(key)
        return samples

    def put(self, key: tuple, samples: Samples) -> None:
        self._entries[key] = samples
        self.bytes += samples.nbytes
        while self.bytes > self.limit and len(self._entries) > 1:
            self.bytes -= self._entries.popitem(last=False)[1].nbytes


# One for the process, so that a worker with eight banks open is bounded as well as one with a single bank.
_cache = ByteCache(CACHE_BYTES)


def decode(path: Path, needed: int | None = None) -> Samples:
    """Channel 0 of a file at 16 kHz: all of it, or a prefix of at least `needed` samples."""
    # Whole steps of PREFIX; the numbers that come out of the prefix are those of the whole file.
    limit = None if needed is None else -(-max(needed, 1) // PREFIX) * PREFIX
    try:
        stat = path.stat()
    except OSError:
        return read(path, mix=False)  # which names the missing file
    key = (str(path), stat.st_mtime_ns, stat.st_size, limit)
    samples = _cache.get(key)
    if samples is None:
        samples = frozen(_decode_prefix(path, limit))
        if not len(samples):
            raise UserError(f"{path}: holds no samples; take it out of the bank")
        _cache.put(key, samples)
    return samples


def _decode_prefix(path: Path, limit: int | None) -> Samples:
    if limit is not None:
        try:
            with soundfile.SoundFile(path) as file:
                # Resampling a prefix would change the samples near its end, so other rates are read whole.
                if file.samplerate == RATE and file.frames > limit:
                    prefix = file.read(limit, dtype="float32", always_2d=True)[:, 0]
                    if np.isfinite(prefix).all():
                        return prefix
        except soundfile.LibsndfileError:
            pass  # reading the whole file says what is wrong with it
    return read(path, mix=False)


def severities(values: Sequence[float], low: float | None = None, high: float | None = None) -> list[int]:
    """The severity (1 to 4) of each value: equal-width bins, closed above, from the least value to the greatest."""
    low = min(values) if low is None else low
    high = max(values) if high is None else high
    if not high > low:
        return [1] * len(values)
    return [min(max(ceil(SEVERITIES * (value - low) / (high - low)), 1), SEVERITIES) for value in values]


def by_rank(values: Sequence[float]) -> list[list[int]]:
    """Quarters by rank: for each severity the indices that belong to it, neighbours shared where there are too few."""
    order = sorted(range(len(values)), key=lambda i: (values[i], i))
    count = len(order)
    return [
        order[(severity - 1) * count // SEVERITIES : ceil(severity * count / SEVERITIES)]
        for severity in range(1, SEVERITIES + 1)
    ]


@dataclass(frozen=True)
class Bins:
    """Which rooms have which severity, and how that was decided: by equal widths, or by rank."""

    members: tuple[tuple[int, ...], ...]
    rule: str

    def draw(self, rng: np.random.Generator, severity: int) -> int:
        """The index of one room of a severity."""
        if not 1 <= severity <= SEVERITIES:
            raise UserError(f"severity {severity}: rooms have severities 1 to {SEVERITIES}")
        members = self.members[severity - 1]
        return members[int(rng.integers(len(members)))]


def bins(reverberance: Sequence[float], low: float | None = None, high: float | None = None) -> Bins:
    """Equal-width bins, or quarters by rank where those would leave a severity without a room.

    A user's folder may hold three rooms, or thirty alike: every severity must draw something, and the order of the
    severities must hold. `rule` says which it is.
    """
    levels = severities(reverberance, low, high)
    members = [[i for i, level in enumerate(levels) if level == s] for s in range(1, SEVERITIES + 1)]
    if all(members):
        return Bins(tuple(map(tuple, members)), "equal-width bins")
    return Bins(tuple(map(tuple, by_rank(reverberance))), "quarters by rank")
