"""The built-in music: short pieces from additive synthesis, in different keys, tempi, metres and timbres.

Like the built-in noises they loop without a seam: notes that outlast the last bar ring on into the first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from speech_robust_bench.builders.banks.noises import as_recorded, band, coloured, decay, seeded
from speech_robust_bench.core.audio import RATE, Samples


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
