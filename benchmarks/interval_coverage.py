"""How often do the intervals hold the truth, and how often does `srb compare` see a difference that is not there?

    python benchmarks/interval_coverage.py [--trials 2000]

Clips are made up: log-normal lengths (median 16 words), a rate of errors that varies from clip to clip (gamma, shape 1)
and, with speaker effects, from speaker to speaker (gamma, shape 4: a standard deviation of half the mean), speakers
having unequal numbers of clips. Errors are Poisson. WER is 12 % in noise and 4 % on clean speech of the same clips.
"Before" is what version 1 did: percentiles of a bootstrap over clips, and the share of its replicates beyond zero.
"""

from __future__ import annotations

import argparse

import numpy as np

from speech_robust_bench.scoring.bootstrap import Units, interval, p_value
from speech_robust_bench.scoring.estimate import Estimate, ratio

NOISY, CLEAN = 0.12, 0.04
REPLICATES = 500
DESIGNS = [
    *((clips, None) for clips in (10, 20, 61, 300)),
    *((clips, speakers) for clips, speakers in ((20, 5), (61, 5), (61, 10), (300, 5), (300, 10), (300, 20), (300, 40))),
]


def simulate(
    rng: np.random.Generator, clips: int, speakers: int | None, effects: float
) -> tuple[Units, Units, np.ndarray, np.ndarray]:
    """Units, clips as units, words, and errors of clean speech and of two equal recognisers in noise."""
    words = np.clip(rng.lognormal(2.8, 0.6, clips).round(), 2, 60)
    difficulty = rng.gamma(1.0, 1.0, clips)
    ids = [str(i) for i in range(clips)]
    names = None
    if speakers:
        more = rng.choice(speakers, clips - speakers, p=rng.dirichlet(np.full(speakers, 4.0)))
        who = np.concatenate([np.arange(speakers), more])
        difficulty = difficulty * rng.gamma(effects, 1 / effects, speakers)[who]
        names = [str(speaker) for speaker in who]
    errors = rng.poisson(words * difficulty * np.array([[CLEAN], [NOISY], [NOISY]])).astype(float)
    return Units.of(ids, names), Units.of(ids, None, "clips"), words, errors


def before(by_clip: Units, words: np.ndarray, errors: np.ndarray) -> tuple[bool, bool]:
    """Whether the percentile interval of WER had the truth, and whether its test raised a false alarm."""
    draws = by_clip.weights(REPLICATES)
    rates = 100 * (draws @ errors.T) / (draws @ words)[:, None]
    low, high = interval(rates[:, 1])
    return low <= 100 * NOISY <= high, p_value(rates[:, 1] - rates[:, 2]) <= 0.05


def holds(estimate: Estimate, truth: float) -> float:
    """Whether the interval has the truth; nan where there is none."""
    span = estimate.interval()
    return np.nan if span is None else float(span[0] <= truth <= span[1])


def trial(rng: np.random.Generator, clips: int, speakers: int | None, effects: float) -> list[float]:
    units, by_clip, words, errors = simulate(rng, clips, speakers, effects)
    clean, one, other = (ratio(units, row, words, replicates=REPLICATES) for row in errors)
    false_alarm = (one - other).p <= 0.05
    now = [holds(one, 100 * NOISY), holds(one - clean, 100 * (NOISY - CLEAN)), holds(one - other, 0.0), false_alarm]
    return [*now, *before(by_clip, words, errors)]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--trials", type=int, default=2000)
    options.add_argument("--effects", type=float, default=4.0, help="shape of the speakers' gamma; 1: exponential")
    args = options.parse_args()
    print("| clips | speakers | WER | WERD | A - B | false alarms | WER before | false alarms before |")
    print("|---:|---:|---:|---:|---:|---:|---:|---:|")
    for clips, speakers in DESIGNS:
        rng = np.random.default_rng([clips, speakers or 0])
        shares = 100 * np.nanmean([trial(rng, clips, speakers, args.effects) for _ in range(args.trials)], axis=0)
        print(f"| {clips} | {speakers or '-'} |", " | ".join(f"{share:.1f}" for share in shares), "|", flush=True)


if __name__ == "__main__":
    main()
