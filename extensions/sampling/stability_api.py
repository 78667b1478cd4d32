"""`srb.stability`: how many configs and clips are enough to rank some recognisers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.options import Options, at_least, option
from speech_robust_bench.extensions.sampling.rank_stability import (
    across_probe_settings,
    enough,
    of_random_parts,
    ranked_scores,
    sizes_of,
)
from speech_robust_bench.options import Place
from speech_robust_bench.scoring.runs import open_run


def _correlation(value: Any) -> str | None:
    return None if 0 < value <= 1 else f"must be above 0 and at most 1, not {value}"


@dataclass(frozen=True)
class StabilityOptions(Options):
    """The measure that ranks, and the required rank correlation."""

    measure: Literal["wer", "werd", "nwerd"] = option(
        "wer", "measure that ranks the recognisers", choices=("wer", "werd", "nwerd")
    )
    difficulty: str = option(
        "paper-table3", "difficulty table of NWERD: a name, or the path of a CSV file", metavar="TABLE"
    )
    rho: float = option(0.95, "required rank correlation", check=_correlation)
    trials: int = option(200, "number of random subsets of each size", metavar="N", check=at_least(1))
    seed: int = option(0, "seed of the random subsets")


@dataclass(frozen=True)
class Stability:
    """How well random subsets of configs and clips keep the ranking, and whether probes keep their ranks."""

    options: StabilityOptions
    parts: dict[str, list[Any]]  # "configs" and "clips": a row for each size
    settings: list[Any]
    transcripts: int  # of each recogniser, that its score is made from
    speakers: int | None  # of the clips, where they are known

    def enough(self, what: str) -> int | None:
        """The smallest size that keeps the ranking; None if no subset does."""
        return enough(self.parts[what], self.options.rho)

    def to_json(self) -> dict[str, Any]:
        """The result as plain values."""
        report: dict[str, Any] = {what: [asdict(row) for row in rows] for what, rows in self.parts.items()}
        sizes = {"transcripts": self.transcripts, "speakers": self.speakers}
        return report | {"by": self.options.measure, "settings": [asdict(row) for row in self.settings], **sizes}


def stability(runs: Sequence[Place], stability_options: StabilityOptions = StabilityOptions()) -> Stability:
    """Measure how many configs and clips are needed to rank three or more runs."""
    if len(runs) < 3:
        raise UserError(f"a ranking needs three recognisers or more, not {len(runs)}")
    options, opened = stability_options, [open_run(str(run)) for run in runs]
    ranked = ranked_scores(opened, options.measure, options.difficulty)
    how = {"trials": options.trials, "seed": options.seed}
    configs, clips = len(ranked.configs), len(ranked.clips)
    parts = {
        "configs": of_random_parts(
            lambda drawn: ranked.of_configs[:, drawn].mean(axis=1), configs, sizes_of(configs), **how
        ),
        "clips": of_random_parts(ranked.of_clips, clips, sizes_of(clips), **how) if clips else [],
    }
    settings = list(across_probe_settings(opened, ranked.overall))
    return Stability(options, parts, settings, ranked.transcripts, ranked.speakers)
