"""Projected gradient descent (Madry et al. 2018), per utterance: the benchmark's `pgd`, and FGSM as its one-step form.

Defaults are those of the paper's runs: 100 steps of 0.4 of the radius along the unit-L2 gradient, a random start, the
clip clamped to [-1, 1]. L-inf steps go along the signs (Olivier, Eq. 2.3 to 2.6).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from srb.attacks.clips import Bound, Clip
from srb.attacks.loop import Attacked, Keeper, descend, losses_of, own_words, prepare, report, tensor_of
from srb.attacks.views import View


@dataclass(frozen=True)
class Pgd:
    """Raise the loss of the right transcript, or with `target` lower that of another one, inside a bound."""

    bound: Bound
    severity: int = 0
    steps: int = 100
    step: float = 0.4  # of the radius
    random_start: bool = True
    restarts: int = 1
    target: str | None = None
    hear_every: int = 20  # steps between two hearings, the worst of which counts; 0 hears the end only
    stop: float | None = None  # a clip is done at this WER (targeted: WER to the target)
    seed: str = ""
    name: str = field(default="pgd", init=False)

    @classmethod
    def fgsm(cls, bound: Bound, **more: Any) -> Pgd:
        """The fast gradient sign method (Goodfellow et al. 2015): one full step from the clip itself."""
        return cls(bound, steps=1, step=1.0, random_start=False, **more)

    def describe(self) -> dict[str, Any]:
        return {**asdict(self), **asdict(self.bound)} | {"bound": None}

    def run(self, view: View, clips: list[Clip]) -> list[Attacked]:
        before = view.transcribe([clip.samples for clip in clips], clips[0].language)
        if self.target is None:
            texts, references, goal = own_words(view, clips, before), [clip.text for clip in clips], None
        else:
            texts = [view.fit(self.target)] * len(clips)
            references = goal = [self.target] * len(clips)
        keeper = Keeper(view, clips, self.bound, references, goal is not None, self.hear_every, self.stop)
        taken = [0] * len(clips)
        for restart in range(self.restarts):
            rngs = [clip.rng("pgd", self.severity, f"{self.seed}{restart or ''}") for clip in clips]
            for index, steps in enumerate(self._once(view, clips, texts, rngs, keeper)):
                taken[index] += steps
        kept = [best for best in keeper.best if best is not None]
        pcms, after = [pcm for _, pcm, _ in kept], [text for _, _, text in kept]
        facts = report(view, clips, before, after, goal)
        for pcm_set, when in ((None, "before"), (pcms, "after")):
            rngs = [clip.rng("loss", self.severity, self.seed) for clip in clips]
            for one, loss in zip(facts, losses_of(view, clips, pcm_set, texts, rngs), strict=True):
                one[f"loss_{when}"] = loss
        return [
            Attacked(clip, pcm, {**fact, "steps": steps})
            for clip, pcm, fact, steps in zip(clips, pcms, facts, taken, strict=True)
        ]

    def _once(
        self, view: View, clips: list[Clip], texts: list[str], rngs: list[np.random.Generator], keeper: Keeper
    ) -> list[int]:
        waves, batch = prepare(view, clips, texts, rngs)
        radii = torch.tensor([self.bound.radius(clip.samples) for clip in clips], device=waves.device)
        starts = [self.bound.draw(clip.samples, rng) for clip, rng in zip(clips, rngs, strict=True)]
        delta = tensor_of(starts, waves) if self.random_start else torch.zeros_like(waves)
        delta = (waves + delta).clamp(-1, 1) - waves
        towards = 1.0 if self.target is None else -1.0

        def update(here: Tensor, slope: Tensor, which: list[int]) -> Tensor:
            own = radii[which]
            return self.bound.project(here + towards * self.step * self.bound.step(slope, own), own)

        taken = descend(view, waves, batch, delta, update, self.steps, keeper.watch)
        unheard = [index for index, steps in enumerate(taken) if not (self.hear_every and steps % self.hear_every == 0)]
        if unheard:
            keeper.hear(delta, unheard)
        return taken
