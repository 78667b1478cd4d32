"""The loop of all gradient attacks, and `pgd` on it (Madry et al. 2018), with FGSM as its one-step form.

Clips run side by side with bounds, masks and ends of their own: a clip that is done leaves the batch, and the others go
on as if it had never been there.

Defaults are those of the paper's runs: 100 steps of 0.4 of the radius along the unit-L2 gradient, a random start, the
clip clamped to [-1, 1]. L-inf steps go along the signs (Olivier, Eq. 2.3 to 2.6).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from speech_robust_bench.attacks.clips import AttackBatch, AttackClip, Bound, padded, to_float, word_errors
from speech_robust_bench.attacks.registry import PGD, AttackPlan
from speech_robust_bench.attacks.views.base import View
from speech_robust_bench.core.options import Settings
from speech_robust_bench.scoring.scoring import normalise

# (perturbations, gradients of the losses, losses, which clips) -> new perturbations, inside their bounds
Update = Callable[[Tensor, Tensor, Tensor, list[int]], Tensor]
# (steps done, perturbations, which clips) -> for each, whether it is finished
Watch = Callable[[int, Tensor, list[int]], Sequence[bool]]


@dataclass
class Attacked:
    """One clip after an attack: the 16-bit samples to store, and the facts about them."""

    clip: AttackClip
    pcm: np.ndarray
    facts: Settings = field(default_factory=dict)


class Attack(Protocol):
    """Some clips in, the same clips attacked out. What becomes of one does not depend on the others."""

    @property
    def name(self) -> str: ...

    @property
    def severity(self) -> int: ...

    @property
    def bound(self) -> Bound | None: ...

    def run(self, view: Any, clips: list[AttackClip]) -> list[Attacked]: ...

    def describe(self) -> Settings:
        """Every setting that the result depends on."""
        ...


def descend(
    view: View, waves: Tensor, batch: AttackBatch, delta: Tensor, update: Update, steps: int, watch: Watch
) -> list[int]:
    """Move `delta` (changed in place) until each clip is finished or out of steps; how many steps each one took."""
    active = list(range(len(waves)))
    taken = [0] * len(waves)
    for step in range(1, steps + 1):
        longest = int(batch.lengths[active].max())
        clean, here = waves[active, :longest], delta[active, :longest]
        losses, slope = view.gradient(clean + here, batch.select(active))
        moved = update(here, slope.to(here.dtype), losses, active)
        # What leaves [-1, 1] would be clipped when stored; cutting it off only brings the clip nearer.
        delta[active, :longest] = (clean + moved).clamp(-1, 1) - clean
        for index in active:
            taken[index] = step
        done = watch(step, delta, active)
        active = [index for index, finished in zip(active, done, strict=True) if not finished]
        if not active:
            break
    return taken


def prepare(
    view: View, clips: list[AttackClip], texts: list[str], rngs: list[np.random.Generator]
) -> tuple[Tensor, AttackBatch]:
    """Waveforms on the view's device, and what goes with them."""
    waves, lengths = padded([clip.samples for clip in clips], view.device)
    return waves, AttackBatch(lengths, texts, clips[0].language, rngs, ids=[clip.id for clip in clips])


def own_transcripts(view: View, clips: list[AttackClip], hypotheses: list[str]) -> list[str]:
    """The transcripts to push clips away from: as the model itself writes them, where its words are right.

    A model that writes sentences gives little probability to the capitals or bare words of a corpus, attack or not.
    """
    return [
        text if normalise(text) == normalise(clip.text) else view.spell(clip.text)
        for clip, text in zip(clips, hypotheses, strict=True)
    ]


