"""Projected gradient descent whose step size adapts itself: APGD (Croce and Hein 2020, Algorithm 1), clip by clip.

It begins with momentum and steps of one radius; theirs are of two, after which little is left of where one was, and few
calls of a large model have no time to recover. At checkpoints that come ever closer, a clip whose loss rose in fewer
than three quarters of its steps, or whose best loss has not changed since the last one, goes back to its best point
with half the step size. There is nothing to tune.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from speech_robust_bench.attacks.clips import Bound
from speech_robust_bench.attacks.standard import AUTO

MOMENTUM = 0.75
ENOUGH_RISES = 0.75
FLAT = 0.01  # a loss that rises by no more than this share of itself has not moved


def checkpoints(steps: int) -> list[int]:
    """The steps after which step sizes are reviewed: 22 % of all, then 0.03 less each time but never below 6 %."""
    shares = [0.0, 0.22]
    while shares[-1] < 1:
        shares.append(shares[-1] + max(shares[-1] - shares[-2] - 0.03, 0.06))
    return sorted({math.ceil(round(share * steps, 6)) for share in shares[1:] if share <= 1})


class AdaptiveSteps:
    """Step size, momentum and best point of every clip; `update` is what `descend` asks for."""

    def __init__(self, bound: Bound, radii: Tensor, start: Tensor, steps: int) -> None:
        self.bound, self.radii = bound, radii
        self.checkpoints = checkpoints(steps)
        self.step = 0
        count = len(start)
        self.size = torch.full((count,), AUTO.first_step, device=start.device)
        self.previous, self.best = start.clone(), start.clone()
        self.best_slope = torch.zeros_like(start)
        self.best_loss = torch.full((count,), -torch.inf, device=start.device)
        self.last_loss, self.first_loss = self.best_loss.clone(), self.best_loss.clone()
        self.rises = torch.zeros(count, device=start.device)
        self.reviewed = 0  # the step of the last checkpoint
        self.halved = torch.zeros(count, dtype=torch.bool, device=start.device)  # at the last checkpoint
        self.loss_reviewed = self.best_loss.clone()  # the best loss at the last checkpoint
        self.last_rise = torch.zeros(count, device=start.device)  # the step at which the best loss rose last

    def update(self, here: Tensor, slope: Tensor, losses: Tensor, which: list[int]) -> Tensor:
        """The next perturbations of some clips."""
        here, slope = self._observe(here, slope, losses.to(self.best_loss), which)
        radii, width = self.radii[which], here.shape[1]
        previous = self.previous[which, :width]
        target = self.bound.project(here + self.size[which, None] * self.bound.step(slope, radii), radii)
        share = MOMENTUM if self.step > 1 else 1.0
        self.previous[which, :width] = here
        return self.bound.project(here + share * (target - here) + (1 - share) * (here - previous), radii)

    def _observe(self, here: Tensor, slope: Tensor, losses: Tensor, which: list[int]) -> tuple[Tensor, Tensor]:
        """Remember the best point, and go back to it with half the step where a checkpoint says so."""
        width = here.shape[1]
        if self.step == 0:
            self.first_loss[which] = losses
        self.rises[which] += (losses > self.last_loss[which]).float()
        self.last_loss[which] = losses
        better = losses > self.best_loss[which]
        chosen = [index for index, rose in zip(which, better.tolist(), strict=True) if rose]
        self.best[chosen, :width], self.best_slope[chosen, :width] = here[better], slope[better]
        self.best_loss[chosen] = losses[better]
        self.last_rise[chosen] = float(self.step)
        if self.step in self.checkpoints:
            here, slope = self._review(here, slope, which)
        self.step += 1
        return here, slope

    def _review(self, here: Tensor, slope: Tensor, which: list[int]) -> tuple[Tensor, Tensor]:
        width = here.shape[1]
        few_rises = self.rises[which] < ENOUGH_RISES * (self.step - self.reviewed)
        stuck = ~self.halved[which] & (self.best_loss[which] <= self.loss_reviewed[which])
        halve = few_rises | stuck
        self.size[which] = torch.where(halve, self.size[which] / 2, self.size[which])
        self.halved[which], self.loss_reviewed[which] = halve, self.best_loss[which]
        self.rises[which] = 0
        self.reviewed = self.step
        here = torch.where(halve[:, None], self.best[which, :width], here)
        slope = torch.where(halve[:, None], self.best_slope[which, :width], slope)
        previous = torch.where(halve[:, None], here, self.previous[which, :width])
        self.previous[which, :width] = previous
        return here, slope

    def signs_of_masking(self, which: Sequence[int]) -> list[list[str]]:
        """For some clips, what suggests that gradients do not tell where the loss rises."""
        signs: list[list[str]] = []
        for index in which:
            first, best = float(self.first_loss[index]), float(self.best_loss[index])
            own = []
            if best - first <= FLAT * max(abs(first), FLAT):
                own.append("flat loss")
            elif float(self.last_rise[index]) < self.step / 4 and self.step >= 8:
                own.append("more steps do not help")
            signs.append(own)
        return signs
