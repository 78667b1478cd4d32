"""The clips that a probe learns from: which, in which batches, perturbed or not, and their hidden states.

All of it follows from the seed and the number of the step, so that training goes on after an interruption as if there
had been none.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from speech_robust_bench.builders.apply import RandomScenarios, draw_for_clip, perturb_clip
from speech_robust_bench.builders.banks import Banks
from speech_robust_bench.builders.corpora import Sources
from speech_robust_bench.builders.plan import DEMO, CheckedClip, check_clips
from speech_robust_bench.builders.plan import clips as listed_clips
from speech_robust_bench.builders.scenarios import perturbations
from speech_robust_bench.core.audio import RATE, from_pcm16, to_pcm16
from speech_robust_bench.core.engines import Inline
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.files import read_array, replacing
from speech_robust_bench.core.names import ConfigName
from speech_robust_bench.extensions.probe.head import spelled
from speech_robust_bench.extensions.probe.upstream import Upstream
from speech_robust_bench.models.interface import Clip

DEV_SHARE = 10  # without a dev set, one clip of so many is kept from training
Progress = Callable[[str, int], Callable[[int], None]]


@dataclass(frozen=True)
class SpokenClip:
    """A clip that can be learned from or tested on, with its normalised transcript."""

    listed: CheckedClip
    text: str

    @property
    def id(self) -> str:
        return self.listed.utterance.id

    @property
    def corpus(self) -> str:
        return self.listed.utterance.corpus

    @property
    def seconds(self) -> float:
        return self.listed.seconds


def read_clips(sources: Sources, longest_s: float, progress: Progress) -> tuple[str, list[SpokenClip]]:
    """The language and the clips of one or more corpora; those without a letter or longer than an encoder takes are
    left out."""
    languages = {language for language, _ in sources}
    if len(languages) != 1:
        raise UserError(f"a probe learns one language; the corpora are in {', '.join(sorted(languages)) or 'none'}")
    (language,) = languages
    clips = []
    for _, name in sources:
        corpus, listed = listed_clips(ConfigName(language, "clean", corpus=name), {**DEMO, **sources})
        checked = check_clips(corpus, listed, Inline(), progress)
        checked.refuse_unusable("stop")
        clips += [SpokenClip(clip, spelled(clip.utterance.text or "", language)) for clip in checked.clips]
    return language, [clip for clip in clips if clip.text and clip.seconds <= longest_s]


def _order(clip: SpokenClip, seed: int) -> bytes:
    return hashlib.blake2b(f"{seed}\x1f{clip.corpus}\x1f{clip.id}".encode(), digest_size=8).digest()


def split_dev(clips: Sequence[SpokenClip]) -> tuple[list[SpokenClip], list[SpokenClip]]:
    """Clips to train on and a tenth to test on, by their names: the same tenth on every machine and for every seed."""
    held = {clip.id for clip in clips if int.from_bytes(_order(clip, 0), "big") % DEV_SHARE == 0}
    return [clip for clip in clips if clip.id not in held], [clip for clip in clips if clip.id in held]


def first_hours(clips: Sequence[SpokenClip], hours: float, seed: int = 0) -> list[SpokenClip]:
    """Clips of at most a number of hours, in a random order; those of one hour are among those of five."""
    chosen, seconds = [], 0.0
    for clip in sorted(clips, key=lambda clip: _order(clip, seed)):
        if seconds + clip.seconds > hours * 3600:
            break
        chosen.append(clip)
        seconds += clip.seconds
    return chosen


def clips_digest(clips: Iterable[SpokenClip]) -> str:
    """What tells two sets of clips apart: their names, samples and transcripts."""
    digest = hashlib.sha256()
    for clip in sorted(clips, key=lambda clip: (clip.corpus, clip.id)):
        digest.update("\x1f".join((clip.corpus, clip.id, clip.listed.samples_digest, clip.text, "")).encode())
    return digest.hexdigest()[:16]


@dataclass(frozen=True)
class Augmentation:
    """Scenarios that training clips are put under; those held out are for the test."""

    scenarios: RandomScenarios
    p: float = 0.5
    seed: int = 0
    banks: Banks = field(default_factory=Banks)

    def __call__(self, clip: SpokenClip, samples: Clip, epoch: int) -> Clip:
        """What `srb.RandomPerturb` of the same seed and epoch makes of the clip."""
        how = {"p": self.p, "seed": self.seed, "epoch": epoch}
        draw = draw_for_clip(self.scenarios.choose, clip.corpus, clip.id, **how)  # type: ignore[arg-type]
        if draw.scenario is None:
            return samples
        names = {"corpus": draw.corpus, "clip_id": draw.clip_id, "seed": draw.seed}
        perturbed = perturb_clip(draw.scenario, draw.severity, samples, self.banks, **names)
        return from_pcm16(to_pcm16(perturbed.samples))

    def describe(self) -> dict[str, object]:
        """What the probe's record says: what was trained on, and what is left for the test."""
        seen = [row.name for row in self.scenarios.rows]
        unseen = [row.name for row in perturbations() if row.has_speech and row.name not in seen]
        return {"scenarios": seen, "severity": list(self.scenarios.severity), "p": self.p, "held_out": unseen}


