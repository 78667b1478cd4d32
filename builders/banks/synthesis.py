"""The built-in noises and music, synthesised, so that every noise scenario works with no files.

They stand in for the recordings of the data sets, they do not imitate them sample by sample. Each is drawn from its own
fixed seed, is distinct in spectrum and in time structure, and loops without a seam (noise is shaped in the frequency
domain, events and notes that outlast the end wrap around), because a clip longer than the recording repeats it. Music
is short pieces from additive synthesis, in different keys, tempi, metres and timbres.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import scipy.fft

from speech_robust_bench.core.audio import RATE, Samples

LENGTH = 10 * RATE
Rng = np.random.Generator
_time_s = np.arange(LENGTH) / RATE


def seeded(name: str) -> Rng:
    """The fixed stream of one built-in recording: a pure function of its name."""
    key = int.from_bytes(hashlib.blake2b(name.encode(), digest_size=16).digest(), "little")
    return np.random.Generator(np.random.Philox(key=key))


def frozen(samples: np.ndarray) -> Samples:
    """Contiguous float32 that nobody can write to."""
    samples = np.ascontiguousarray(samples, dtype=np.float32)
    samples.setflags(write=False)
    return samples


def as_recorded(signal: np.ndarray, peak: float = 0.7) -> Samples:
    """Scale to a peak and round to 16 bits, as a file would hold it.

    The rounding also hides the last-bit differences between processors' sine and exponential.
    """
    signal = signal - signal.mean()
    return frozen(np.rint(signal * (peak * 32767 / np.abs(signal).max())) / 32768)


def coloured(rng: Rng, gain: Callable[[np.ndarray], np.ndarray], length: int = LENGTH) -> np.ndarray:
    """Gaussian noise of unit variance whose spectrum follows `gain(hz)`."""
    hz = scipy.fft.rfftfreq(length, 1 / RATE)
    spectrum = rng.standard_normal(2 * len(hz)).view(complex)
    spectrum *= gain(np.maximum(hz, hz[1]))
    spectrum[0] = 0
    signal = scipy.fft.irfft(spectrum, length)
    return signal / signal.std()


def band(low_hz: float, high_hz: float, slope: int = 4) -> Callable[[np.ndarray], np.ndarray]:
    """A smooth band-pass gain: flat between the corners, falling by `slope` (even) powers of the frequency outside."""

    def gain(hz: np.ndarray) -> np.ndarray:
        below, above = np.square(low_hz / hz), np.square(hz / high_hz)
        return 1 / ((1 + _power(below, slope // 2)) * (1 + _power(above, slope // 2)))

    return gain


def _power(base: np.ndarray, exponent: int) -> np.ndarray:
    """A whole power by products: numpy's own `**` costs more than the noise it shapes."""
    out = base.copy()
    for _ in range(exponent - 1):
        out *= base
    return out


