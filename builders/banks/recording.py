"""Recordings drawn from a bank, and how reverberant a room is: RT60, from its size and walls or its response, and SRMR.

Recordings on disk are decoded once, and no more of them than a clip needs. Rooms have four severities: equal-width bins
over the rooms' reverberance, bin 1 the driest.

SRMR, the speech-to-reverberation modulation energy ratio, is high for dry speech and low for reverberant speech. Falk,
Zheng and Chan (2010), with the parameters of Santos, Senoussaoui and Falk (2014): 23 gammatone channels from 125 Hz,
Hilbert envelopes, 8 modulation filters from 4 to 128 Hz with Q = 2, frames of 256 ms every 64 ms; the energy in the
four slow modulation bands over that in the fast ones, up to the band that the 90 % bandwidth of the speech reaches.
The gammatone filters are Slaney's (1993) on Glasberg and Moore's ERB scale.

A room has no speech of its own, so `room_srmr` measures a fixed synthetic utterance as heard in the room, prepared as
the scenario prepares it.
"""

from __future__ import annotations

import csv
import hashlib
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import resources
from math import ceil
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np
import scipy.fft
import soundfile

from speech_robust_bench.builders.banks.synthesis import as_recorded, band, coloured, frozen, seeded
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

    @property
    def stand_in(self) -> bool:
        """Whether they were synthesised to stand in for the paper's recordings."""

    def draw(self, rng: np.random.Generator, *, clip: Samples, severity: int) -> Recording:
        """One recording; the start of it at least as long as the clip, or the whole of it where it is shorter."""


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


class Material(NamedTuple):
    """What went into a config (noises, rooms or voices), and whether it stands in for what the paper used."""

    title: str
    stand_in: bool


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


CHANNELS = 23
LOWEST_HZ = 125.0
EAR_Q, MIN_BANDWIDTH_HZ = 9.26449, 24.7
MODULATION_HZ = 4.0 * 32.0 ** (np.arange(8) / 7)  # 4 to 128 Hz, evenly in the logarithm
MODULATION_Q = 2.0
FRAME_S, HOP_S = 0.256, 0.064


def srmr(samples: Samples, rate: int = RATE) -> float:
    """The ratio for one clip of speech. A clip without any modulation energy (silence) has none: NaN."""
    energy = _modulation_energy(np.asarray(samples, dtype=np.float64), rate)
    total = energy.sum()
    if not total > 0:
        return float("nan")
    # The bandwidth of the channel below which 90 % of the energy lies decides which modulation bands count.
    cumulative = np.cumsum(energy.sum(axis=1)) / total
    bandwidth_hz = _erb_hz(_centres_hz(rate))[int(np.argmax(cumulative > 0.9))]
    bands = 4 + int(np.sum(bandwidth_hz >= _lower_cutoffs_hz(rate)[4:]))
    return float(energy[:, :4].sum() / energy[:, 4:bands].sum())


def _centres_hz(rate: int) -> np.ndarray:
    """Channel centres, low to high, evenly spaced on the ERB scale below half the rate."""
    offset = EAR_Q * MIN_BANDWIDTH_HZ
    steps = np.arange(CHANNELS, 0, -1) / CHANNELS
    return (rate / 2 + offset) * ((LOWEST_HZ + offset) / (rate / 2 + offset)) ** steps - offset


def _erb_hz(hz: np.ndarray) -> np.ndarray:
    return hz / EAR_Q + MIN_BANDWIDTH_HZ


def _lower_cutoffs_hz(rate: int) -> np.ndarray:
    """The lower 3 dB point of each modulation filter."""
    return MODULATION_HZ - np.tan(np.pi * MODULATION_HZ / rate) / MODULATION_Q * rate / (2 * np.pi)


def _gammatone(centre_hz: float, rate: int) -> np.ndarray:
    """Four second-order sections that share a pole pair, with unit gain at the centre (Slaney 1993)."""
    angle = 2 * np.pi * centre_hz / rate
    radius = np.exp(-2 * np.pi * 1.019 * _erb_hz(np.asarray(centre_hz)) / rate)
    poles = [1.0, -2 * radius * np.cos(angle), radius**2]
    zeros = [np.cos(angle) + s * np.sqrt(3 + t * 2**1.5) * np.sin(angle) for t in (1, -1) for s in (1, -1)]
    sections = np.array([[1.0, -radius * zero, 0.0, *poles] for zero in zeros])
    turn = np.exp(-1j * angle * np.arange(3))
    gains = np.abs((sections[:, :3] * turn).sum(axis=1) / (sections[:, 3:] * turn).sum(axis=1))
    sections[:, :3] /= gains[:, None]
    return sections


