"""`srb.difficulty`, `srb.add_quality`: how speech sounds, and how hard a scenario is by that."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from speech_robust_bench.builders.manifests import matching_configs
from speech_robust_bench.builders.quality import COLUMNS, DNSMOS_COLUMNS
from speech_robust_bench.builders.quality_columns import score
from speech_robust_bench.core.errors import UserError, warn
from speech_robust_bench.core.options import Options, option
from speech_robust_bench.core.progress import tasks
from speech_robust_bench.options import Place
from speech_robust_bench.scoring import difficulty as tables
from speech_robust_bench.scoring.quality_from_builds import read_built


@dataclass(frozen=True)
class DifficultyOptions(Options):
    """The source and the name of a difficulty table."""

    ratings: str | None = option(
        None, "CSV file with ratings by people: scenario, severity, rating; higher is better", metavar="CSV"
    )
    language: str | None = option(None, "language, if the folder holds several")
    dataset: Sequence[str] = option((), "only this data set of the CSV file (may be repeated)", repeat=True)
    name: str = option("mine-1", "name of the table, with a version in it")


def difficulty(
    source: Place | None = None,
    *,
    table: str = "paper-table3",
    difficulty_options: DifficultyOptions = DifficultyOptions(),
) -> tables.DifficultyTable:
    """A difficulty table: how hard each scenario is; NWERD divides by it.

    Args:
        source: a folder of built configs with quality columns, or a CSV file with the columns dataset, augmentation,
            severity, metric, value. Without it, `table` is loaded.
        table: the name of a table, or the path of a CSV file.
        difficulty_options: ratings by people, and which part of the source.
    """
    options = difficulty_options
    if options.ratings and source:
        raise UserError("give a source of quality scores or --ratings, not both")
    if options.ratings:
        return tables.compute_from_ratings(tables.read_ratings(options.ratings), options.name)
    if source is None:
        return tables.load(table)
    return tables.compute(tables.means(_quality_lines(source, options)), options.name)


def _quality_lines(source: Place, options: DifficultyOptions) -> list[Any]:
    if Path(source).is_dir():
        lines, bare = read_built(str(source), options.language)
        if bare:
            warn(f"without quality columns, left out: {', '.join(bare)}")
        return list(lines)
    lines = tables.read_quality(str(source))
    known = sorted({line.dataset for line in lines})
    for dataset in options.dataset:
        if dataset not in known:
            raise UserError(f"{source} has no data set '{dataset}'; it has {', '.join(known)}")
    return [line for line in lines if not options.dataset or line.dataset in options.dataset]


def explain_difficulty() -> tuple[list[str], dict[str, float]]:
    """Explain how the paper's difficulty table was made, line by line, and how srb-1 differs."""
    from speech_robust_bench.scoring.paper_table3 import PESQ_OFFSET, POLLUTED, paper_table, quality_scores, srb_1

    lines, paper, shipped = quality_scores(), tables.load("paper-table3"), tables.load("srb-1")
    again = paper_table(lines)
    text = ["The paper's Table 3, computed again from the authors' quality scores, with what they did:"]
    text += [f"  PESQ has mean {50 + PESQ_OFFSET} instead of 50; Spanish DNSMOS and PESQ rows were not merged."]
    for measure in ("avg", "dnsmos", "pesq"):
        off = {k: getattr(r, measure) - getattr(paper.rows[k], measure) for k, r in again.rows.items()}
        near = sum(abs(v) <= 0.3 for v in off.values())
        far = ", ".join(f"{k} {v:+.1f}" for k, v in off.items() if abs(v) > 0.3)
        text += [f"  {measure:6} {near} of {len(off)} cells within 0.3" + (f"; {far}" if far else "")]
    text += [f"  Polluted cells, each with a stray PESQ mean in it: {', '.join(POLLUTED)}\n"]
    off = tables.differences(srb_1(lines), shipped)
    text += [f"srb-1, computed again: {sum(abs(v) < 0.001 for v in off.values())} of {len(off)} as shipped.\n"]
    return text, tables.differences(shipped, paper)


@dataclass(frozen=True)
class QualityResult:
    """The number of rows scored, and of configs that already had the columns."""

    rows: int
    already_there: int
    configs: int

    def __str__(self) -> str:
        return f"{self.rows} rows scored; {self.already_there} of {self.configs} configs had their columns already"


def add_quality(
    configs: str | Sequence[str] = (),
    *,
    data: Place = "srb",
    pesq: bool = True,
    workers: int | None = None,
    progress: bool = True,
) -> QualityResult:
    """Add DNSMOS and PESQ columns to built configs.

    Args:
        configs: names or patterns; without any, all.
        data: the folder with the built configs.
        pesq: also PESQ, which needs the clean clips.
        workers: processes; one per core by default.
        progress: show progress.
    """
    names = matching_configs(Path(data), [configs] if isinstance(configs, str) else list(configs))
    columns = COLUMNS if pesq else DNSMOS_COLUMNS
    with tasks(not progress) as show:
        rows, done = score(Path(data), names, show, columns=columns, workers=workers or os.cpu_count() or 1)
    return QualityResult(rows, done, len(names))