def swell(rng: Rng, rate_hz: float, depth: float) -> np.ndarray:
    """A slow random gain around 1 that moves at up to `rate_hz`; `depth` is its spread in nepers."""
    bins = round(rate_hz * LENGTH / RATE)
    spectrum = np.zeros(LENGTH // 2 + 1, dtype=complex)
    spectrum[1 : bins + 1] = rng.standard_normal(bins) + 1j * rng.standard_normal(bins)
    slow = scipy.fft.irfft(spectrum, LENGTH)
    return np.exp(depth * slow / slow.std())


def scatter(onsets: np.ndarray, gains: np.ndarray, event: np.ndarray) -> np.ndarray:
    """Copies of one event at onsets (samples), each at its gain, wrapped around the end."""
    out = np.zeros(LENGTH + len(event))
    for onset, gain in zip((onsets % LENGTH).tolist(), gains.tolist(), strict=True):
        out[onset : onset + len(event)] += gain * event
    out[: len(event)] += out[LENGTH:]
    return out[:LENGTH]


def poisson(rng: Rng, rate_hz: float) -> np.ndarray:
    """Onsets of independent events at a mean rate."""
    return rng.integers(LENGTH, size=round(rate_hz * LENGTH / RATE))


def decay(seconds: float, length_s: float) -> np.ndarray:
    """An exponential that loses 60 dB in `seconds`."""
    return np.exp(-6.908 / seconds * np.arange(round(length_s * RATE)) / RATE)


def tone(hz: np.ndarray | float, harmonics: dict[int, float]) -> np.ndarray:
    """Harmonics of a steady or moving fundamental; the phase is bent so that it closes on itself after LENGTH."""
    cycles = np.cumsum(np.broadcast_to(hz, LENGTH)) / RATE
    cycles += (round(cycles[-1]) - cycles[-1]) * (np.arange(1, LENGTH + 1) / LENGTH)
    return sum(gain * np.sin(2 * np.pi * n * cycles) for n, gain in harmonics.items())  # type: ignore[return-value]


def ping(hz: list[float], seconds: float) -> np.ndarray:
    """A struck object: decaying partials."""
    time_s = np.arange(round(seconds * RATE)) / RATE
    partials = [np.sin(2 * np.pi * f * time_s) / (1 + i) for i, f in enumerate(hz)]
    return sum(partials) * decay(seconds, seconds)[: len(time_s)]


def pink(rng: Rng) -> np.ndarray:
    return coloured(rng, lambda hz: hz**-0.5 * (hz > 20))


def rumble(rng: Rng) -> np.ndarray:
    return coloured(rng, lambda hz: hz**-1.0 * (hz > 25)) * swell(rng, 1.0, 0.25)


def hum(rng: Rng) -> np.ndarray:
    buzz = tone(50.0, {1: 0.4, 2: 1.0, 3: 0.3, 4: 0.5, 6: 0.25, 8: 0.12, 12: 0.08, 18: 0.05})
    return buzz + 0.03 * coloured(rng, band(300, 6000))


def fan(rng: Rng) -> np.ndarray:
    blades = tone(92.0, {1: 0.5, 2: 0.25, 3: 0.12})
    air = coloured(rng, lambda hz: (1 + hz / 250) ** -1.2) * (1 + 0.15 * np.sin(2 * np.pi * 15.3 * _time_s))
    return air + 0.5 * blades


def vacuum(rng: Rng) -> np.ndarray:
    motor = tone(310 * (1 + 0.004 * coloured(rng, band(0.3, 2))), {1: 1.0, 2: 0.7, 3: 0.4, 5: 0.3, 7: 0.2})
    return 0.5 * motor + coloured(rng, band(400, 5000, 2))


def rain(rng: Rng) -> np.ndarray:
    drop = decay(0.006, 0.01) * np.sin(2 * np.pi * 2900 * np.arange(160) / RATE)
    onsets = poisson(rng, 160)
    drops = scatter(onsets, rng.exponential(1.0, len(onsets)), drop)
    return coloured(rng, band(900, 7500, 2)) + 1.5 * drops / drops.std()


def traffic(rng: Rng) -> np.ndarray:
    road = coloured(rng, band(60, 500, 2))
    passing = np.zeros(LENGTH)
    for onset in np.sort(rng.random(4)) * LENGTH / RATE:
        distance = (_time_s - onset + 5) % 10 - 5  # seconds from the closest point, wrapped
        passing += rng.uniform(0.6, 1.4) / (1 + (distance / 0.7) ** 2)
    return road * (0.4 + passing) + 0.35 * passing * coloured(rng, band(500, 2500, 2))


def engine(rng: Rng) -> np.ndarray:
    rpm = 33 * (1 + 0.12 * coloured(rng, band(0.1, 0.5)) + 0.01 * coloured(rng, band(2, 10)))
    firing = tone(rpm, {1: 0.5, 2: 1.0, 3: 0.5, 4: 0.8, 6: 0.4, 8: 0.3, 10: 0.15, 14: 0.1})
    return firing + 0.25 * coloured(rng, band(100, 1500, 2))


def keyboard(rng: Rng) -> np.ndarray:
    gaps = rng.gamma(3.0, 0.06, 70) + (rng.random(70) < 0.12) * rng.uniform(0.4, 1.0, 70)
    onsets = (np.cumsum(gaps) * RATE).astype(int)
    press = decay(0.02, 0.04) * coloured(rng, band(1200, 6000, 2), 640)
    release = (onsets + rng.integers(900, 1600, len(onsets)), rng.uniform(0.15, 0.4, len(onsets)))
    clicks = scatter(onsets, rng.uniform(0.5, 1.0, len(onsets)), press) + scatter(*release, press[::2])
    return clicks + 0.01 * coloured(rng, band(80, 3000, 2))


def siren(rng: Rng) -> np.ndarray:
    sweep_hz = 950 + 400 * np.sin(2 * np.pi * 0.4 * _time_s)
    return tone(sweep_hz, {1: 1.0, 2: 0.45, 3: 0.25, 4: 0.1}) * swell(rng, 0.5, 0.2) + 0.05 * pink(rng)


def alarm(rng: Rng) -> np.ndarray:
    beat = (_time_s % 1.0 < 0.6) & (_time_s % 0.2 < 0.1)  # three short beeps a second
    return tone(2050.0, {1: 1.0, 2: 0.1, 3: 0.3}) * beat + 0.02 * pink(rng)


def dial_tone(rng: Rng) -> np.ndarray:
    """The precise tone plan's ringing and busy tones (440 + 480 Hz, 480 + 620 Hz), over line noise."""
    ringing = (tone(440.0, {1: 1.0}) + tone(480.0, {1: 1.0})) * (_time_s < 2.0)
    busy = (tone(480.0, {1: 1.0}) + tone(620.0, {1: 1.0})) * ((_time_s > 5.0) & (_time_s % 1.0 < 0.5))
    return ringing + busy + 0.08 * coloured(rng, band(300, 3400, 6))


def fire(rng: Rng) -> np.ndarray:
    onsets = poisson(rng, 45)
    snap = decay(0.004, 0.008) * coloured(rng, band(1000, 7000, 2), 128)
    snaps = scatter(onsets, rng.pareto(1.8, len(onsets)).clip(0, 3), snap)
    return snaps / snaps.std() + 0.5 * coloured(rng, band(60, 400, 2)) * swell(rng, 2.0, 0.3)


def wind(rng: Rng) -> np.ndarray:
    gust = swell(rng, 0.6, 0.6)
    howl = coloured(rng, band(350, 450, 12)) * gust**2
    return coloured(rng, band(30, 300, 2)) * gust + 0.4 * howl


def waves(rng: Rng) -> np.ndarray:
    surf = 0.15 + np.maximum(np.sin(2 * np.pi * 0.2 * _time_s), 0) ** 2
    return coloured(rng, lambda hz: (1 + hz / 400) ** -1.0) * surf + 0.3 * coloured(rng, band(2000, 6000)) * surf**3


def clock(rng: Rng) -> np.ndarray:
    ticks = np.arange(20) * RATE // 2
    tick, tock = ping([3200, 4700, 6100], 0.03), ping([2500, 3900, 5600], 0.04)
    return scatter(ticks[::2], np.ones(10), tick) + scatter(ticks[1::2], np.ones(10), tock) + 0.01 * pink(rng)


def birds(rng: Rng) -> np.ndarray:
    song = np.zeros(LENGTH)
    for onset in poisson(rng, 5):
        length = int(rng.integers(900, 2600))
        start_hz, end_hz = rng.uniform(2200, 5500, 2)
        trill = 1 + 0.06 * np.sin(2 * np.pi * rng.uniform(20, 45) * np.arange(length) / RATE)
        cycles = np.cumsum(np.linspace(start_hz, end_hz, length) * trill) / RATE
        chirp = np.sin(2 * np.pi * cycles) * np.sin(np.pi * np.arange(length) / length) ** 2
        song[np.arange(onset, onset + length) % LENGTH] += rng.uniform(0.2, 1.0) * chirp
    return song + 0.03 * coloured(rng, band(200, 4000, 2))


def static(rng: Rng) -> np.ndarray:
    onsets = poisson(rng, 300)
    pops = scatter(onsets, rng.standard_normal(len(onsets)), decay(0.001, 0.002))
    return coloured(rng, band(200, 7500)) + pops / pops.std() * swell(rng, 3.0, 0.6)


def cafe(rng: Rng) -> np.ndarray:
    """Cutlery and crockery over a room's murmur."""
    table = np.zeros(LENGTH)
    for hz in ([2300.0, 3780, 5210], [1480.0, 3150, 4890, 6650], [3420.0, 5900, 7300]):
        onsets = poisson(rng, 1.6)
        table += scatter(onsets, rng.uniform(0.2, 1.0, len(onsets)), ping(hz, 0.25))
    return 0.8 * murmur(rng) + table / table.std()


def murmur(rng: Rng) -> np.ndarray:
    """Many far voices: bands of speech's formants, each rising and falling at the rate of syllables."""
    formants = ((150, 700), (500, 1200), (1000, 2000), (1800, 3400))
    voices = [0.6**i * coloured(rng, band(*f)) * swell(rng, 6.0, 0.5) for i, f in enumerate(formants)]
    return sum(voices)  # type: ignore[return-value]


def footsteps(rng: Rng) -> np.ndarray:
    onsets = (np.arange(18) * LENGTH / 18 + rng.normal(0, 300, 18)).astype(int)
    heel = decay(0.07, 0.1) * coloured(rng, band(60, 900, 2), 1600)
    sole = decay(0.05, 0.08) * coloured(rng, band(900, 4000, 2), 1280)
    steps = scatter(onsets, rng.uniform(0.7, 1.0, 18), heel) + 0.3 * scatter(onsets + 1100, np.ones(18), sole)
    return steps + 0.02 * pink(rng)


def train(rng: Rng) -> np.ndarray:
    joints = (np.arange(10)[:, None] * LENGTH / 10 + np.array([0, 2200])).astype(int).ravel()
    clack = decay(0.12, 0.2) * coloured(rng, band(150, 2200, 2), 3200)
    return coloured(rng, band(40, 700, 2)) + 1.5 * scatter(joints, rng.uniform(0.6, 1.0, 20), clack)


NOISES: dict[str, Callable[[Rng], np.ndarray]] = {
    function.__name__: function
    for function in (
        pink, rumble, hum, fan, vacuum, rain, traffic, engine, keyboard, siren, alarm, dial_tone, fire, wind, waves,
        clock, birds, static, cafe, murmur, footsteps, train,
    )
}  # fmt: skip


@lru_cache(maxsize=len(NOISES))
def noise(name: str) -> Samples:
    """One built-in noise, synthesised at its first use."""
    return as_recorded(NOISES[name](seeded(f"noise/{name}")))


@dataclass(frozen=True)
class Timbre:
    """A timbre: strengths of the harmonics, and how a note swells and dies (seconds; no decay means held)."""

    harmonics: tuple[float, ...]
    attack_s: float
    decay_s: float | None = None
    vibrato: float = 0.0

    def note(self, midi: float, seconds: float) -> np.ndarray:
        """One note, a MIDI number (69 is 440 Hz), sounding for `seconds`."""
        length = round((seconds if self.decay_s is None else min(self.decay_s, 4 * seconds)) * RATE)
        time_s = np.arange(length) / RATE
        hz = 440 * 2 ** ((midi - 69) / 12)
        phase = 2 * np.pi * hz * time_s - self.vibrato * hz / 5 * np.cos(2 * np.pi * 5 * time_s)
        audible = [gain for n, gain in enumerate(self.harmonics, 1) if n * hz < RATE / 2]
        # sin(nx) from its two predecessors: two sines for any number of harmonics
        before, current, cosine = np.zeros(length), np.sin(phase), 2 * np.cos(phase)
        out = np.zeros(length)
        for gain in audible:
            out += gain * current
            before, current = current, cosine * current - before
        fade = np.minimum(1, np.minimum(time_s / self.attack_s, (length - np.arange(length)) / (0.03 * RATE)))
        return out * fade * (1 if self.decay_s is None else decay(self.decay_s, length / RATE)[:length])


PIANO = Timbre((1.0, 0.5, 0.35, 0.2, 0.12, 0.08, 0.04), 0.004, 1.6)
ORGAN = Timbre((1.0, 0.7, 0.3, 0.5, 0.1, 0.2, 0.05, 0.15), 0.03)
GUITAR = Timbre((1.0, 0.8, 0.6, 0.5, 0.3, 0.25, 0.2, 0.1, 0.08), 0.002, 0.9)
STRINGS = Timbre((1.0, 0.6, 0.5, 0.4, 0.3, 0.2, 0.15, 0.1), 0.12, None, 0.005)
FLUTE = Timbre((1.0, 0.25, 0.08, 0.03), 0.06, None, 0.006)
BASS = Timbre((1.0, 0.6, 0.4, 0.2), 0.005, 0.7)
BELL = Timbre((1.0, 0.0, 0.5, 0.0, 0.3, 0.2), 0.002, 2.0)


class MusicScore:
    """A stretch of beats to write notes into; what rings past its end wraps around."""

    def __init__(self, beats: int, beats_per_minute: float) -> None:
        self.beat_s = 60 / beats_per_minute
        self.samples = np.zeros(round(beats * self.beat_s * RATE))

    def add(self, beat: float, sound: np.ndarray, gain: float = 1.0) -> None:
        at = np.arange(round(beat * self.beat_s * RATE), round(beat * self.beat_s * RATE) + len(sound))
        if at[-1] < len(self.samples):
            self.samples[at[0] : at[-1] + 1] += gain * sound
        else:
            np.add.at(self.samples, at % len(self.samples), gain * sound)

    def chord(self, voice: Timbre, beat: float, beats: float, notes: tuple[float, ...], gain: float = 1.0) -> None:
        for midi in notes:
            self.add(beat, voice.note(midi, beats * self.beat_s), gain)


def ballad(rng: np.random.Generator) -> np.ndarray:
    """Piano arpeggios over I-V-vi-IV in C, with a bass note a bar."""
    score = MusicScore(16, 96)
    chords = ((48, 64, 67, 72), (43, 62, 67, 71), (45, 60, 64, 69), (41, 60, 65, 69))
    for bar, (root, *notes) in enumerate(chords):
        score.chord(BASS, 4 * bar, 4, (root,))
        for step in range(8):
            note = notes[(0, 1, 2, 1)[step % 4]] + (12 if step == 6 else 0)
            score.add(4 * bar + step / 2, PIANO.note(note, 0.5 * score.beat_s), rng.uniform(0.5, 0.8))
    return score.samples


def chorale(rng: np.random.Generator) -> np.ndarray:
    """Four-part organ harmony in G minor, a chord every two beats."""
    score = MusicScore(12, 72)
    parts = ((43, 58, 62, 67), (48, 60, 63, 67), (50, 57, 62, 66), (43, 58, 62, 67), (51, 58, 63, 67), (50, 57, 60, 66))
    for i, notes in enumerate(parts):
        score.chord(ORGAN, 2 * i, 1.9, notes, rng.uniform(0.8, 1.0))
    return score.samples


def drums(rng: np.random.Generator) -> dict[str, np.ndarray]:
    """A kit: the kick's falling tone, the snare's and the hat's bursts of noise."""
    fall_hz = 50 + 110 * np.exp(-np.arange(2400) / 400)
    kick = np.sin(2 * np.pi * np.cumsum(fall_hz) / RATE) * decay(0.2, 0.15)
    snare = coloured(rng, band(180, 6000, 2), 2400) * decay(0.12, 0.15)
    hat = coloured(rng, band(6000, 8000), 640) * decay(0.04, 0.04)
    return {"kick": kick, "snare": 0.6 * snare, "hat": 0.3 * hat}


def rock(rng: np.random.Generator) -> np.ndarray:
    """Drums, bass and power chords in E at 120 beats a minute."""
    score, kit = MusicScore(16, 120), drums(rng)
    for beat in range(16):
        score.add(beat, kit["kick" if beat % 2 == 0 else "snare"], 1.5)
        for half in (0.0, 0.5):
            score.add(beat + half, kit["hat"])
            root = (40, 45, 47, 40)[beat // 4]
            score.add(beat + half, BASS.note(root - 12, 0.4 * score.beat_s), 0.8)
        if beat % 4 in (0, 3):
            score.chord(GUITAR, beat, 1.5, (root, root + 7, root + 12), 0.4)
    return score.samples


def waltz(rng: np.random.Generator) -> np.ndarray:
    """A flute over strings in three-four time, in D."""
    score = MusicScore(18, 150)
    tune = (
        (78, 2),
        (76, 1),
        (74, 2),
        (71, 1),
        (74, 1),
        (76, 1),
        (78, 1),
        (81, 3),
        (79, 2),
        (76, 1),
        (78, 1),
        (76, 1),
        (74, 1),
    )
    beat = 0
    for midi, beats in tune:
        score.add(beat, FLUTE.note(midi, 0.95 * beats * score.beat_s), rng.uniform(0.8, 1.0))
        beat += beats
    for bar, root in enumerate((50, 47, 52, 45, 52, 50)):
        score.chord(BASS, 3 * bar, 1, (root - 12,), 0.7)
        for offbeat in (1, 2):
            score.chord(STRINGS, 3 * bar + offbeat, 0.7, (root + 12, root + 16), 0.25)
    return score.samples


def techno(rng: np.random.Generator) -> np.ndarray:
    """Four on the floor at 132 beats a minute, a saw bass line in A minor, bells off the beat."""
    score, kit = MusicScore(16, 132), drums(rng)
    saw = Timbre(tuple(1 / n for n in range(1, 16)), 0.003, 0.25)
    for beat in range(16):
        score.add(beat, kit["kick"], 1.6)
        score.add(beat + 0.5, kit["hat"], 1.5)
        for quarter in (0.25, 0.5, 0.75):
            score.add(beat + quarter, saw.note((33, 33, 36, 31)[beat // 4] + 12 * (quarter == 0.75), 0.1), 0.5)
        if rng.random() < 0.5:
            score.add(beat + 0.5, BELL.note(rng.choice([69, 72, 76, 79]), 0.2), 0.3)
    return score.samples


def folk(rng: np.random.Generator) -> np.ndarray:
    """A plucked guitar's picking pattern in A major, with a second voice in thirds."""
    score = MusicScore(16, 108)
    for bar, chord in enumerate(((45, 57, 61, 64), (50, 57, 62, 66), (52, 56, 59, 64), (45, 57, 61, 64))):
        for step, string in enumerate((0, 2, 1, 3, 0, 3, 1, 2)):
            score.add(4 * bar + step / 2, GUITAR.note(chord[string], 0.6 * score.beat_s), rng.uniform(0.6, 1.0))
        score.chord(STRINGS, 4 * bar, 3.8, (chord[2] + 12, chord[3] + 12), 0.12)
    return score.samples


PIECES: dict[str, Callable[[np.random.Generator], np.ndarray]] = {
    piece.__name__: piece for piece in (ballad, chorale, rock, waltz, techno, folk)
}


@lru_cache(maxsize=len(PIECES))
def music(name: str) -> Samples:
    """One built-in piece, synthesised at its first use."""
    return as_recorded(PIECES[name](seeded(f"music/{name}")))
