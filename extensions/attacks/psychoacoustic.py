"""The imperceptible attack of Qin et al. (2019): a targeted perturbation that hides under the clip's masking threshold.

First Carlini and Wagner's attack finds any perturbation that makes the model write the target. Then Adam lowers the
model's loss plus alpha times the perturbation's power above the masking threshold (`attacks.masking_threshold`); alpha
grows while the target is written and shrinks while it is not. The least audible stored result that says the target is
kept.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field

import numpy as np
import torch
from torch import Tensor

from speech_robust_bench.attacks.clips import AttackClip, Bound, to_float, word_errors
from speech_robust_bench.attacks.gradient_loop import Attacked, attacked_clips, descend, outcomes, prepare, tensor_of
from speech_robust_bench.attacks.masking_threshold import above_threshold, batch_of, excess, threshold
from speech_robust_bench.attacks.registry import AttackPlan
from speech_robust_bench.attacks.views.base import View
from speech_robust_bench.core.options import Settings
from speech_robust_bench.extensions.attacks.cw import Adam, CarliniWagner, make_cw

GROW, SHRINK = 1.2, 0.8  # of alpha, as in Qin et al.


@dataclass(frozen=True)
class Psychoacoustic:
    """`first` finds the target; `steps` then hide it."""

    first: CarliniWagner = field(default_factory=CarliniWagner)
    steps: int = 1000
    learning_rate: float = 0.0005
    alpha: float = 0.05
    transcribe_every: int = 10
    severity: int = 0
    name: str = field(default="psychoacoustic", init=False)

    @property
    def bound(self) -> Bound:
        return self.first.bound

    def describe(self) -> Settings:
        own = {key: value for key, value in asdict(self).items() if key != "first"}
        return {**own, "first": self.first.describe()}

    def run(self, view: View, clips: list[AttackClip]) -> list[Attacked]:
        by_id = {attacked.clip.id: attacked for attacked in self.first.run(view, clips)}
        results = [by_id[clip.id] for clip in clips]
        shares = [above_threshold(clip.samples, to_float(by_id[clip.id].pcm)) for clip in clips]
        first_steps = [attacked.facts["steps"] for attacked in results]
        which = [index for index, attacked in enumerate(results) if attacked.facts["success"] == 1.0]
        if which:
            self._hide(view, results, shares, which)
        for attacked, share, steps in zip(results, shares, first_steps, strict=True):
            attacked.facts |= {"first_steps": steps, "first_above_threshold": round(share, 4)}
        return results

    def _hide(self, view: View, results: list[Attacked], shares: list[float], which: list[int]) -> None:
        """The second stage, for the clips that already say their target: `results` of them become less audible."""
        clips = [results[index].clip for index in which]
        goals = [results[index].facts["target"] for index in which]
        texts = [view.spell(goal) for goal in goals]
        waves, batch = prepare(view, clips, texts, [clip.rng(self.name, 0) for clip in clips])
        delta = tensor_of([to_float(results[index].pcm) - results[index].clip.samples for index in which], waves)
        search = _HidingSearch(self, view, clips, goals, delta, [shares[index] for index in which])
        taken = descend(view, waves, batch, delta, search.update, self.steps, search.watch)
        for place, index in enumerate(which):
            results[index].facts["steps"] = taken[place]
            if (kept := search.kept[place]) is not None:
                before = results[index].facts["prediction_before"]
                facts = outcomes([clips[place]], [before], [kept[1]], [goals[place]])
                (results[index],) = attacked_clips(
                    self, view, [clips[place]], [kept[0]], [texts[place]], facts, [taken[place]]
                )


class _HidingSearch:
    """The weight of the second loss and the least audible success of every clip."""

    def __init__(
        self,
        settings: Psychoacoustic,
        view: View,
        clips: list[AttackClip],
        goals: list[str],
        delta: Tensor,
        shares: list[float],
    ) -> None:
        self.settings, self.view, self.clips, self.goals = settings, view, clips, goals
        self.shares = list(shares)  # above the threshold, the least so far
        self.adam = Adam(delta, settings.learning_rate)
        self.limits, self.scales = batch_of([threshold(clip.samples) for clip in clips], delta)
        self.alpha = torch.full((len(clips),), settings.alpha, dtype=delta.dtype, device=delta.device)
        self.kept: list[tuple[np.ndarray, str] | None] = [None] * len(clips)

    def update(self, delta: Tensor, slope: Tensor, losses: Tensor, which: list[int]) -> Tensor:
        change = delta.detach().requires_grad_()
        (audible_slope,) = torch.autograd.grad(self._excess(change, which).sum(), change)
        eps = self.settings.bound.eps
        assert eps is not None
        return self.adam.step(delta, slope + self.alpha[which, None] * audible_slope, which).clamp(-eps, eps)

    def _excess(self, change: Tensor, which: list[int]) -> Tensor:
        full = torch.nn.functional.pad(change, (0, self.adam.mean.shape[1] - change.shape[1]))
        return excess(full, self.limits[which], self.scales[which])

    def watch(self, step: int, delta: Tensor, active: list[int]) -> list[bool]:
        if step % self.settings.transcribe_every:
            return [False] * len(active)
        moves = delta.detach().cpu().numpy()
        pcms = [
            self.settings.bound.store(self.clips[index].samples, moves[index, : len(self.clips[index].samples)])
            for index in active
        ]
        language = self.clips[0].language
        hypotheses = self.view.transcribe([to_float(pcm) for pcm in pcms], language)
        errors = word_errors([self.goals[index] for index in active], hypotheses, language)
        for index, pcm, text, error in zip(active, pcms, hypotheses, errors, strict=True):
            self.alpha[index] *= GROW if error == 0 else SHRINK
            if error == 0:
                share = above_threshold(self.clips[index].samples, to_float(pcm))
                if share < self.shares[index]:
                    self.shares[index], self.kept[index] = share, (pcm, text)
        return [False] * len(active)


def make_psychoacoustic(plan: AttackPlan) -> Psychoacoustic:
    return Psychoacoustic(make_cw(plan), **plan.settings.given("steps", "transcribe_every"))
