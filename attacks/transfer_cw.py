"""Targeted perturbations that are meant to fool models nobody has looked into (Olivier, 6.3.1 and D.2.2).

Carlini and Wagner's attack on the summed losses of several proxies, with their dropout on, so that the perturbation
does not fit one set of weights alone. Another model is the judge: what is kept is the candidate whose transcript by the
judge is nearest to the target, not the one that the proxies write best.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch
from torch import Tensor

from speech_robust_bench.attacks.clips import AttackBatch, AttackClip
from speech_robust_bench.attacks.cw import TargetedInBall, closest
from speech_robust_bench.attacks.differentiable.base import View, WrappedView
from speech_robust_bench.attacks.differentiable.ensemble import Ensemble
from speech_robust_bench.attacks.gradient_loop import (
    Attacked,
    BestCandidates,
    attacked_clips,
    descend,
    outcomes,
    prepare,
)
from speech_robust_bench.models.interface import Recogniser


@dataclass(frozen=True)
class TransferCw(TargetedInBall):
    """Settings of the attack; the defaults are Olivier's (D.2.2)."""

    eps: float = 0.015
    learning_rate: float = 0.0005
    steps: int = 10_000
    regularisation: float = 10.0
    transcribe_every: int = 10
    dropout: bool = True
    judge: str | None = None  # as it was asked for; the model itself comes with the view
    severity: int = 0
    name: str = field(default="transfer_cw", init=False)

    def run(self, view: View, clips: list[AttackClip]) -> list[Attacked]:
        before = view.transcribe([clip.samples for clip in clips], clips[0].language)
        goals = [closest(clip.text, self.targets) for clip in clips]
        texts = [view.spell(goal) for goal in goals]
        waves, batch = prepare(view, clips, texts, [clip.rng(self.name, 0) for clip in clips])
        delta = torch.zeros_like(waves)
        judged = BestCandidates(view, clips, self.bound, goals, targeted=True, every=self.transcribe_every)

        def update(here: Tensor, slope: Tensor, losses: Tensor, which: list[int]) -> Tensor:
            moved = here - self.learning_rate * (slope + 2 * self.regularisation * here)
            return moved.clamp(-self.eps, self.eps)

        climbed = DropoutView(view.recogniser, inner=view) if self.dropout else view
        taken = descend(climbed, waves, batch, delta, update, self.steps, judged.watch)
        if unseen := [index for index, steps in enumerate(taken) if steps % self.transcribe_every or not steps]:
            judged.consider(delta, unseen)
        pcms, after = judged.best_of_each()
        return attacked_clips(self, view, clips, pcms, texts, outcomes(clips, before, after, goals), taken)


@dataclass
class DropoutView(WrappedView):
    """Another view with the dropout of its models on; draws of a clip come from its own random stream."""

    def gradient(self, waves: Tensor, batch: AttackBatch) -> tuple[Tensor, Tensor]:
        # Clip by clip: the masks of a batch would depend on who is in it.
        losses, slopes = torch.zeros(len(waves), device=waves.device), torch.zeros_like(waves)
        devices = [waves.device] if waves.device.type == "cuda" else []
        for index, (length, rng) in enumerate(zip(batch.lengths.tolist(), batch.rngs, strict=True)):
            with torch.random.fork_rng(devices), dropout_on(self.inner):
                torch.manual_seed(int(rng.integers(2**31)))
                loss, slope = self.inner.gradient(waves[index : index + 1, :length], batch.select([index]))
            losses[index], slopes[index, :length] = loss[0].to(losses), slope[0].to(slopes)
        return losses, slopes

    def values(self, waves: Tensor, batch: AttackBatch) -> Tensor:
        return self.inner.values(waves, batch)


@contextmanager
def dropout_on(view: View) -> Iterator[None]:
    """The dropout layers of a view's models drop; everything else stays as it is when transcribing."""
    layers = [layer for model in _models(view) for layer in model.modules() if isinstance(layer, torch.nn.Dropout)]
    before = [layer.training for layer in layers]
    try:
        for layer in layers:
            layer.train()
        yield
    finally:
        for layer, training in zip(layers, before, strict=True):
            layer.train(training)


def _models(view: View) -> list[torch.nn.Module]:
    if isinstance(view, Ensemble):
        return [model for part in view.views for model in _models(part)]
    if isinstance(view, WrappedView):
        return _models(view.inner)
    model = getattr(view, "model", None) or getattr(view, "module", None)
    return [model] if isinstance(model, torch.nn.Module) else []


def judged_by(views: Sequence[View], judge: Recogniser | None) -> View:
    """The proxies as one view whose transcripts are the judge's; the first proxy's own without one."""
    return Ensemble(judge or views[0].recogniser, views=list(views))
