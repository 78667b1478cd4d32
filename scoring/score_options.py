"""How a run is scored: the options of `srb score`, which a results file keeps."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np

from speech_robust_bench.scoring import bootstrap, difficulty
from speech_robust_bench.scoring.aggregate import ConfigCounts
from speech_robust_bench.scoring.json_values import Json

LATER_OPTIONS = frozenset({"conventions", "embeddings"})  # older results do not have them


@dataclass(frozen=True)
class Options:
    """How to score. Two results can be set side by side if these are the same."""

    normaliser: str = "srb-paper-1"
    unit: str | None = None
    difficulty: str = difficulty.DEFAULT
    floor: bool = False
    by_speaker: bool = False
    replicates: int = 1000
    level: float = 0.95
    seed: int = 0
    conventions: str | None = None  # a file with equivalences of one's own, for WER lenient
    embeddings: str | None = None  # the folder of a sentence-embedding model, for the semantic error

    def as_json(self) -> Json:
        """The options as a results file has them; one that came later stands there only if it was used."""
        return {key: value for key, value in asdict(self).items() if value is not None or key not in LATER_OPTIONS}


DEFAULTS = Options()


def draws_of(counts: ConfigCounts, options: Options) -> np.ndarray | None:
    """The bootstrap weights of a config's clips, None where no intervals are asked for."""
    if not options.replicates:
        return None
    speakers = counts.speakers if options.by_speaker else None
    return bootstrap.weights(counts.ids, speakers, replicates=options.replicates, seed=options.seed)
