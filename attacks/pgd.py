"""The settings of the attacks that are compared on the leaderboard: those of the paper's runs.

Nothing heavy is imported, because `srb verify` reads them without torch.

Projected gradient descent (Madry et al. 2018), per utterance: the benchmark's `pgd`, and FGSM as its one-step form.

Defaults are those of the paper's runs: 100 steps of 0.4 of the radius along the unit-L2 gradient, a random start, the
clip clamped to [-1, 1]. L-inf steps go along the signs (Olivier, Eq. 2.3 to 2.6).
"""

from __future__ import annotations

from collections.abc import Mapping
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
from speech_robust_bench.attacks.registry import AttackPlan
from speech_robust_bench.attacks.views.base import View


@dataclass(frozen=True)
class StandardPgd:
    """Per utterance: 100 steps of 0.4 of the radius, a random start, the worst of every twentieth candidate."""

    steps: int = 100
    step: float = 0.4
    random_start: bool = True
    restarts: int = 1
    transcribe_every: int = 20
    target: str | None = None
    stop: float | None = None


@dataclass(frozen=True)
class StandardUniversal:
    """One perturbation for all: at most 10 epochs of 20 steps a clip."""

    epochs: int = 10
    learning_rate: float = 0.001
    seconds: float = 18.0
    clip_radius: float = 0.003
    cer: float = 0.7
    enough: float = 1.0
    transcribe_every: int = 1


@dataclass(frozen=True)
class StandardAuto:
    """The ensemble without knobs: as many gradient calls per clip as the standard PGD, and some queries."""

    steps: int = 100
    queries: int = 50
    first_step: float = 1.0  # radii; it adapts itself


PGD, UNIVERSAL, AUTO = StandardPgd(), StandardUniversal(), StandardAuto()
UNIVERSAL_STEPS = 20  # at most, per clip and epoch
EOT_DRAWS = 16  # per gradient of a randomised model (Olivier, 7.3.1)
STANDARDS: dict[str, Any] = {"pgd": PGD, "universal": UNIVERSAL, "auto": AUTO}
AT_LEAST = ("steps", "restarts", "epochs", "queries")
AT_MOST = ("transcribe_every",)


def weakness(attack: str, settings: Mapping[str, Any]) -> str | None:
    """How an attack's settings are milder than, or other than, the standard ones; None if they are not."""
    for name, standard in asdict(STANDARDS[attack]).items():
        value = settings.get(name)
        if name in AT_LEAST or name in AT_MOST:
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                return f"'{name}' is {value!r}, the standard has {standard}"
            if (value < standard) if name in AT_LEAST else (value > standard):
                return f"'{name}' is {value}, the standard has {standard}"
        elif value != standard:
            return f"'{name}' is {value!r}, the standard has {standard!r}"
    if settings.get("precision") is not None:
        return "gradients were taken in mixed precision"
    draws = settings.get("eot")
    if draws is not None and (not isinstance(draws, int) or draws < EOT_DRAWS):
        return f"'eot' is {draws!r}, the standard has {EOT_DRAWS}"
    return None


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

    def describe(self) -> dict[str, Any]:
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
