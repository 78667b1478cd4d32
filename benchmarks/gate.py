"""How often the gate raises a false alarm, how often it finds a rise of 10 %, and what that costs.

    python benchmarks/gate.py RUN [--clips N] [--trials N] [--normaliser srb-numbers-1]
    python benchmarks/gate.py --speakers [--trials N]
    srb gate --baseline RUN --model python:benchmarks.gate:Coarse --normaliser srb-numbers-1

The first takes the per-clip errors of a run folder and lets the gate judge new models that are made from them: each
error is kept with some probability, and each correct word becomes an error with the probability that makes the noisy
WER what it should be. The recogniser `Coarse` is Moonshine Tiny with the encoder's output rounded to 4 bits, as a
quantisation that went wrong; `Coarse5` and `Coarse6` have more.

The second makes both models up, with strong speaker effects: a speaker's errors are a base times an exponential factor
of its own for each model. Without a rise the two are exchangeable, and "worse" is a false alarm; with the rise that the
gate looks for, "not worse" is one.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from speech_robust_bench.extensions.gate.result import MOST_CLIPS, GateOptions, GateResult
from speech_robust_bench.extensions.gate.units import Pair, choose_configs, decide
from speech_robust_bench.scoring.aggregate import ConfigCounts
from speech_robust_bench.scoring.runs import open_run
from speech_robust_bench.scoring.scoring import Counts

KEPT = (0.95, 0.8, 0.5)
RISES = (0.0, 0.05, 0.1, 0.2, 0.5)


@dataclass(frozen=True)
class NewModel:
    """Errors of a model that is made from the errors of another."""

    old: Mapping[Pair, tuple[int, int]]  # errors, words
    kept: float
    added: float
    rng: np.random.Generator

    def transcribe(self, pairs: Sequence[Pair]) -> dict[Pair, int]:
        errors, words = np.array([self.old[pair] for pair in pairs]).T
        right = np.maximum(words - errors, 0)
        drawn = self.rng.binomial(errors, self.kept) + self.rng.binomial(right, self.added)
        return dict(zip(pairs, drawn.tolist(), strict=True))


def simulate(counts: Sequence[ConfigCounts], kept: float, rise: float, trials: int, clips: int) -> list[GateResult]:
    """The gate's verdicts on new models whose noisy WER is `rise` above the old one's.

    Each trial has its own seed, so it plays other clips in another order.
    """
    old = {
        (each.config, clip): (int(errors), int(words))
        for each in counts
        for clip, errors, words in zip(each.ids, each.counts.errors, each.counts.lengths, strict=True)
    }
    errors, words = np.array(list(old.values())).T
    added = (1 + rise - kept) * errors.sum() / np.maximum(words - errors, 0).sum()
    return [
        decide(
            "new",
            "old",
            counts,
            GateOptions(clips=clips, seed=trial),
            NewModel(
                old, kept, added, np.random.default_rng([trial, round(1000 * kept), round(1000 * rise)])
            ).transcribe,
        )
        for trial in range(trials)
    ]


def show(args: argparse.Namespace) -> None:
    run = open_run(args.run)
    counts = run.counts(choose_configs(run), normaliser=args.normaliser)
    print(f"{len(counts)} configs of {len(counts[0].ids)} clips; at most {args.clips} are played; {args.trials} trials")
    print("| errors kept | rise | alarms | undecided | clips played, mean (median) |\n|---|---|---|---|---|")
    for kept in KEPT:
        for rise in RISES:
            results = simulate(counts, kept, rise, args.trials, args.clips)
            played = [result.looks[-1].clips for result in results]
            share = {
                name: sum(result.verdict == name for result in results) / len(results)
                for name in ("worse", "undecided")
            }
            print(
                f"| {kept:.0%} | {rise:.0%} | {share['worse']:.1%} | {share['undecided']:.1%} | "
                f"{np.mean(played):.0f} ({np.median(played):.0f}) |",
                flush=True,
            )


SPEAKER_DESIGNS = ((300, 5), (300, 10), (600, 20), (600, 40), (1500, 40))  # clips, speakers
ALIKE = 0.5  # share of the speakers' difficulty that both models have


def simulate_speakers(clips: int, speakers: int, rise: float, resample: str, trial: int) -> GateResult:
    """The verdict on a model whose errors depend on the speaker otherwise than the old one's do."""
    rng = np.random.default_rng([clips, speakers, round(1000 * rise), trial])
    more = rng.choice(speakers, clips - speakers, p=rng.dirichlet(np.full(speakers, 4.0)))
    who = np.concatenate([np.arange(speakers), more])
    words = np.clip(rng.lognormal(2.8, 0.6, clips).round(), 2, 60)
    both = ALIKE * rng.exponential(1, speakers) + (1 - ALIKE) * rng.exponential(1, (2, speakers))
    rates = np.array([[0.12], [0.12 * (1 + rise)]]) * both
    old, new = rng.poisson(words * rates[:, who])
    counts = Counts(words.astype(int), *np.zeros((2, clips), int), old)
    config = ConfigCounts(
        "en_noise_sev3", "noise_env", [str(i) for i in range(clips)], counts, None, list(map(str, who))
    )
    errors = {(config.config, clip): int(count) for clip, count in zip(config.ids, new, strict=True)}
    options = GateOptions(clips=clips, seed=trial, resample=resample)
    return decide("new", "old", [config], options, lambda pairs: {pair: errors[pair] for pair in pairs})


