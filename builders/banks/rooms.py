"""Rooms by severity: four equal-width bins over the rooms' reverberance, bin 1 the driest.

Simulated rooms are ordered by RT60, from the data set's `room_info` by Sabine's formula; real rooms by SRMR, from high
to low (paper, Appendix A), from the table that was measured for the benchmark's published data.
"""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from math import ceil
from pathlib import Path

import numpy as np

from speech_robust_bench.builders.recording import SEVERITIES, Recording, decode
from speech_robust_bench.core.audio import RATE, Samples
from speech_robust_bench.core.errors import UserError

SABINE_S_M = 0.161
# The SRMR range of the published data. Its lower end is a recording of noise that stood in the authors' list of rooms
# (RWCP_type5_noise_cirline_ofc_ambient2.wav). We leave such recordings out but keep the range, so that every real room
# has the severity that it has there.
PUBLISHED_SRMR = (0.478, 11.159)


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


def sabine_rt60_s(size_m: Sequence[float], absorption: float) -> float:
    """RT60 of a shoebox room whose walls all absorb alike: 0.161 V / (S a)."""
    x, y, z = size_m
    return SABINE_S_M * x * y * z / (2 * (x * y + y * z + z * x) * absorption)


def read_room_info(path: Path) -> dict[str, float]:
    """RT60 by room (`Room001`) from a `room_info` of OpenSLR 28.

    A line is: room (`small-Room001`), length, width, height, the receiver's x, y, z, and the absorption coefficient.
    Lines of another shape (headings, comments) are passed over.
    """
    rooms = {}
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        room, *fields = line.replace(",", " ").split() or [""]
        try:
            length, width, height, *_, absorption = map(float, fields)
        except ValueError:
            continue
        if min(length, width, height, absorption) > 0:
            rooms[room.rsplit("-", 1)[-1]] = sabine_rt60_s((length, width, height), absorption)
    return rooms


def schroeder_rt60_s(response: Samples, rate: int = RATE) -> float:
    """RT60 of a response by Schroeder's backward integration: the slope from -5 to -25 dB, carried on to -60 dB."""
    energy = np.cumsum(np.square(response[::-1], dtype=np.float64))[::-1]
    if not len(energy) or not energy[0] > 0:
        return 0.0
    start, end = (int(np.sum(energy > energy[0] * 10 ** (limit_db / 10))) for limit_db in (-5, -25))
    return 60 / 20 * (end - start) / rate


@lru_cache(maxsize=1)
def published_srmr() -> dict[str, float]:
    """The SRMR of each real room of OpenSLR 28, by file name."""
    table = resources.files("speech_robust_bench.builders").joinpath("data/real_rir_srmr.csv")
    with table.open(encoding="utf-8") as file:
        return {row["filename"]: float(row["srmr"]) for row in csv.DictReader(file)}


_rt60s: dict[bytes, float] = {}


def measured_rt60_s(response: Samples) -> float:
    """Schroeder's RT60, kept for the process by the response's content."""
    key = hashlib.blake2b(response.tobytes(), digest_size=16).digest()
    if key not in _rt60s:
        _rt60s[key] = schroeder_rt60_s(response)
    return _rt60s[key]


@dataclass(frozen=True)
class FolderRooms:
    """A folder of room impulse responses, each with its reverberance in `measure` (`rt60_s` or `srmr`)."""

    kind: str
    title: str
    root: Path
    files: tuple[str, ...]
    measure: str
    values: tuple[float, ...]
    bins: Bins

    def draw(self, rng: np.random.Generator, *, clip: Samples, severity: int) -> Recording:
        index = self.bins.draw(rng, severity)
        name = self.files[index]
        return Recording(name, decode(self.root / name), {self.measure: round(self.values[index], 3)})


def simulated_rooms(kind: str, title: str, root: Path, files: tuple[str, ...]) -> FolderRooms:
    """Rooms by RT60: from `room_info` where there is one above the room's folder, else measured on the response."""
    info: dict[Path, dict[str, float]] = {}
    values = []
    for name in files:
        path = root / name
        above = path.parent.parent
        if above not in info:
            listing = above / "room_info"
            info[above] = read_room_info(listing) if listing.is_file() else {}
        known = info[above].get(path.parent.name)
        values.append(measured_rt60_s(decode(path)) if known is None else known)
    return FolderRooms(kind, title, root, files, "rt60_s", tuple(values), bins(values))


def real_rooms(kind: str, title: str, root: Path, files: tuple[str, ...]) -> FolderRooms:
    """Rooms by SRMR: from the published table by file name, else measured on a fixed utterance."""
    from speech_robust_bench.builders.banks.srmr import room_srmr

    table = published_srmr()
    values, listed = [], False
    for name in files:
        known = table.get(Path(name).name)
        listed = listed or known is not None
        values.append(room_srmr(Recording(name, decode(root / name))) if known is None else known)
    low, high = (-PUBLISHED_SRMR[1], -PUBLISHED_SRMR[0]) if listed else (None, None)
    return FolderRooms(kind, title, root, files, "srmr", tuple(values), bins([-v for v in values], low, high))