def batch_of_step(step: int, batches: int, seed: int) -> tuple[int, int]:
    """The epoch of a step and the number of its batch: every batch once an epoch, in an order drawn for it."""
    epoch, place = divmod(step, batches)
    return epoch, int(np.random.default_rng([seed, epoch]).permutation(batches)[place])


def buckets(clips: Sequence[SpokenClip], batch_size: int) -> list[list[SpokenClip]]:
    """Batches of clips of like length, as s3prl has them."""
    ordered = sorted(clips, key=lambda clip: (clip.seconds, clip.corpus, clip.id))
    return [ordered[start : start + batch_size] for start in range(0, len(ordered), batch_size)]


@dataclass
class HiddenStates:
    """The hidden states of clips, computed when they are asked for; kept on the disk where a folder is given."""

    upstream: Upstream
    folder: Path | None = None
    augmentation: Augmentation | None = None

    def __post_init__(self) -> None:
        if self.folder is not None:
            if self.augmentation is not None:
                raise UserError("features are cached of clean clips; --train-augment changes them every epoch")
            self.folder.mkdir(parents=True, exist_ok=True)

    def of(self, clips: Sequence[SpokenClip], epoch: int | None = None) -> list[Tensor]:
        """Per clip (layer, frame, width); with an epoch, of the clips as training perturbs them in it.

        One clip at a time: many encoders give something else for a clip that is padded.
        """
        return [self._of_clip(clip, epoch) for clip in clips]

    def _of_clip(self, clip: SpokenClip, epoch: int | None) -> Tensor:
        path = self._path(clip)
        if path is not None and (stored := read_array(path)) is not None and stored.ndim == 3:
            return torch.from_numpy(stored).to(self.device)
        samples = clip.listed.load()
        if self.augmentation is not None and epoch is not None:
            samples = self.augmentation(clip, samples, epoch)
        with torch.no_grad():
            (states,) = self.upstream.states([samples[: int(self.upstream.longest_s * RATE)]])
        if path is not None:
            with replacing(path) as part, part.open("wb") as file:
                np.save(file, states.cpu().numpy())
        return states

    def _path(self, clip: SpokenClip) -> Path | None:
        if self.folder is None:
            return None
        key = "\x1f".join((self.upstream.spec, str(self.upstream.revision), clip.listed.samples_digest))
        return self.folder / f"{hashlib.blake2b(key.encode(), digest_size=16).hexdigest()}.npy"

    @property
    def device(self) -> torch.device:
        where = next(self.upstream.encoder.buffers(), next(self.upstream.encoder.parameters(), torch.zeros(0)))
        return where.device
