"""Babble from the speech at hand: competing talkers made out of the clip itself, where no bank of speech is given.

Each talker is the clip at another speed (so at another pitch), started elsewhere and wrapped around, some played
backwards so that their words are nobody's. A pure function of the clip and the random stream.

The built-in bank, which needs no files. Its names start with `builtin/`, so that a row shows what it was made with.

Each noise scenario has its own noises, after the character of the data set it stands in for: offices and streets
(MS-SNSD), single sounds of nature and machines (ESC-50), signals and technical noise (MUSAN), public places (WHAM!).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from speech_robust_bench.builders.banks import music, noises, shoebox
from speech_robust_bench.builders.banks.rooms import Bins, bins
from speech_robust_bench.builders.recording import Recording, RecordingBank, frozen
from speech_robust_bench.core.audio import Samples

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
    from speech_robust_bench.builders.perturb.signal_kernels import add_talker

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

    def draw(self, rng: np.random.Generator, *, clip: Samples, severity: int) -> Recording:
        names = NOISES[self.kind]
        name = names[int(rng.integers(len(names)))]
        return Recording(f"builtin/{name}", noises.noise(name))


@dataclass(frozen=True)
class BuiltinMusic:
    """Synthesised pieces of music, each made at its first draw."""

    kind: str = "music"
    title: str = TITLE

    def draw(self, rng: np.random.Generator, *, clip: Samples, severity: int) -> Recording:
        names = sorted(music.PIECES)
        name = names[int(rng.integers(len(names)))]
        return Recording(f"builtin/{name}", music.music(name))


@dataclass(frozen=True)
class BuiltinSpeech:
    """Babble made from the clip itself."""

    kind: str = "speech"
    title: str = TITLE

    def draw(self, rng: np.random.Generator, *, clip: Samples, severity: int) -> Recording:
        return Recording("builtin/babble", frozen(babble(clip, rng)))


@dataclass(frozen=True)
class BuiltinRooms:
    """Simulated rooms in four bins of RT60 (`rir`) or of SRMR (`real_rir`)."""

    kind: str
    rooms: tuple[shoebox.Room, ...]
    bins: Bins
    title: str = TITLE

    def draw(self, rng: np.random.Generator, *, clip: Samples, severity: int) -> Recording:
        room = self.rooms[self.bins.draw(rng, severity)]
        measures = {"rt60_s": room.rt60_s} if room.srmr is None else {"srmr": room.srmr}
        return Recording(room.name, shoebox.response(room), measures)


def builtin_bank(kind: str) -> RecordingBank:
    """The built-in bank of a kind."""
    if kind in NOISES:
        return BuiltinNoises(kind)
    if kind == "music":
        return BuiltinMusic()
    if kind == "speech":
        return BuiltinSpeech()
    if kind == "rir":
        return BuiltinRooms(kind, shoebox.SIMULATED, bins([room.rt60_s for room in shoebox.SIMULATED]))
    return BuiltinRooms(kind, shoebox.FURNISHED, bins([-(room.srmr or 0.0) for room in shoebox.FURNISHED]))
