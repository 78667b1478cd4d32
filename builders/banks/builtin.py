"""The built-in bank, which needs no files. Its names start with `builtin/`, so that a row shows what it was made with.

Each noise scenario has its own noises, after the character of the data set it stands in for: offices and streets
(MS-SNSD), single sounds of nature and machines (ESC-50), signals and technical noise (MUSAN), public places (WHAM!).
Speech is babble made of the clip itself.

Rooms are simulated shoeboxes. The direct sound and the early reflections come from the image-source method (Allen and
Berkley, 1979). After the mixing time the images are too dense to tell apart, and the rest is what they amount to on
average: Gaussian noise whose energy is c / (4 pi V) a second, falling by 60 dB in the room's RT60. Walls absorb as
Eyring's formula asks for that RT60, so that both parts decay alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import scipy.fft

from speech_robust_bench.builders.banks.recording import Bins, Recording, RecordingBank, bins
from speech_robust_bench.builders.banks.synthesis import PIECES, as_recorded, frozen, music, noise, seeded
from speech_robust_bench.builders.perturb.signal_kernels import add_talker
from speech_robust_bench.core.audio import RATE, Samples

SPEED_M_S = 343.0
MIXING_S = 0.04
# The scenario drops the first 10 ms of a response, a lead-in that recordings have: the direct sound arrives after it.
LEAD_IN_S = 0.0105
TAPS = 32


@dataclass(frozen=True)
class Room:
    """One source and one microphone in a

    `low_rt60` and `high_rt60` are the RT60 below 300 Hz and above 2.5 kHz, as ratios to that of the middle.
    """

    name: str
    size_m: tuple[float, float, float]
    rt60_s: float
    distance_m: float
    low_rt60: float = 1.0
    high_rt60: float = 1.0
    srmr: float | None = None

    @property
    def volume_m3(self) -> float:
        return self.size_m[0] * self.size_m[1] * self.size_m[2]

    @property
    def surface_m2(self) -> float:
        x, y, z = self.size_m
        return 2 * (x * y + y * z + z * x)


@lru_cache(maxsize=64)
def response(room: Room) -> Samples:
    """The room's impulse response, synthesised at its first use."""
    rng = seeded(f"room/{room.name}")
    early = _images(room, rng)
    late = _tail(room, rng, len(early))
    mixing = round((LEAD_IN_S + MIXING_S + room.distance_m / SPEED_M_S) * RATE)
    ramp = np.clip((np.arange(len(early)) - mixing) / (0.01 * RATE), 0, 1)
    return as_recorded(early * np.sqrt(1 - ramp) + late * np.sqrt(ramp), peak=0.9)


def _images(room: Room, rng: np.random.Generator) -> np.ndarray:
    """Direct sound and reflections up to shortly after the mixing time, each at its fractional delay."""
    size = np.array(room.size_m)
    source, microphone = _positions(room, rng)
    reach_m = room.distance_m + (MIXING_S + 0.012) * SPEED_M_S
    counts = [np.arange(-n, n + 1) for n in np.ceil(reach_m / (2 * size)).astype(int) + 1]
    offsets, bounces = [], []
    for axis in range(3):  # along each axis: 2nL + s, even bounces; 2nL - s, odd bounces
        n = counts[axis]
        offsets.append(np.concatenate([2 * n * size[axis] + source[axis], 2 * n * size[axis] - source[axis]]))
        bounces.append(np.concatenate([np.abs(2 * n), np.abs(2 * n - 1)]))
        offsets[axis] -= microphone[axis]
    squared = np.square(offsets[0])[:, None, None] + np.square(offsets[1])[:, None] + np.square(offsets[2])[None, None]
    reflections = bounces[0][:, None, None] + bounces[1][:, None] + bounces[2][None, None]
    near = squared < reach_m**2
    distance_m, order = np.sqrt(squared[near]), reflections[near]
    # Eyring: absorption 1 - exp(-a) with a from Sabine; amplitude keeps the square root of what is not absorbed
    log_amplitude = -0.5 * 0.161 * room.volume_m3 / (room.surface_m2 * room.rt60_s)
    amplitude = np.exp(log_amplitude * order) / (4 * np.pi * distance_m)
    # Real walls are rough: reflections of either sign do not pile up at low frequencies as perfect mirrors do.
    signs = np.where(order == 0, 1.0, rng.choice([-1.0, 1.0], size=len(order)))
    return _place(room, distance_m / SPEED_M_S, amplitude * signs)


