"""What a mask head learns from and is tested on: mixtures with the signals that are in them.

Voicebank-DEMAND (Valentini-Botinhao, 2017) has folders `clean_trainset_28spk_wav` and `noisy_...`, and the same with
`testset`; two of the 28 speakers, p226 and p287, are the dev set, as in s3prl. LibriMix (Cosentino et al., 2020) has
`Libri2Mix/wav16k/min/<part>/<mix_clean, s1, s2>`. Without them, mixtures are made of any corpus: its clips under
scenarios of the benchmark, or two speakers at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from speech_robust_bench.builders.apply import RandomScenarios, draw_for_clip, perturb_clip
from speech_robust_bench.builders.banks import Banks
from speech_robust_bench.builders.corpora import Sources
from speech_robust_bench.builders.corpora.base import find_folder
from speech_robust_bench.builders.plan import DEMO, CheckedClip, check_clips
from speech_robust_bench.builders.plan import clips as listed_clips
from speech_robust_bench.core.audio import Samples, read
from speech_robust_bench.core.engines import Inline
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.names import ConfigName
from speech_robust_bench.core.seeding import clip_rng
from speech_robust_bench.extensions.superb_sg.head_file import Part, Task

DEV_SPEAKERS = ("p226", "p287")  # of Voicebank, as in s3prl
LOUDEST_DB = 5.0  # one of two speakers above the other, at most
DEV_SHARE = 10  # of a corpus, one mixture of so many is kept from training
LIBRIMIX = {"train": ("train-100",), "dev": ("dev_1000", "dev"), "test": ("test",)}  # dev_1000: s3prl's part of dev
Progress = Callable[[str, int], Callable[[int], None]]


@dataclass(frozen=True)
class Mixture:
    """A mixture that is made when it is loaded: the mixture, and the signals that are looked for, (signal, sample)."""

    id: str
    speaker: str | None
    make: Callable[[], tuple[Samples, np.ndarray]] = field(repr=False)

    def load(self, longest: int) -> tuple[Samples, np.ndarray]:
        """Mixture and signals of one length, at most `longest` samples."""
        mixed, signals = self.make()
        size = min(len(mixed), longest, *(len(signal) for signal in signals))
        return mixed[:size].astype(np.float32), np.stack([signal[:size] for signal in signals]).astype(np.float32)


def from_files(paths: Sequence[Path], clip_id: str, speaker: str | None) -> Mixture:
    """A mixture of files: the mixture first, then its signals."""

    def make() -> tuple[Samples, np.ndarray]:
        mixed, *signals = (read(path) for path in paths)
        size = min(map(len, signals))
        return mixed, np.stack([signal[:size] for signal in signals])

    return Mixture(clip_id, speaker, make)


def voicebank(root: str, part: Part) -> list[Mixture]:
    """The noisy and clean clips of Voicebank-DEMAND, at 48 kHz as published or at 16 kHz."""
    name = "testset_wav" if part == "test" else "trainset_28spk_wav"
    folders = find_folder(Path(root), lambda folder: folder.name.removesuffix("_16k") == f"noisy_{name}")
    if not folders:
        raise UserError(f"{root}: holds no folder noisy_{name}; get it from https://doi.org/10.7488/ds/2117")
    noisy = folders[0]
    clean = noisy.with_name(noisy.name.replace("noisy_", "clean_"))
    found = []
    for path in sorted(noisy.glob("*.wav")):
        speaker = path.stem.split("_")[0]
        if part == "test" or (speaker in DEV_SPEAKERS) == (part == "dev"):
            found.append(from_files([path, clean / path.name], path.stem, speaker))
    return found


def librimix(root: str, part: Part, task: Task) -> list[Mixture]:
    """The mixtures of Libri2Mix at 16 kHz: two speakers, or for enhancement one speaker in noise."""
    places = [Path("wav16k", "min", name) for name in LIBRIMIX[part]]
    found = [
        folder / place
        for place in places
        for folder in find_folder(Path(root), lambda folder, place=place: (folder / place).is_dir())  # type: ignore[misc]
    ]
    if not found:
        raise UserError(f"{root}: holds no {places[-1]}; https://github.com/JorisCos/LibriMix generates it")
    mixed, *signals = ("mix_clean", "s1", "s2") if task == "separation" else ("mix_single", "s1")
    base = found[0]
    files = sorted((base / mixed).glob("*.wav"))
    return [
        from_files([base / kind / f.name for kind in (mixed, *signals)], f.stem, f.stem.split("-")[0]) for f in files
    ]


@dataclass(frozen=True)
class MadeMixtures:
    """Mixtures of the clips of some corpora, drawn once for each clip."""

    task: Task
    scenarios: Sequence[str] = ("noise_env",)
    banks: Banks = field(default_factory=Banks)
    seed: int = 0

    def of(self, sources: Sources, progress: Progress) -> list[Mixture]:
        """A mixture for each clip."""
        clips: list[CheckedClip] = []
        for language, name in sources:
            corpus, listed = listed_clips(ConfigName(language, "clean", corpus=name), {**DEMO, **sources})
            checked = check_clips(corpus, listed, Inline(), progress)
            checked.refuse_unusable("stop")
            clips += checked.clips
        if self.task == "separation":
            return [self._two_speakers(clip, clips) for clip in clips]
        drawn = RandomScenarios.named(self.scenarios)
        if moved := [row.name for row in drawn.rows if row.stretches]:
            raise UserError(f"{', '.join(moved)} moves the speech in time: there is no clean clip to compare with")
        return [self._perturbed(clip, drawn) for clip in clips]

    def _perturbed(self, clip: CheckedClip, scenarios: RandomScenarios) -> Mixture:
        item = clip.utterance
        draw = draw_for_clip(scenarios.choose, item.corpus, item.id, seed=self.seed, stream="superb")
        named = {"corpus": draw.corpus, "clip_id": draw.clip_id, "seed": draw.seed}
        scenario = draw.scenario
        assert scenario is not None  # every clip gets one

        def make() -> tuple[Samples, np.ndarray]:
            samples = clip.load()
            return perturb_clip(scenario, draw.severity, samples, self.banks, **named).samples, samples[None]

        return Mixture(item.id, item.speaker, make)

    def _two_speakers(self, clip: CheckedClip, clips: Sequence[CheckedClip]) -> Mixture:
        item = clip.utterance
        rng = clip_rng(item.corpus, item.id, "superb", 0, str(self.seed))
        others = [each for each in clips if each.utterance.speaker != item.speaker or item.speaker is None]
        others = [each for each in others if each is not clip]
        if not others:
            raise UserError(f"{item.corpus}: has only one speaker; separation needs two")
        second, level_db = others[int(rng.integers(len(others)))], float(rng.uniform(-LOUDEST_DB, LOUDEST_DB))

        def make() -> tuple[Samples, np.ndarray]:
            pair = clip.load(), second.load()
            size = min(map(len, pair))
            first, other = (signal[:size] for signal in pair)
            powers = [float(np.mean(np.square(signal, dtype=float))) for signal in (first, other)]
            gain = 10 ** (level_db / 20) * np.sqrt(powers[0] / powers[1]) if powers[1] > 0 else 1.0
            signals = np.stack([first, gain * other]).astype(np.float32)
            signals /= max(1.0, float(np.abs(signals.sum(0)).max()))
            return signals.sum(0), signals

        return Mixture(f"{item.id}+{second.utterance.id}", item.speaker, make)


def split_dev(mixtures: Sequence[Mixture], seed: int = 0) -> tuple[list[Mixture], list[Mixture]]:
    """Mixtures to train on and a tenth to test on, by speaker where there are ten speakers or more."""
    speakers = sorted({mixture.speaker or "" for mixture in mixtures})
    if len(speakers) >= DEV_SHARE:
        order = np.random.default_rng(seed).permutation(speakers)
        held = set(order[: max(1, len(order) // DEV_SHARE)].tolist())
        chosen = [(mixture.speaker or "") in held for mixture in mixtures]
    else:
        order = np.random.default_rng(seed).permutation(len(mixtures))
        held_places = set(order[: max(1, len(mixtures) // DEV_SHARE)].tolist())
        chosen = [place in held_places for place in range(len(mixtures))]
    parts = ([m for m, c in zip(mixtures, chosen, strict=True) if c is wanted] for wanted in (False, True))
    train, dev = parts
    return train, dev
