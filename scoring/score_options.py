"""How a run is scored: the options of `srb score`, which a results file keeps."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np
from msgspec import structs

from speech_robust_bench.core.options import Options, above, at_least, normaliser_option, option, resample_option
from speech_robust_bench.core.result_records import ScoreValue, ScoringOptions
from speech_robust_bench.scoring import difficulty
from speech_robust_bench.scoring.aggregate import ConfigCounts
from speech_robust_bench.scoring.bootstrap import Units
from speech_robust_bench.scoring.estimate import Estimate, ratio


def json_number(value: float | None) -> float | None:
    """Rounded far below what a bootstrap can tell; null for what JSON cannot hold."""
    return None if value is None or not math.isfinite(value) else round(float(value), 4)


def json_ratio(part: float, whole: float) -> float | None:
    return round(part / whole, 6) if whole else None


def score_value(value: float | None, interval: Sequence[float] | None) -> ScoreValue | None:
    """A score and its interval; None for NaN and infinity."""
    rounded = json_number(value)
    if rounded is None:
        return None
    return ScoreValue(value=rounded, interval=None if interval is None else [round(float(v), 4) for v in interval])


@dataclass(frozen=True)
class ScoreOptions(Options):
    """How to score. Results are comparable if these options are the same."""

    normaliser: str = normaliser_option()
    unit: str | None = option(
        None, "count errors in words or characters (default: by language)", choices=("word", "char", "char-nospace")
    )
    difficulty: str = option(difficulty.DEFAULT, "difficulty table: a name, or the path of a CSV file", metavar="TABLE")
    floor: bool = option(False, "count a negative WERD as 0, as the authors' code does")
    resample: str = resample_option()
    replicates: int = option(1000, "bootstrap replicates", metavar="N", check=at_least(0))
    level: float = option(0.95, "confidence level of the intervals", check=above(0, 1))
    seed: int = option(0, "seed of the bootstrap")
    settings: Mapping[str, str] | None = None  # of measures, by the names that they give them

    @property
    def record(self) -> ScoringOptions:
        """The options as a results file has them."""
        return ScoringOptions(**asdict(self))

    @classmethod
    def of(cls, record: ScoringOptions) -> ScoreOptions:
        """The options that a results file has."""
        return cls(**structs.asdict(record))


DEFAULTS = ScoreOptions()


def units_of(counts: ConfigCounts, options: ScoreOptions) -> Units:
    """What the intervals of a config are over."""
    return Units.of(counts.ids, counts.speakers, options.resample)


def ratio_of(
    counts: ConfigCounts, above: np.ndarray, below: np.ndarray, options: ScoreOptions, scale: float = 100.0
) -> Estimate:
    """One sum over another, over the clips of a config."""
    how = {"replicates": options.replicates, "seed": options.seed}
    return ratio(units_of(counts, options), above, below, scale=scale, **how)


def estimated(estimate: Estimate, options: ScoreOptions) -> ScoreValue:
    """A score with its interval, as a results file holds it."""
    span = estimate.interval(options.level)
    return ScoreValue(value=round(estimate.value, 4), interval=span and [round(bound, 4) for bound in span])
