"""`srb attack auto`: an attack without settings, so that the result does not depend on how well somebody set it up.

It is to speech what AutoAttack (Croce and Hein 2020) is to images: per clip and SNR an ensemble, of which the worst
stored result counts. Gradient steps raise first the model's own loss, then the margin of each token; from a random
point, from the worst so far, from the universal perturbation where there is one, and from other random points. Clips
that are not broken by then get a black-box search. A clip at 100 % WER leaves.

The step size adapts itself, clip by clip (APGD, Algorithm 1), from steps of one radius; theirs of two leave little of
the start, and few calls of a large model have no time to recover. At checkpoints that come ever closer, a clip whose
loss rose in fewer than three quarters of its steps, or whose best loss has not changed since the last one, goes back to
its best point with half the step size.

The margin is how far the right tokens are from losing, token by token (the idea of Carlini and Wagner's f6, and of
AutoAttack's DLR). It does not saturate where a model is sure of a transcript and its own loss and gradient are nearly
zero; and a token that has lost counts no more.

Signs of gradient masking (Athalye et al. 2018) are recorded per clip: the loss does not move, more steps do not help,
or the search without gradients beats those with them.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from speech_robust_bench.attacks.clips import AttackBatch, AttackClip, Bound, norm2, to_float
from speech_robust_bench.attacks.pgd import (
    Attacked,
    BestCandidates,
    attacked_clips,
    descend,
    outcomes,
    own_transcripts,
    prepare,
    tensor_of,
)
from speech_robust_bench.attacks.registry import AttackPlan
from speech_robust_bench.attacks.universal import Perturbation
from speech_robust_bench.attacks.views.base import View, WrappedView
from speech_robust_bench.builders.perturb.environment import to_length
from speech_robust_bench.core.options import Settings
from speech_robust_bench.extensions.attacks.black_box import Genetic
from speech_robust_bench.extensions.attacks.rows import STANDARD_AUTO as AUTO

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
        """For some clips, the signs that the gradients do not show where the loss rises."""
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


LOST = 1.0  # a token that trails by this much has lost


def hinge(scores: Tensor, right: Tensor) -> Tensor:
    """Per clip, the mean over its tokens of min(best other score - right score, LOST).

    `scores` (clip, position, token) are logits, `right` (clip, position) the right tokens, -100 where there is none.
    """
    known = right != -100
    own = scores.gather(2, right.clamp_min(0)[..., None])[..., 0]
    others = scores.scatter(2, right.clamp_min(0)[..., None], float("-inf")).amax(-1)
    return ((others - own).clamp_max(LOST) * known).sum(1) / known.sum(1).clamp_min(1)


@dataclass
class MarginView(WrappedView):
    """Another view, with margins in place of its losses."""

    def losses(self, waves: Tensor, batch: AttackBatch) -> Tensor:
        right = pad_sequence(batch.right_tokens, batch_first=True, padding_value=-100)
        scores = self.inner.token_scores(waves, batch, batch.right_tokens)[:, : right.shape[1]]
        return hinge(scores.to(torch.promote_types(scores.dtype, torch.float32)), right.to(scores.device))


def margin_view(view: View) -> View | None:
    """The same model behind the same defence, with margins for losses; None if it does not tell its tokens' scores."""
    if isinstance(view, WrappedView):
        by_margin = margin_view(view.inner)
        return dataclasses.replace(view, inner=by_margin) if by_margin is not None else None
    if not view.has_margins:
        return None
    return MarginView(view.recogniser, view.precision, inner=view)


def right_tokens(view: View, waves: Tensor, batch: AttackBatch) -> list[Tensor]:
    """The tokens of the clean clips that are to lose, position by position, without the defence."""
    while isinstance(view, WrappedView):
        view = view.inner
    with torch.no_grad():
        return view.right_tokens(waves, batch)


BROKEN_WER = 1.0
FEW_STEPS = 20  # in all


@dataclass(frozen=True)
class Stage:
    """Some of the gradient calls: which loss they raise and where they begin."""

    loss: str  # "own" or "margin"
    start: str  # "random", "worst" (the worst result so far), "universal"
    steps: int

    def __str__(self) -> str:
        return f"{self.loss} loss from {self.start}"


@dataclass(frozen=True)
class Auto:
    """The ensemble. `steps` are gradient calls per clip in all, `queries` those of the black-box search."""

    bound: Bound
    severity: int = 0
    perturbation: Perturbation | None = None
    steps: int = AUTO.steps
    queries: int = AUTO.queries
    seed: str = ""
    name: str = field(default="auto", init=False)

    def describe(self) -> Settings:
        universal = self.perturbation.digest if self.perturbation else None
        settings = ("steps", "queries", "severity", "seed", "name")
        described = {key: getattr(self, key) for key in settings}
        return {"bound": asdict(self.bound), "universal": universal, "first_step": AUTO.first_step, **described}

    def stages(self, has_margin: bool) -> list[Stage]:
        """How the gradient calls are shared out."""
        other = "margin" if has_margin else "own"
        if self.steps < FEW_STEPS:  # restarts would leave every start too few
            first = max(1, round(0.65 * self.steps))
            rest = self.steps - first
            return [Stage("own", "random", first), *([Stage(other, "worst", rest)] if rest else [])]
        third, tenth = max(1, round(0.35 * self.steps)), max(1, round(0.1 * self.steps))
        again = "universal" if self.perturbation else "random"
        stages = [Stage("own", "random", third), Stage(other, "worst", third), Stage("own", again, tenth)]
        return [*stages, Stage(other, "random", max(1, self.steps - 2 * third - tenth))]

    def run(self, view: View, clips: list[AttackClip]) -> list[Attacked]:
        before = view.transcribe([clip.samples for clip in clips], clips[0].language)
        texts = own_transcripts(view, clips, before)
        search = _EnsembleSearch(self, view, clips, texts)
        for number, stage in enumerate(self.stages(margin_view(view) is not None)):
            search.gradient_stage(number, stage)
        search.query_stage()
        pcms, after = search.worst.best_of_each()
        attacked = attacked_clips(self, view, clips, pcms, texts, outcomes(clips, before, after), search.gradients)
        for clip, stage_name, queries, signs in zip(attacked, search.by, search.queries, search.signs, strict=True):
            clip.facts |= {"found_by": stage_name, "queries": queries, "gradient_masking": signs}
        return attacked


