"""Carlini and Wagner's targeted attack on speech (2018), as Olivier runs it (5.3.1): make the model write a sentence of
the attacker's choice, as faintly as possible.

Adam on the signs of the gradient of loss + c |delta|, inside an L-inf ball. Whenever the model writes the target, the
ball shrinks to 0.7 of what is in use, and perturbation and step with it. robust_speech does the same; ART too, without
the penalty. On Whisper the first token counts double (Eq. 5.2). Each clip gets the target of the closest length.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field

import numpy as np
import torch
from torch import Tensor

from speech_robust_bench.attacks.clips import AttackClip, Bound, to_float, word_errors
from speech_robust_bench.attacks.gradient_loop import Attacked, attacked_clips, descend, outcomes, prepare
from speech_robust_bench.attacks.registry import AttackPlan
from speech_robust_bench.attacks.views.base import View
from speech_robust_bench.attacks.views.transformers_models import Seq2SeqView
from speech_robust_bench.core.options import Settings
from speech_robust_bench.extensions.attacks.rows import TARGETS

BETAS, TINY = (0.9, 0.999), 1e-8  # of Adam


def closest(text: str, targets: Sequence[str]) -> str:
    """The target whose length is nearest to the transcript's, but not the transcript itself."""
    others = [target for target in targets if target.lower() != text.lower()] or list(targets)
    return min(others, key=lambda target: abs(len(target) - len(text)))


@dataclass(frozen=True)
class TargetedInBall:
    """The settings that targeted attacks share: each clip gets one of the targets, inside an L-inf ball."""

    targets: tuple[str, ...] = TARGETS
    eps: float = 0.1  # radius of the ball

    @property
    def bound(self) -> Bound:
        return Bound("linf", eps=self.eps)

    def describe(self) -> Settings:
        return {key: value for key, value in asdict(self).items() if key != "targets"}


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
        search = _TargetSearch(self, view, clips, goals, waves)
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
        """The next place of the clips `which`, all of which have taken every step so far; `scale` is of their steps."""
        self.steps += 1
        width = delta.shape[1]
        mean = BETAS[0] * self.mean[which, :width] + (1 - BETAS[0]) * slope
        square = BETAS[1] * self.square[which, :width] + (1 - BETAS[1]) * slope.square()
        self.mean[which, :width], self.square[which, :width] = mean, square
        speed = (square / (1 - BETAS[1] ** self.steps)).sqrt() + TINY
        return delta - scale * self.learning_rate * mean / (1 - BETAS[0] ** self.steps) / speed


class _TargetSearch:
    """Adam's moments, the radius and the faintest success of every clip."""

    def __init__(
        self, settings: CarliniWagner, view: View, clips: list[AttackClip], goals: list[str], waves: Tensor
    ) -> None:
        self.settings, self.view, self.clips, self.goals = settings, view, clips, goals
        self.adam = Adam(waves, settings.learning_rate)
        self.radii = torch.full((len(clips),), settings.eps, device=waves.device)
        self.left = [settings.shrinks] * len(clips)
        self.kept: list[tuple[np.ndarray, str] | None] = [None] * len(clips)

    def update(self, delta: Tensor, slope: Tensor, losses: Tensor, which: list[int]) -> Tensor:
        radii = self.radii[which, None]
        size = delta.norm(dim=1, keepdim=True).clamp_min(TINY)
        signs = (slope + self.settings.regularisation * delta / size).sign()
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
        """Store and transcribe candidates; those that say their target are kept, as is a first one that does not."""
        if not which:
            return []
        moves = delta.detach().cpu().numpy()
        pcms = [
            self.settings.bound.store(self.clips[index].samples, moves[index, : len(self.clips[index].samples)])
            for index in which
        ]
        language = self.clips[0].language
        hypotheses = self.view.transcribe([to_float(pcm) for pcm in pcms], language)
        errors = word_errors([self.goals[index] for index in which], hypotheses, language)
        reached = [index for index, error in zip(which, errors, strict=True) if error == 0]
        last = not self.settings.steps or self.adam.steps >= self.settings.steps
        for index, pcm, text in zip(which, pcms, hypotheses, strict=True):
            if index in reached or (last and self.kept[index] is None):
                self.kept[index] = (pcm, text)
        return reached


def make_cw(plan: AttackPlan) -> CarliniWagner:
    return CarliniWagner(**targeted_settings(plan))


def targeted_settings(plan: AttackPlan) -> Settings:
    """The settings that targeted attacks share."""
    chosen = plan.settings.given("eps", "steps", "transcribe_every", "regularisation")
    return {"targets": tuple(plan.settings.target) or TARGETS, **chosen}
