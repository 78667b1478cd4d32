"""`srb.compare`: is one recogniser more robust than another? `srb.difference`: how far apart are their transcripts?"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from speech_robust_bench.core.options import (
    Options,
    Settings,
    above,
    at_least,
    normaliser_option,
    option,
    resample_option,
)
from speech_robust_bench.core.progress import progress as progress_bar
from speech_robust_bench.options import Place
from speech_robust_bench.scoring.compare import Comparison, DifferenceRow, between, compare_groups, resampled
from speech_robust_bench.scoring.compare import compare as compare_counts
from speech_robust_bench.scoring.runs import Run, open_run
from speech_robust_bench.scoring.scoring import versions

if TYPE_CHECKING:
    import pandas

    from speech_robust_bench.scoring.aggregate import ConfigCounts

BY = ("category", "scenario", "config")


@dataclass(frozen=True)
class CompareOptions(Options):
    """What is compared, and how."""

    by: Literal["category", "scenario", "config"] = option(
        "category",
        "one row per category, scenario or config; the last two also list where A helps and hurts",
        choices=BY,
    )
    groups: str | None = option(
        None, "compare within each group of clips: a column of the clips, such as domain or gender", metavar="COLUMN"
    )
    resample: str = resample_option()
    difficulty: str = option("paper-table3", "difficulty table: a name, or the path of a CSV file", metavar="TABLE")
    normaliser: str = normaliser_option()
    floor: bool = option(False, "count a negative WERD as 0, as the authors' code does")
    replicates: int = option(1000, "bootstrap replicates", metavar="N", check=at_least(1))
    seed: int = option(0, "seed of the bootstrap")
    alpha: float = option(0.05, "significance level after correction", check=above(0, 1))


@dataclass(frozen=True, repr=False)
class Comparisons(Sequence[Comparison]):
    """Rows of a comparison of two runs, A and B: what they score, how they differ, and how sure that is."""

    a: str
    b: str
    rows: Sequence[Comparison]
    options: CompareOptions = CompareOptions()

    def __getitem__(self, index: Any) -> Any:
        return self.rows[index]

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Comparison]:
        return iter(self.rows)

    @property
    def normaliser(self) -> str:
        """The normaliser with the versions of its packages."""
        return versions(self.options.normaliser)["normaliser"]

    @property
    def resampled(self) -> str:
        """The number of speakers or clips that the test is over."""
        return resampled(self.rows)

    @property
    def no_verdict(self) -> str:
        """Why nobody is called more robust, with the rows if there are others; empty where all have a verdict."""
        reasons: dict[str, list[str]] = {}
        for row in self.rows:
            if row.no_verdict:
                reasons.setdefault(row.no_verdict, []).append(f"{row.language} {row.name}")
        return "; ".join(
            why if len(rows) == len(self.rows) else f"{why} ({', '.join(rows)})" for why, rows in reasons.items()
        )

    def better(self, row: Comparison) -> str | None:
        """ "a" or "b" where one is more robust, None where that is not certain."""
        return row.better(self.options.alpha)

    def to_records(self) -> list[dict[str, Any]]:
        """One dict a row; `better` names the model that is more robust, None where that is not certain."""
        names = {"a": self.a, "b": self.b, None: None}
        return [{**asdict(row), "better": names[self.better(row)]} for row in self.rows]

    def to_pandas(self) -> pandas.DataFrame:
        """One row a category."""
        import pandas

        return pandas.DataFrame(self.to_records())

    def to_json(self) -> str:
        """The rows, and how they were computed."""
        options = self.options
        content = {
            "a": self.a,
            "b": self.b,
            **versions(options.normaliser),
            "difficulty_table": options.difficulty,
            "resampled": self.resampled,
            **{name: getattr(options, name) for name in ("replicates", "seed", "alpha", "by")},
            "no_verdict": self.no_verdict,
            "rows": [{**asdict(row), "better": self.better(row)} for row in self.rows],
        }
        return json.dumps(content, indent=2)

    def __repr__(self) -> str:
        lines = [f"A = {self.a}, B = {self.b}; lower is more robust"]
        for row in self.rows:
            span = f" [{row.interval[0]:+.1f}, {row.interval[1]:+.1f}]" if row.interval else ""
            better = {"a": "A", "b": "B", None: "-"}[self.better(row)]
            lines.append(
                f"  {row.language} {row.name:<14}{row.measure.upper():<6} A {row.a:7.1f}  B {row.b:7.1f}  "
                f"A - B {row.difference:+7.1f}{span}  p {row.p_corrected:.3f}  {row.units} {row.unit}  better: {better}"
            )
        return "\n".join([*lines, f"no verdict: {self.no_verdict}"] if self.no_verdict else lines)


def compare(
    a: Place, b: Place, compare_options: CompareOptions = CompareOptions(), *, progress: bool = True
) -> Comparisons:
    """Test whether the recogniser of one run is more robust than that of another (paired, Holm-corrected).

    Args:
        a, b: run folders, on the same clips.
        compare_options: the rows, the groups, the difficulty table, the normaliser and the bootstrap.
        progress: show progress.
    """
    options, runs = compare_options, (open_run(Path(a)), open_run(Path(b)))
    for run in runs:
        run.refuse_anchors()
    how: Settings = {name: getattr(options, name) for name in ("floor", "resample", "replicates", "seed", "by")}
    how["table"] = options.difficulty
    if options.groups:
        rows = compare_groups(*runs, options.groups, options.normaliser, **how)
    else:
        rows = compare_counts(*_counts(runs, options.normaliser, progress), **how)
    first, second = model_names(a, b)
    return Comparisons(first, second, rows, options)


def model_names(a: Place, b: Place) -> tuple[str, str]:
    """The names of the models of two runs, told apart if they are the same."""
    first, second = (open_run(Path(run)).model for run in (a, b))
    return (first, second) if first != second else (f"{first} (A)", f"{second} (B)")


def _counts(runs: Sequence[Run], normaliser: str, progress: bool) -> list[list[ConfigCounts]]:
    """The errors of every config with references, for each run."""
    counts: list[list[ConfigCounts]] = []
    with progress_bar(not progress) as bar:
        task = bar.add_task("counting errors", total=sum(len(run.configs) for run in runs))
        for run in runs:
            counts.append([])
            for config in run.configs:
                read = run.read(config).transcribed
                counts[-1] += [read.count(normaliser)] if read.lines else []
                bar.advance(task)
    return counts


def difference(a: Place, b: Place, compare_options: CompareOptions = CompareOptions()) -> list[DifferenceRow]:
    """Measure how far apart the transcripts of two runs are, one dict per config; needs no reference."""
    options = compare_options
    runs = open_run(Path(a)), open_run(Path(b))
    return between(*runs, options.normaliser, options.replicates, options.seed, options.resample)