def show_speakers(trials: int) -> None:
    print('| clips | speakers | test over | false "worse" | false "not worse" |\n|---:|---:|---|---:|---:|')
    for clips, speakers in SPEAKER_DESIGNS:
        for resample in ("clips", "speakers"):
            alarms = [
                np.mean([simulate_speakers(clips, speakers, rise, resample, i).verdict == false for i in range(trials)])
                for rise, false in ((0.0, "worse"), (0.1, "not worse"))
            ]
            print(f"| {clips} | {speakers} | {resample} | {alarms[0]:.1%} | {alarms[1]:.1%} |", flush=True)


@dataclass
class RoundedEncoder:
    """An onnxruntime session whose output is rounded to a number of bits between its least and its largest value."""

    session: Any
    bits: int

    def run(self, names: Any, inputs: Any) -> list[np.ndarray]:
        hidden, *rest = self.session.run(names, inputs)
        low, high = hidden.min(), hidden.max()
        step = (high - low) / (2**self.bits - 1)
        return [(np.round((hidden - low) / step) * step + low).astype(np.float32), *rest]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.session, name)


class Coarse:
    """Moonshine Tiny with a coarse encoder."""

    bits = 4

    def __init__(self) -> None:
        from speech_robust_bench.models.interface import open_model

        self.options = {"bits": self.bits}
        self.model: Any = open_model("moonshine?threads=1")
        self.model.encoder = RoundedEncoder(self.model.encoder, self.bits)

    def transcribe(self, clips: list[np.ndarray], rate: int, language: str | None) -> list[str]:
        return self.model.transcribe(clips, rate, language)


class Coarse5(Coarse):
    bits = 5


class Coarse6(Coarse):
    bits = 6


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("run", nargs="?", help="the run folder of the old model")
    parser.add_argument("--speakers", action="store_true", help="simulate strong speaker effects, without a run")
    parser.add_argument("--clips", type=int, default=MOST_CLIPS)
    parser.add_argument("--trials", type=int, default=400)
    parser.add_argument("--normaliser", default="srb-numbers-1")
    args = parser.parse_args()
    if args.speakers:
        show_speakers(args.trials)
    elif args.run:
        show(args)
    else:
        parser.error("name a run, or --speakers")
    return 0


if __name__ == "__main__":
    sys.exit(main())