@dataclass
class BestCandidates:
    """Transcribes the stored form of candidates now and then and keeps each clip's best.

    Untargeted, best is the highest WER against the transcript; targeted, the lowest against the target. `stop` ends a
    clip at that WER.
    """

    view: View
    clips: list[AttackClip]
    bound: Bound
    references: list[str]
    targeted: bool = False
    every: int = 0  # steps between two transcriptions; 0: only the last candidate
    stop: float | None = None
    best: list[tuple[float, np.ndarray, str] | None] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.best = [None] * len(self.clips)

    def watch(self, step: int, delta: Tensor, active: list[int]) -> list[bool]:
        if not self.every or step % self.every:
            return [False] * len(active)
        self.consider(delta, active)
        return [self.finished(index) for index in active]

    def consider(self, delta: Tensor, which: list[int]) -> None:
        """Store and transcribe the candidates, and keep those that beat what there was."""
        for index, pcm, text, error in transcribed(self.view, self.bound, self.clips, self.references, delta, which):
            score = -error if self.targeted else error
            kept = self.best[index]
            if kept is None or score >= kept[0]:  # a later one of equal score has had more steps
                self.best[index] = (score, pcm, text)

    def best_of_each(self) -> tuple[list[np.ndarray], list[str]]:
        """The best of every clip: its samples and their transcript."""
        kept = [best for best in self.best if best is not None]
        return [pcm for _, pcm, _ in kept], [text for _, _, text in kept]

    def finished(self, index: int) -> bool:
        """Whether a clip has reached the WER at which it ends."""
        kept = self.best[index]
        if kept is None or self.stop is None:
            return False
        return -kept[0] <= self.stop if self.targeted else kept[0] >= self.stop


def transcribed(
    view: View, bound: Bound, clips: list[AttackClip], references: list[str], delta: Tensor, which: list[int]
) -> list[tuple[int, np.ndarray, str, float]]:
    """Some clips as they would be stored, with their transcripts and the WER of these: (index, samples, text, WER)."""
    if not which:
        return []
    moves = delta.detach().cpu().numpy()
    pcms = [bound.store(clips[index].samples, moves[index, : len(clips[index].samples)]) for index in which]
    hypotheses = view.transcribe([to_float(pcm) for pcm in pcms], clips[0].language)
    errors = word_errors([references[index] for index in which], hypotheses, clips[0].language)
    return list(zip(which, pcms, hypotheses, map(float, errors), strict=True))


def outcomes(
    clips: list[AttackClip], before: list[str], after: list[str], target: list[str] | None = None
) -> list[Settings]:
    """What every attack says of a clip: its transcripts before and after, and the success, where 1 is complete.

    Untargeted it is min(WER, 1), targeted max(1 - WER to the target, 0) (Olivier, Eq. 6.2 and 6.1).
    """
    language = clips[0].language
    references = [clip.text for clip in clips]
    wer_before = word_errors(references, before, language)
    wer_after = word_errors(references, after, language)
    success = np.minimum(wer_after, 1)
    if target is not None:
        success = np.maximum(1 - word_errors(target, after, language), 0)
    return [
        {
            "prediction_before": before[index],
            "prediction_after": after[index],
            "wer_before": round(float(wer_before[index]), 4),
            "wer_after": round(float(wer_after[index]), 4),
            "success": round(float(success[index]), 4),
            **({"target": target[index]} if target is not None else {}),
        }
        for index in range(len(clips))
    ]


def attacked_clips(
    attack: Attack,
    view: View,
    clips: list[AttackClip],
    pcms: list[np.ndarray],
    texts: list[str],
    facts: list[Settings],
    taken: list[int],
) -> list[Attacked]:
    """The clips as they are stored, with the steps taken and the losses of `texts` before and after."""
    losses = []
    for signals in ([clip.samples for clip in clips], [to_float(pcm) for pcm in pcms]):
        waves, lengths = padded(signals, view.device)
        rngs = [clip.rng("loss", attack.severity) for clip in clips]  # one and the same noise before and after
        losses.append(view.values(waves, AttackBatch(lengths, texts, clips[0].language, rngs)).tolist())
    return [
        Attacked(clip, pcm, {**fact, "steps": steps, "loss_before": before, "loss_after": after})
        for clip, pcm, fact, steps, before, after in zip(clips, pcms, facts, taken, *losses, strict=True)
    ]


