"""Adaptive attacks on a defended recogniser (Athalye et al. 2018): expectation over transformation for random steps,
straight-through gradients for steps without a derivative.

The draws of a clip come from its own RNG, so that an adaptive attack does not depend on the batch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from speech_robust_bench.attacks.clips import AttackBatch
from speech_robust_bench.attacks.registry import EOT_DRAWS
from speech_robust_bench.attacks.views.base import View, WrappedView
from speech_robust_bench.attacks.views.open_view import open_view
from speech_robust_bench.extensions.defences.smooth import ENHANCERS, Smooth, noise

DRAWS = EOT_DRAWS
Transform = Callable[[Tensor, AttackBatch], Tensor]


def straight_through(function: Callable[[np.ndarray], np.ndarray]) -> Transform:
    """A step without a derivative, clip by clip: its output forwards, the unchanged gradient backwards."""

    def apply(waves: Tensor, batch: AttackBatch) -> Tensor:
        done = waves.detach().clone()
        for row, length in zip(done, batch.lengths.tolist(), strict=True):
            output = np.asarray(function(row[:length].cpu().numpy()))
            row[:length] = torch.from_numpy(np.ascontiguousarray(output)).to(row)
        return waves + (done - waves).detach()

    return apply


def random_noise(sigma: float, kind: str = "white") -> Transform:
    """The noise of a defence, drawn from each clip's own RNG."""

    def apply(waves: Tensor, batch: AttackBatch) -> Tensor:
        added = np.zeros(waves.shape, np.float32)
        for row, length, rng in zip(added, batch.lengths.tolist(), batch.rngs, strict=True):
            row[:length] = noise(kind, sigma, length, rng)
        return waves + torch.from_numpy(added).to(waves)

    return apply


@dataclass
class Defended(WrappedView):
    """A recogniser behind random or non-differentiable steps: losses and gradients are means over `draws` of them."""

    transforms: list[Transform] = field(default_factory=list)
    draws: int = DRAWS

    @classmethod
    def around(cls, smooth: Smooth, inner: View, eot: int | None) -> View:
        """The view of a smoothed recogniser; `eot=0` is that of a naive attacker, who ignores the defence."""
        steps = [random_noise(smooth.sigma, smooth.noise)] if smooth.sigma else []
        if smooth.enhance != "none":
            steps.append(straight_through(lambda samples: ENHANCERS[smooth.enhance](samples, smooth.sigma)))
        draws = DRAWS if eot is None else eot
        if not smooth.sigma:  # nothing random to average over
            draws = min(draws, 1)
        return cls(smooth, inner=inner, transforms=steps if draws else [], draws=max(1, draws))

    def losses(self, waves: Tensor, batch: AttackBatch) -> Tensor:
        """The losses under one draw of the random steps; `gradient` and `values` average over several."""
        for transform in self.transforms:
            waves = transform(waves, batch)
        return self.inner.losses(waves, batch)

    def gradient(self, waves: Tensor, batch: AttackBatch) -> tuple[Tensor, Tensor]:
        # One draw at a time, which needs the memory of one.
        parts = [super(Defended, self).gradient(waves, batch) for _ in range(self.draws)]
        draw_losses, slopes = zip(*parts, strict=True)
        return torch.stack(draw_losses).mean(0), torch.stack(slopes).mean(0)

    def values(self, waves: Tensor, batch: AttackBatch) -> Tensor:
        return torch.stack([super(Defended, self).values(waves, batch) for _ in range(self.draws)]).mean(0)


def defended_view(recogniser: Smooth, precision: torch.dtype | None, eot: int | None) -> View:
    """The view of a smoothed recogniser around that of the recogniser inside."""
    return Defended.around(recogniser, open_view(recogniser.inner, precision=precision), eot)
