"""Attacks without gradients: a genetic search that only asks the model, and Kenansville, which needs none."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from speech_robust_bench.attacks.clips import AttackClip, Bound, character_errors, norm2, to_float, word_errors
from speech_robust_bench.attacks.pgd import Attacked, outcomes
from speech_robust_bench.attacks.registry import AttackPlan
from speech_robust_bench.core.audio import RATE, to_pcm16
from speech_robust_bench.core.options import Settings
from speech_robust_bench.extensions.attacks.scenarios import kenansville
from speech_robust_bench.models.interface import Recogniser

GENE_S = 0.01


@dataclass(frozen=True)
class Genetic:
    """Settings; a generation costs as many queries as the population has members."""

    bound: Bound
    severity: int = 0
    generations: int = 100
    population: int = 20
    mutation: float = 0.0005  # share of the samples that change
    temperature: float = 0.05  # of the choice of parents
    stop: float | None = 1.0  # a clip is done at this WER
    seed: str = ""
    name: str = field(default="genetic", init=False)

    def describe(self) -> Settings:
        return asdict(self)

    def run(self, recogniser: Recogniser, clips: list[AttackClip]) -> list[Attacked]:
        before = recogniser.transcribe([clip.samples for clip in clips], RATE, clips[0].language)
        return [self._attack(recogniser, clip, text) for clip, text in zip(clips, before, strict=True)]

    def _attack(self, recogniser: Recogniser, clip: AttackClip, before: str) -> Attacked:
        rng = clip.rng(self.name, self.severity, self.seed)
        (_, pcm, hypothesis), queries = self.search(recogniser, clip, rng)
        (facts,) = outcomes([clip], [before], [hypothesis])
        return Attacked(clip, pcm, {**facts, "steps": queries // self.population, "queries": queries})

    def search(
        self, recogniser: Recogniser, clip: AttackClip, rng: np.random.Generator, start: np.ndarray | None = None
    ) -> tuple[tuple[float, np.ndarray, str], int]:
        """The fittest perturbation (WER, stored samples, transcript) and the queries it took.

        `start` is a perturbation that the first generation is to have.
        """
        radius = norm2(clip.samples) / np.sqrt(len(clip.samples)) * 10 ** (-float(self.bound.snr_db or 0) / 20)
        size = len(clip.samples)
        people = rng.uniform(-radius, radius, (self.population, size)).astype(np.float32)
        if start is not None:
            people[0] = start
        for generation in range(1, self.generations + 1):
            pcms = [self.bound.store(clip.samples, person) for person in people]
            hypotheses = recogniser.transcribe([to_float(pcm) for pcm in pcms], RATE, clip.language)
            fitness = character_errors([clip.text] * len(hypotheses), hypotheses)
            best = int(np.argmax(fitness))
            error = float(word_errors([clip.text], [hypotheses[best]], clip.language)[0])
            if generation == self.generations or (self.stop is not None and error >= self.stop):
                break
            people = self._children(people, fitness, best, radius, rng)
        return (error, pcms[best], hypotheses[best]), generation * self.population

    def _children(
        self, people: np.ndarray, fitness: np.ndarray, best: int, radius: float, rng: np.random.Generator
    ) -> np.ndarray:
        """The next generation: the fittest as it is, the others from two parents each, mutated."""
        chances = np.exp((fitness - fitness.max()) / self.temperature)
        mothers, fathers = rng.choice(len(people), (2, len(people) - 1), p=chances / chances.sum())
        genes = rng.random((len(people) - 1, -(-people.shape[1] // int(GENE_S * RATE)))) < 0.5
        mask = np.repeat(genes, int(GENE_S * RATE), axis=1)[:, : people.shape[1]]
        children = np.where(mask, people[mothers], people[fathers])
        changed = rng.random(children.shape, np.float32) < self.mutation
        children = np.where(changed, rng.uniform(-radius, radius, children.shape), children)
        return np.concatenate([people[best : best + 1], children]).astype(np.float32)


def make_genetic(plan: AttackPlan) -> Genetic:
    generations: Settings = {"generations": plan.settings.steps} if plan.settings.steps else {}
    return Genetic(plan.bound, plan.severity, **generations, **plan.settings.given("stop", "seed"))


@dataclass(frozen=True)
class Kenansville:
    """The weakest DFT bins zeroed, down to an SNR."""

    bound: Bound
    severity: int = 0
    name: str = field(default="kenansville", init=False)

    def describe(self) -> Settings:
        return {}

    def run(self, view: Any, clips: list[AttackClip]) -> list[Attacked]:
        snr_db = float(self.bound.snr_db or 0)
        rng = clips[0].rng(self.name, self.severity)  # it draws nothing
        return [Attacked(clip, to_pcm16(kenansville(clip.samples, RATE, snr_db, rng))) for clip in clips]


def make_kenansville(plan: AttackPlan) -> Kenansville:
    return Kenansville(plan.bound, plan.severity)
