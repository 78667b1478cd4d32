"""How a run is scored: the options of `srb score`, which a results file keeps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass

import numpy as np
from msgspec import structs

from speech_robust_bench.core.options import Options, above, at_least, normaliser_option, option
from speech_robust_bench.core.result_records import ScoringOptions
from speech_robust_bench.scoring import bootstrap, difficulty
from speech_robust_bench.scoring.aggregate import ConfigCounts


@dataclass(frozen=True)
class ScoreOptions(Options):
    """How to score. Results are comparable if these options are the same."""

    normaliser: str = normaliser_option()
    unit: str | None = option(
        None, "count errors in words or characters (default: by language)", choices=("word", "char", "char-nospace")
    )
    difficulty: str = option(difficulty.DEFAULT, "difficulty table: a name, or the path of a CSV file", metavar="TABLE")
    floor: bool = option(False, "count a negative WERD as 0, as the authors' code does")
    by_speaker: bool = option(False, "resample speakers instead of clips")
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


def draws_of(counts: ConfigCounts, options: ScoreOptions) -> np.ndarray | None:
    """The bootstrap weights of a config's clips, None where no intervals are asked for."""
    if not options.replicates:
        return None
    speakers = counts.speakers if options.by_speaker else None
    return bootstrap.weights(counts.ids, speakers, replicates=options.replicates, seed=options.seed)