def tensor_of(signals: Sequence[np.ndarray], like: Tensor) -> Tensor:
    """Perturbations as one padded tensor of the waveforms' shape."""
    perturbations = torch.zeros_like(like)
    for row, signal in zip(perturbations, signals, strict=True):
        row[: len(signal)] = torch.from_numpy(np.ascontiguousarray(signal, dtype=np.float32))
    return perturbations


@dataclass(frozen=True)
class Pgd:
    """Raise the loss of the right transcript, or with `target` lower that of another one, inside a bound."""

    bound: Bound
    severity: int = 0
    steps: int = PGD.steps
    step: float = PGD.step  # of the radius
    random_start: bool = PGD.random_start
    restarts: int = PGD.restarts
    target: str | None = None
    transcribe_every: int = PGD.transcribe_every  # steps between two transcripts, the worst of which counts; 0: the end
    stop: float | None = None  # a clip is done at this WER (targeted: WER to the target)
    seed: str = ""
    name: str = field(default="pgd", init=False)

    @classmethod
    def fgsm(cls, bound: Bound, **more: Any) -> Pgd:
        """The fast gradient sign method (Goodfellow et al. 2015): one full step from the clip itself."""
        return cls(bound, steps=1, step=1.0, random_start=False, **more)

    def describe(self) -> Settings:
        return asdict(self)

    def run(self, view: View, clips: list[AttackClip]) -> list[Attacked]:
        before = view.transcribe([clip.samples for clip in clips], clips[0].language)
        if self.target is None:
            texts, references, goal = own_transcripts(view, clips, before), [clip.text for clip in clips], None
        else:
            texts = [view.spell(self.target)] * len(clips)
            references = goal = [self.target] * len(clips)
        candidates = BestCandidates(
            view, clips, self.bound, references, goal is not None, self.transcribe_every, self.stop
        )
        taken = self.search(view, clips, texts, candidates, towards=1 if goal is None else -1)
        pcms, after = candidates.best_of_each()
        return attacked_clips(self, view, clips, pcms, texts, outcomes(clips, before, after, goal), taken)

    def search(
        self, view: View, clips: list[AttackClip], texts: list[str], candidates: BestCandidates, towards: int
    ) -> list[int]:
        """Climb (`towards` 1) or descend (-1) the loss of `texts` from every start; the steps that each clip took."""
        taken = [0] * len(clips)
        for restart in range(self.restarts):
            rngs = [clip.rng(self.name, self.severity, f"{self.seed}{restart or ''}") for clip in clips]
            for index, steps in enumerate(self._once(view, clips, texts, rngs, candidates, towards)):
                taken[index] += steps
        return taken

    def _once(
        self,
        view: View,
        clips: list[AttackClip],
        texts: list[str],
        rngs: list[np.random.Generator],
        candidates: BestCandidates,
        towards: int,
    ) -> list[int]:
        waves, batch = prepare(view, clips, texts, rngs)
        radii = torch.tensor([self.bound.radius(clip.samples) for clip in clips], device=waves.device)
        delta = torch.zeros_like(waves)
        if self.random_start:
            starts = [self.bound.draw(clip.samples, rng) for clip, rng in zip(clips, rngs, strict=True)]
            delta = (waves + tensor_of(starts, waves)).clamp(-1, 1) - waves

        def update(here: Tensor, slope: Tensor, losses: Tensor, which: list[int]) -> Tensor:
            own = radii[which]
            return self.bound.project(here + towards * self.step * self.bound.step(slope, own), own)

        taken = descend(view, waves, batch, delta, update, self.steps, candidates.watch)
        unseen = [
            index for index, steps in enumerate(taken) if not (candidates.every and steps % candidates.every == 0)
        ]
        if unseen:
            candidates.consider(delta, unseen)
        return taken


def make_pgd(plan: AttackPlan) -> Pgd:
    """The attack as `srb attack pgd` sets it: an L2 ball by the severity's SNR, or an L-inf ball by SNR or radius."""
    settings = plan.settings
    ball = Bound("linf", None if settings.eps else plan.snr_db, settings.eps) if settings.norm == "linf" else plan.bound
    common = {**plan.loop_settings, **settings.given("restarts")}
    return Pgd(ball, plan.severity, random_start=settings.random_start, **common)