def _positions(room: Room, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """A microphone near the middle and a source at the asked distance, both inside."""
    size = np.array(room.size_m)
    microphone = size * rng.uniform(0.4, 0.6, 3)
    while True:
        direction = rng.standard_normal(3) * (1, 1, 0.2)
        source = microphone + room.distance_m * direction / np.sqrt(np.sum(direction**2))
        if np.all(source > 0.2) and np.all(source < size - 0.2):
            return source, microphone


def _place(room: Room, delay_s: np.ndarray, amplitude: np.ndarray) -> np.ndarray:
    """Impulses at fractional delays, as Hann-windowed sincs; the lead-in replaces the flight of the direct sound."""
    first = delay_s.min()
    at = (delay_s - first + LEAD_IN_S) * RATE
    taps = np.arange(-TAPS // 2, TAPS // 2 + 1)
    whole = np.floor(at).astype(int)
    x = taps[None, :] - (at - whole)[:, None]
    kernel = np.sinc(x) * np.cos(np.pi * x / (TAPS + 3)) ** 2
    length = round((LEAD_IN_S + 1.1 * max(room.rt60_s * max(room.low_rt60, 1.0), 0.1)) * RATE)
    out = np.zeros(max(length, int(whole.max()) + TAPS))
    np.add.at(out, whole[:, None] + taps[None, :], amplitude[:, None] * kernel)
    return out


def _tail(room: Room, rng: np.random.Generator, length: int) -> np.ndarray:
    """The dense part: noise in three bands, each with its own RT60."""
    flight_s = room.distance_m / SPEED_M_S
    time_s = np.arange(length) / RATE - LEAD_IN_S + flight_s
    spectrum = scipy.fft.rfft(rng.standard_normal(length))
    hz = scipy.fft.rfftfreq(length, 1 / RATE)
    low = 1 / (1 + (hz / 300) ** 4)
    high = 1 - 1 / (1 + (hz / 2500) ** 4)
    level = np.sqrt(SPEED_M_S / (4 * np.pi * room.volume_m3 * RATE))
    bands = ((low, room.low_rt60), (1 - low - high, 1.0), (high, room.high_rt60))
    return sum(  # type: ignore[return-value]
        level * scipy.fft.irfft(spectrum * gain, length) * np.exp(-6.908 * time_s / (room.rt60_s * ratio))
        for gain, ratio in bands
    )


def _simulated() -> tuple[Room, ...]:
    """24 rooms, six in each of four equal-width RT60 bins, whose means are those of the paper: 0.27 to 1.33 s."""
    small, medium, large = (4.2, 3.4, 2.6), (8.0, 6.0, 3.0), (16.0, 11.0, 4.5)
    rt60s = {
        small: (0.10, 0.18, 0.26, 0.30, 0.36, 0.42),
        medium: (0.48, 0.52, 0.56, 0.60, 0.64, 0.68, 0.86, 0.92, 0.97),
        large: (1.02, 1.06, 1.11, 1.19, 1.24, 1.29, 1.35, 1.41, 1.50),
    }
    rooms: list[Room] = []
    for size, values in rt60s.items():
        for i, rt60_s in enumerate(values):
            x, y, z = (round(side * (0.85 + 0.05 * ((3 * i + axis) % 7)), 2) for axis, side in enumerate(size))
            distance_m = round((0.35 + 0.05 * (i % 3)) * min(x, y), 2)
            rooms.append(Room(f"builtin/room-{len(rooms) + 1:02d}", (x, y, z), rt60_s, distance_m))
    return tuple(rooms)


SIMULATED = _simulated()


def _furnished(name: str, size_m: tuple[float, float, float], rt60_s: float, distance_m: float, srmr: float) -> Room:
    """A room as they are: its bass rings longer and its treble shorter than the middle."""
    return Room(f"builtin/{name}", size_m, rt60_s, distance_m, low_rt60=1.25, high_rt60=0.7, srmr=srmr)


# The stand-ins for real rooms, with their SRMR as `srmr.room_srmr` measures it (the tests measure it again), so that
# opening the bank costs nothing. Bin means are about 8.9, 7.0, 4.9 and 2.3.
FURNISHED = (
    _furnished("office-1", (3.4, 2.8, 2.5), 0.3, 0.3, 9.597),
    _furnished("lounge-1", (5.5, 4.0, 2.7), 0.45, 0.3, 9.599),
    _furnished("meeting-1", (9.0, 6.0, 3.2), 0.3, 1.6, 6.864),
    _furnished("lecture-1", (18.0, 12.0, 5.0), 1.0, 0.8, 7.993),
    _furnished("office-2", (3.4, 2.8, 2.5), 0.3, 0.8, 6.742),
    _furnished("lounge-2", (5.5, 4.0, 2.7), 0.3, 1.6, 9.297),
    _furnished("lounge-3", (5.5, 4.0, 2.7), 0.7, 0.3, 7.97),
    _furnished("meeting-2", (9.0, 6.0, 3.2), 0.45, 0.8, 6.842),
    _furnished("lecture-2", (18.0, 12.0, 5.0), 0.45, 1.6, 9.623),
    _furnished("hall-1", (30.0, 16.0, 9.0), 0.7, 3.0, 7.547),
    _furnished("office-3", (3.4, 2.8, 2.5), 0.7, 0.3, 4.492),
    _furnished("stairway-1", (5.5, 4.0, 2.7), 1.6, 0.3, 4.732),
    _furnished("meeting-3", (9.0, 6.0, 3.2), 0.7, 0.8, 7.926),
    _furnished("lecture-3", (18.0, 12.0, 5.0), 1.0, 1.6, 5.779),
    _furnished("lecture-4", (18.0, 12.0, 5.0), 0.7, 3.0, 4.756),
    _furnished("hall-2", (30.0, 16.0, 9.0), 1.0, 3.0, 4.564),
    _furnished("stairway-2", (5.5, 4.0, 2.7), 2.4, 1.6, 2.079),
    _furnished("stairway-3", (5.5, 4.0, 2.7), 2.4, 0.8, 2.178),
    _furnished("meeting-4", (9.0, 6.0, 3.2), 2.4, 1.6, 2.091),
    _furnished("lecture-5", (18.0, 12.0, 5.0), 1.6, 5.0, 2.12),
    _furnished("hall-3", (30.0, 16.0, 9.0), 2.4, 5.0, 2.393),
    _furnished("hall-4", (30.0, 16.0, 9.0), 2.4, 3.0, 3.041),
)


TALKERS = 3
# Speeds as ratios: below 1 the talker is slower and lower than the clip's own voice, above 1 faster and higher.
SPEEDS = ((4, 5), (7, 8), (8, 7), (5, 4))


def babble(clip: Samples, rng: np.random.Generator) -> Samples:
    """As many samples as the clip has, of three other talkers at once; an empty or silent clip gives silence."""
    speeds = rng.permutation(SPEEDS)[:TALKERS].tolist()
    offsets = rng.random(TALKERS).tolist()
    backwards = int(rng.integers(TALKERS))
    out = np.zeros(len(clip), dtype=np.float32)
    if not len(clip):
        return out
    for talker, ((up, down), offset) in enumerate(zip(speeds, offsets, strict=True)):
        voice = clip[::-1] if talker == backwards else clip
        weights = (np.arange(down) / down).astype(np.float32)
        add_talker(out, np.ascontiguousarray(voice, dtype=np.float32), weights, up, int(offset * len(clip)))
    return out


NOISES = {
    "noise": ("fan", "footsteps", "keyboard", "pink", "traffic", "vacuum", "wind"),
    "noise_esc50": ("birds", "clock", "engine", "fire", "rain", "siren", "waves", "wind"),
    "noise_musan": ("alarm", "dial_tone", "footsteps", "hum", "rumble", "static", "vacuum"),
    "noise_wham": ("cafe", "engine", "murmur", "pink", "traffic", "train"),
}
TITLE = "built-in bank (synthesised)"


@dataclass(frozen=True)
class BuiltinNoises:
    """Synthesised noises, each made at its first draw."""

    kind: str
    title: str = TITLE
    stand_in: bool = True

    def draw(self, rng: np.random.Generator, *, clip: Samples, severity: int) -> Recording:
        names = NOISES[self.kind]
        name = names[int(rng.integers(len(names)))]
        return Recording(f"builtin/{name}", noise(name))


@dataclass(frozen=True)
class BuiltinMusic:
    """Synthesised pieces of music, each made at its first draw."""

    kind: str = "music"
    title: str = TITLE
    stand_in: bool = True

    def draw(self, rng: np.random.Generator, *, clip: Samples, severity: int) -> Recording:
        names = sorted(PIECES)
        name = names[int(rng.integers(len(names)))]
        return Recording(f"builtin/{name}", music(name))


@dataclass(frozen=True)
class BuiltinSpeech:
    """Babble made from the clip itself."""

    kind: str = "speech"
    title: str = TITLE
    stand_in: bool = True

    def draw(self, rng: np.random.Generator, *, clip: Samples, severity: int) -> Recording:
        return Recording("builtin/babble", frozen(babble(clip, rng)))


@dataclass(frozen=True)
class BuiltinRooms:
    """Simulated rooms in four bins of RT60 (`rir`) or of SRMR (`real_rir`)."""

    kind: str
    rooms: tuple[Room, ...]
    bins: Bins
    title: str = TITLE
    stand_in: bool = True

    def draw(self, rng: np.random.Generator, *, clip: Samples, severity: int) -> Recording:
        room = self.rooms[self.bins.draw(rng, severity)]
        measures = {"rt60_s": room.rt60_s} if room.srmr is None else {"srmr": room.srmr}
        return Recording(room.name, response(room), measures)


def builtin_bank(kind: str) -> RecordingBank:
    """The built-in bank of a kind."""
    if kind in NOISES:
        return BuiltinNoises(kind)
    if kind == "music":
        return BuiltinMusic()
    if kind == "speech":
        return BuiltinSpeech()
    if kind == "rir":
        return BuiltinRooms(kind, SIMULATED, bins([room.rt60_s for room in SIMULATED]))
    return BuiltinRooms(kind, FURNISHED, bins([-(room.srmr or 0.0) for room in FURNISHED]))
