"""Targeted attacks: make the model write a sentence of the attacker's choice. Each clip gets the target of the closest
length.

`cw` is Carlini and Wagner's attack on speech (2018), as Olivier runs it (5.3.1): Adam on the signs of the gradient of
loss + c |delta|, inside an L-inf ball. Whenever the model writes the target, the ball shrinks to 0.7 of what is in use,
and perturbation and step with it. robust_speech does the same; ART too, without the penalty. On Whisper the first token
counts double (Eq. 5.2).

`psychoacoustic` is the imperceptible attack of Qin et al. (2019), whose perturbation hides under the clip's masking
threshold. After `cw`, Adam lowers the model's loss plus alpha times the perturbation's power above the threshold
(`attacks.clips`); alpha grows while the model writes the target and shrinks while it does not. The least
audible stored result with the target is kept.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field

import numpy as np
import torch
from torch import Tensor

from speech_robust_bench.attacks.clips import AttackClip, Bound, above_threshold, batch_of, excess, threshold, to_float
from speech_robust_bench.attacks.pgd import (
    Attacked,
    attacked_clips,
    descend,
    outcomes,
    prepare,
    tensor_of,
    transcribed,
)
from speech_robust_bench.attacks.registry import AttackPlan
from speech_robust_bench.attacks.views.base import View
from speech_robust_bench.attacks.views.transformers_models import Seq2SeqView
from speech_robust_bench.core.options import Settings
from speech_robust_bench.extensions.attacks.rows import TARGETS

BETAS, TINY = (0.9, 0.999), 1e-8  # of Adam
GROW, SHRINK = 1.2, 0.8  # of alpha, as in Qin et al.
Kept = tuple[np.ndarray, str]  # stored samples and their transcript


def closest(text: str, targets: Sequence[str]) -> str:
    """The target whose length is nearest to the transcript's, but not the transcript itself."""
    others = [target for target in targets if target.lower() != text.lower()] or list(targets)
    return min(others, key=lambda target: abs(len(target) - len(text)))


@dataclass(frozen=True)
class TargetedInBall:
    """The settings that targeted attacks share: the targets, the ball and the weight of the penalty."""

    targets: tuple[str, ...] = TARGETS
    eps: float = 0.1  # radius of the ball

    @property
    def bound(self) -> Bound:
        return Bound("linf", eps=self.eps)

    def describe(self) -> Settings:
        return {key: value for key, value in asdict(self).items() if key != "targets"}


def penalised(slope: Tensor, delta: Tensor, weight: float) -> Tensor:
    """The signs of the gradient of loss + weight x |delta|."""
    return (slope + weight * delta / delta.norm(dim=1, keepdim=True).clamp_min(TINY)).sign()


@dataclass(frozen=True)
class CarliniWagner(TargetedInBall):
    """Settings of the attack; the defaults are those for Whisper tiny and base."""

    learning_rate: float = 0.01
    steps: int = 2000
    regularisation: float = 0.25
    shrink: float = 0.7
    shrinks: int = 8
    first_weight: float = 1.0
    transcribe_every: int = 10
    severity: int = 0
    name: str = field(default="cw", init=False)

    def run(self, view: View, clips: list[AttackClip]) -> list[Attacked]:
        before = view.transcribe([clip.samples for clip in clips], clips[0].language)
        goals = [closest(clip.text, self.targets) for clip in clips]
        if isinstance(view, Seq2SeqView):
            view = dataclasses.replace(view, first_weight=self.first_weight)
        texts = [view.spell(goal) for goal in goals]
        waves, batch = prepare(view, clips, texts, [clip.rng("cw", 0) for clip in clips])
        delta = torch.zeros_like(waves)
        search = TargetSearch(self, view, clips, goals, waves)
        taken = descend(view, waves, batch, delta, search.update, self.steps, search.watch)
        search.consider(delta, [index for index, kept in enumerate(search.kept) if kept is None])
        pcms, after = zip(*(kept for kept in search.kept if kept is not None), strict=True)
        facts = outcomes(clips, before, list(after), goals)
        for fact, radius in zip(facts, search.radii.tolist(), strict=True):
            fact["last_radius"] = round(radius, 6)
        return attacked_clips(self, view, clips, list(pcms), texts, facts, taken)