def _modulation_filter(hz: float, rate: int) -> np.ndarray:
    """A second-order band-pass by the bilinear transform."""
    w = np.tan(np.pi * hz / rate)
    b = w / MODULATION_Q
    return np.array([[b, 0.0, -b, 1 + b + w * w, 2 * w * w - 2, 1 - b + w * w]]) / (1 + b + w * w)


@lru_cache(maxsize=4)
def _filters(rate: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
    ear = [_gammatone(float(hz), rate) for hz in _centres_hz(rate)]
    return ear, [_modulation_filter(float(hz), rate) for hz in MODULATION_HZ]


def _modulation_energy(samples: np.ndarray, rate: int) -> np.ndarray:
    """Mean energy a frame, channels by modulation bands."""
    from scipy.signal import sosfilt  # takes a second to import, and most commands filter nothing

    frame, hop = int(np.ceil(FRAME_S * rate)), int(np.ceil(HOP_S * rate))
    if len(samples) < frame:
        samples = np.pad(samples, (0, frame - len(samples)))
    frames = 1 + (len(samples) - frame) // hop
    # The mean over Hamming-windowed, overlapping frames is one weighted sum over the clip.
    window = np.square(np.hamming(frame + 1)[:-1])
    weights = np.zeros(len(samples))
    for start in range(0, frames * hop, hop):
        weights[start : start + frame] += window
    weights /= frames

    ear, modulation = _filters(rate)
    size = scipy.fft.next_fast_len(len(samples))
    one_sided = np.zeros(size)
    one_sided[0], one_sided[1 : (size + 1) // 2] = 1, 2
    if size % 2 == 0:
        one_sided[size // 2] = 1
    energy = np.empty((CHANNELS, len(MODULATION_HZ)))
    for channel, sections in enumerate(ear):
        band = sosfilt(sections, samples)
        envelope = np.abs(scipy.fft.ifft(scipy.fft.fft(band, size) * one_sided)[: len(samples)])
        for i, section in enumerate(modulation):
            energy[channel, i] = np.sum(np.square(sosfilt(section, envelope)) * weights)
    return energy


# Peterson and Barney's (1952) average formants of women, Hz. A voice above 200 Hz keeps its pitch pulses out of the
# modulation bands, where they would pass for reverberation.
_VOWELS = (
    (310, 2790, 3310),
    (610, 2330, 2990),
    (860, 2050, 2850),
    (850, 1220, 2810),
    (590, 920, 2710),
    (370, 950, 2670),
)


@lru_cache(maxsize=1)
def utterance() -> Samples:
    """About three seconds of nonsense syllables: a falling voice in changing vowels, fricatives and pauses."""
    rng = seeded("utterance")
    out = [np.zeros(800)]
    for i in range(14):
        length = int(rng.uniform(0.10, 0.19) * RATE)
        fricative = coloured(rng, band(2500, 6500), int(rng.uniform(0.03, 0.07) * RATE))
        out.append(0.04 * fricative * np.hanning(len(fricative)))
        vowels = np.array(_VOWELS)[rng.choice(len(_VOWELS), 2)]
        out.append(_vowel(vowels, length, 230 - 2 * i + rng.uniform(-8, 8), rng))
        out.append(np.zeros(int((0.22 if i % 5 == 4 else rng.uniform(0.02, 0.05)) * RATE)))
    return as_recorded(np.concatenate(out), peak=0.5)


def _vowel(formants_hz: np.ndarray, length: int, pitch_hz: float, rng: np.random.Generator) -> np.ndarray:
    """A voiced syllable that glides between two vowels: harmonics weighed by formants, and breath."""
    glide = np.linspace(0, 1, length)
    phase = 2 * np.pi * np.cumsum(pitch_hz * (1 - 0.08 * glide)) / RATE
    out = np.zeros(length)
    for harmonic in range(1, int(4000 / pitch_hz)):
        hz = harmonic * pitch_hz
        gains = (1 / (1 + ((hz - formants_hz) / np.array([45, 55, 75])) ** 2) * np.array([1.0, 0.8, 0.6])).sum(axis=1)
        out += (gains[0] + (gains[1] - gains[0]) * glide + 0.01) / np.sqrt(harmonic) * np.sin(harmonic * phase)
    out += 0.25 * out.std() * coloured(rng, band(300, 5000), length)
    rise = np.minimum(1, np.minimum(np.arange(length), np.arange(length, 0, -1)) / (0.03 * RATE))
    return out * rise**2


_measured: dict[bytes, float] = {}


def room_srmr(rir: Recording) -> float:
    """The SRMR of the fixed utterance heard in a room; kept for the process by the response's content."""
    from speech_robust_bench.builders.perturb.environment import convolve, prepare

    key = hashlib.blake2b(rir.samples.tobytes(), digest_size=16).digest()
    if key not in _measured:
        _measured[key] = srmr(convolve(utterance(), prepare(rir, RATE)))
    return _measured[key]


SABINE_S_M = 0.161


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
