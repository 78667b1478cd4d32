"""`srb attack auto`: an attack without knobs, so that how robust a model looks does not depend on how it was attacked.

What AutoAttack (Croce and Hein 2020) is to images: per clip and SNR an ensemble, of which the worst stored result
counts. Gradient steps with a step size that adapts itself raise first the model's own loss and then the margin by
which each token loses, which does not saturate where the model is sure; from a random point, from the worst so far,
from the universal perturbation where there is one, and from other random points. Clips that are not broken by then get
a black-box search. A clip at 100 % WER leaves.

Signs of gradient masking (Athalye et al. 2018) are recorded per clip: the loss does not move, more steps do not help,
or the search without gradients beats those with them.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
import torch

from speech_robust_bench.attacks.apgd import AdaptiveSteps
from speech_robust_bench.attacks.clips import AttackClip, Bound, norm2, to_float
from speech_robust_bench.attacks.differentiable.base import View
from speech_robust_bench.attacks.differentiable.margin import margin_view, right_tokens
from speech_robust_bench.attacks.genetic import Genetic
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
from speech_robust_bench.attacks.standard import AUTO
from speech_robust_bench.attacks.universal import Perturbation
from speech_robust_bench.builders.perturb.noise import to_length

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

    def describe(self) -> dict[str, Any]:
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
            search.climb(number, stage)
        search.ask()
        pcms, after = search.worst.best_of_each()
        attacked = attacked_clips(self, view, clips, pcms, texts, outcomes(clips, before, after), search.gradients)
        for clip, stage_name, queries, signs in zip(attacked, search.by, search.queries, search.signs, strict=True):
            clip.facts |= {"found_by": stage_name, "queries": queries, "gradient_masking": signs}
        return attacked


class _EnsembleSearch:
    """The worst result of every clip so far, by whom it was found, and what it cost."""

    def __init__(self, attack: Auto, view: View, clips: list[AttackClip], texts: list[str]) -> None:
        self.attack, self.view, self.clips, self.texts = attack, view, clips, texts
        self.worst = BestCandidates(view, clips, attack.bound, [clip.text for clip in clips], stop=BROKEN_WER)
        self.gradients, self.queries = [0] * len(clips), [0] * len(clips)
        self.by = [""] * len(clips)
        self.signs: list[list[str]] = [[] for _ in clips]

    def left(self) -> list[int]:
        """The clips that are not broken yet."""
        return [index for index in range(len(self.clips)) if not self.worst.finished(index)]

    def climb(self, number: int, stage: Stage) -> None:
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

    def ask(self) -> None:
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