class _EnsembleSearch:
    """The worst result of every clip so far, the stage that found it, and its cost."""

    def __init__(self, attack: Auto, view: View, clips: list[AttackClip], texts: list[str]) -> None:
        self.attack, self.view, self.clips, self.texts = attack, view, clips, texts
        self.worst = BestCandidates(view, clips, attack.bound, [clip.text for clip in clips], stop=BROKEN_WER)
        self.gradients, self.queries = [0] * len(clips), [0] * len(clips)
        self.by = [""] * len(clips)
        self.signs: list[list[str]] = [[] for _ in clips]

    def left(self) -> list[int]:
        """The clips that are not broken yet."""
        return [index for index in range(len(self.clips)) if not self.worst.finished(index)]

    def gradient_stage(self, number: int, stage: Stage) -> None:
        """Gradient steps on the clips that are left."""
        left = self.left()
        if not left:
            return
        view = margin_view(self.view) if stage.loss == "margin" else self.view
        assert view is not None
        clips, bound = [self.clips[index] for index in left], self.attack.bound
        rngs = [clip.rng("auto", self.attack.severity, f"{self.attack.seed}{number}") for clip in clips]
        waves, batch = prepare(view, clips, [self.texts[index] for index in left], rngs)
        if stage.loss == "margin":
            batch = replace(batch, right_tokens=right_tokens(self.view, waves, batch))
        radii = torch.tensor([bound.radius(clip.samples) for clip in clips], device=waves.device)
        starts = [self._start(stage.start, index, rng) for index, rng in zip(left, rngs, strict=True)]
        delta = (waves + tensor_of(starts, waves)).clamp(-1, 1) - waves
        steps = AdaptiveSteps(bound, radii, delta, stage.steps)
        candidates = BestCandidates(
            self.view, clips, bound, [clip.text for clip in clips], every=max(1, stage.steps // 4), stop=BROKEN_WER
        )
        taken = descend(view, waves, batch, delta, steps.update, stage.steps, candidates.watch)
        unbroken = [place for place in range(len(clips)) if not candidates.finished(place)]
        if unbroken:
            candidates.consider(delta, unbroken)
            candidates.consider(steps.best, unbroken)
        for place, index in enumerate(left):
            self.gradients[index] += taken[place]
            kept = candidates.best[place]
            if kept is not None:
                self._keep(index, kept, str(stage))
        if number == 0:
            for place, signs in zip(unbroken, steps.signs_of_masking(unbroken), strict=True):
                self.signs[left[place]] += signs

    def _start(self, start: str, index: int, rng: np.random.Generator) -> np.ndarray:
        """The perturbation that a stage begins with."""
        clip, bound = self.clips[index], self.attack.bound
        kept = self.worst.best[index]
        if start == "worst" and kept is not None:
            return to_float(kept[1]) - clip.samples
        if start == "universal" and self.attack.perturbation is not None:
            noise = to_length(self.attack.perturbation.samples, len(clip.samples))
            return noise * np.float32(bound.radius(clip.samples) / max(norm2(noise), 1e-30))
        return bound.draw(clip.samples, rng)

    def _keep(self, index: int, result: tuple[float, np.ndarray, str], by: str) -> bool:
        """Take a result over if it is worse for the model than what there was."""
        kept = self.worst.best[index]
        if kept is not None and result[0] <= kept[0]:
            return False
        self.worst.best[index], self.by[index] = result, by
        return True

    def query_stage(self) -> None:
        """The black-box search, from the worst result of each clip that is left."""
        population = 10
        generations = self.attack.queries // population
        if not generations:
            return
        genetic = Genetic(self.attack.bound, self.attack.severity, generations, population)
        for index in self.left():
            clip, kept = self.clips[index], self.worst.best[index]
            assert kept is not None
            rng = clip.rng("auto", self.attack.severity, f"{self.attack.seed}queries")
            result, queries = genetic.search(self.view.recogniser, clip, rng, to_float(kept[1]) - clip.samples)
            self.queries[index] = queries
            if self._keep(index, result, "queries"):
                self.signs[index].append("queries beat gradients")


def make_auto(plan: AttackPlan) -> Auto:
    return Auto(plan.bound, plan.severity, plan.perturbation, **plan.settings.given("steps", "seed"))