class Adam:
    """Adam (Kingma and Ba 2015) on some clips of a batch at a time, each with moments of its own."""

    def __init__(self, like: Tensor, learning_rate: float) -> None:
        self.mean, self.square = torch.zeros_like(like), torch.zeros_like(like)
        self.learning_rate, self.steps = learning_rate, 0

    def step(self, delta: Tensor, slope: Tensor, which: list[int], scale: Tensor | float = 1.0) -> Tensor:
        """The next perturbations of the clips `which`, which took every step so far; `scale` multiplies their steps."""
        self.steps += 1
        width = delta.shape[1]
        mean = BETAS[0] * self.mean[which, :width] + (1 - BETAS[0]) * slope
        square = BETAS[1] * self.square[which, :width] + (1 - BETAS[1]) * slope.square()
        self.mean[which, :width], self.square[which, :width] = mean, square
        speed = (square / (1 - BETAS[1] ** self.steps)).sqrt() + TINY
        return delta - scale * self.learning_rate * mean / (1 - BETAS[0] ** self.steps) / speed


class TargetSearch:
    """Adam's moments, the radius and the faintest success of every clip."""

    def __init__(
        self, settings: CarliniWagner, view: View, clips: list[AttackClip], goals: list[str], waves: Tensor
    ) -> None:
        self.settings, self.view, self.clips, self.goals = settings, view, clips, goals
        self.adam = Adam(waves, settings.learning_rate)
        self.radii = torch.full((len(clips),), settings.eps, device=waves.device)
        self.left = [settings.shrinks] * len(clips)
        self.kept: list[Kept | None] = [None] * len(clips)

    def update(self, delta: Tensor, slope: Tensor, losses: Tensor, which: list[int]) -> Tensor:
        radii = self.radii[which, None]
        signs = penalised(slope, delta, self.settings.regularisation)
        return self.adam.step(delta, signs, which, radii / self.settings.eps).clamp(-radii, radii)

    def watch(self, step: int, delta: Tensor, active: list[int]) -> list[bool]:
        if step % self.settings.transcribe_every:
            return [False] * len(active)
        reached = self.consider(delta, active)
        for index in reached:
            used = float(delta[index].abs().max())
            self.radii[index] = self.settings.shrink * min(float(self.radii[index]), used)
            delta[index] *= self.settings.shrink
            self.left[index] -= 1
        return [self.left[index] < 0 for index in active]

    def consider(self, delta: Tensor, which: list[int]) -> list[int]:
        """Store and transcribe candidates; keep those that say their target, and at the end the first of the others."""
        last = not self.settings.steps or self.adam.steps >= self.settings.steps
        reached = []
        for index, pcm, text, error in transcribed(
            self.view, self.settings.bound, self.clips, self.goals, delta, which
        ):
            if error == 0:
                reached.append(index)
            if error == 0 or (last and self.kept[index] is None):
                self.kept[index] = (pcm, text)
        return reached


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
        self.kept: list[Kept | None] = [None] * len(clips)

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
        for index, pcm, text, error in transcribed(
            self.view, self.settings.bound, self.clips, self.goals, delta, active
        ):
            self.alpha[index] *= GROW if error == 0 else SHRINK
            share = above_threshold(self.clips[index].samples, to_float(pcm)) if error == 0 else np.inf
            if share < self.shares[index]:
                self.shares[index], self.kept[index] = share, (pcm, text)
        return [False] * len(active)


def make_cw(plan: AttackPlan) -> CarliniWagner:
    return CarliniWagner(**targeted_settings(plan))


def targeted_settings(plan: AttackPlan) -> Settings:
    """The settings that targeted attacks share."""
    chosen = plan.settings.given("eps", "steps", "transcribe_every", "regularisation")
    return {"targets": tuple(plan.settings.target) or TARGETS, **chosen}


def make_psychoacoustic(plan: AttackPlan) -> Psychoacoustic:
    return Psychoacoustic(make_cw(plan), **plan.settings.given("steps", "transcribe_every"))
