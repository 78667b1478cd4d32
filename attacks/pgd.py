"""The settings of the attacks that are compared on the leaderboard: those of the paper's runs.

Nothing heavy is imported, because `srb verify` reads them without torch.

Projected gradient descent (Madry et al. 2018), per utterance: the benchmark's `pgd`, and FGSM as its one-step form.

Defaults are those of the paper's runs: 100 steps of 0.4 of the radius along the unit-L2 gradient, a random start, the
clip clamped to [-1, 1]. L-inf steps go along the signs (Olivier, Eq. 2.3 to 2.6).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from speech_robust_bench.attacks.clips import AttackClip, Bound
from speech_robust_bench.attacks.gradient_loop import (
    Attacked,
    BestCandidates,
    attacked_clips,
    descend,
    outcomes,
    own_transcripts,
    prepare,
    tensor_of,
)
from speech_robust_bench.attacks.registry import PGD, AttackPlan
from speech_robust_bench.attacks.views.base import View
from speech_robust_bench.core.options import Settings


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
