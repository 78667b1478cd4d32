"""`srb.table`: the paper's Table 1 for any number of runs; `srb.measure_tables`: one measure of each run, by config."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from speech_robust_bench.builders import suites
from speech_robust_bench.core.errors import UserError, did_you_mean
from speech_robust_bench.run_results import Results, paper_tables
from speech_robust_bench.run_scores import read_run
from speech_robust_bench.scoring import (
    attack_success,
    calibration,
    ood_table,
    remembered_words,
    stream_table,
    two_talkers,
)
from speech_robust_bench.scoring.runs import open_run
from speech_robust_bench.scoring.table1 import Table as PaperTable
from speech_robust_bench.scoring.table1 import cell_text, to_csv, to_latex, to_markdown

__all__ = ["MeasureTable", "PaperTable", "cell_text", "measure_tables", "table", "to_csv", "to_latex", "to_markdown"]

RunLike = str | os.PathLike | Results
Rows = Sequence[Sequence[str]]
LENIENT = {"wer": "WER strict", "wer_lenient": "WER lenient", "semantic_error": "semantic error"}


@dataclass(frozen=True)
class MeasureTable:
    """A table of one run: a row for each config, as text."""

    title: str
    heads: Sequence[str]
    rows: Rows


def table(runs: Sequence[RunLike], *, groups: str | None = None, allow_changed: bool = False) -> list[PaperTable]:
    """The paper's Table 1, and below it what the paper does not have.

    Args:
        runs: run folders or `Results`; a folder without results is scored first.
        groups: a line for each group of clips that a column tells apart ("domain"), or for each data set ("dataset").
        allow_changed: accept predictions or results that were edited after the run.
    """
    return paper_tables(_results(runs, allow_changed), groups)


def measure_tables(runs: Sequence[RunLike], measure: str, *, allow_changed: bool = False) -> list[MeasureTable]:
    """A table for each run with a row for each config that has the measure.

    Args:
        runs: run folders or `Results`.
        measure: "streaming", "ood", "adversarial", "masked", "overlap", "lenient" or "confidence".
        allow_changed: accept predictions or results that were edited after the run.
    """
    if measure not in MEASURES:
        raise UserError(f"no table of '{measure}'; {did_you_mean(measure, MEASURES)}")
    results, (heads, rows_of, absent) = _results(runs, allow_changed), MEASURES[measure]
    tables = [MeasureTable(result.model, heads, rows_of(result)) for result in results]
    if absent and not any(each.rows for each in tables):
        raise UserError(absent)
    return [_without_empty_columns(each) for each in tables]


def _results(runs: Sequence[RunLike], allow_changed: bool) -> list[Results]:
    return [run if isinstance(run, Results) else read_run(run, allow_changed=allow_changed) for run in runs]


def _without_empty_columns(table: MeasureTable) -> MeasureTable:
    shown = [place for place in range(len(table.heads)) if any(row[place] for row in table.rows)]
    return MeasureTable(
        table.title, [table.heads[place] for place in shown], [[row[place] for place in shown] for row in table.rows]
    )


def _lenient_rows(result: Results) -> Rows:
    scored = {config: entry for config, entry in result.record.configs.items() if entry.wer_lenient}
    return [(config, *(cell_text(getattr(entry, key), True) for key in LENIENT)) for config, entry in scored.items()]


# measure -> the heads of its table, the rows of a run, and the error where no run has any
MEASURES: Mapping[str, tuple[Sequence[str], Callable[[Results], Any], str]] = {
    "streaming": (stream_table.HEADS, lambda result: stream_table.stream_rows(result.record), ""),
    "ood": (
        ood_table.HEADS,
        lambda result: ood_table.ood_rows(result.record, suites.load("ood").about["corpora"]),
        "",
    ),
    "adversarial": (
        attack_success.HEADS,
        lambda result: [row.cells() for row in attack_success.adversarial_rows(result.record)],
        "",
    ),
    "masked": (
        remembered_words.HEADS,
        lambda result: [row.cells() for row in remembered_words.masked_rows(open_run(result.folder), result.record)],
        "",
    ),
    "overlap": (
        two_talkers.HEADS,
        lambda result: two_talkers.overlap_rows(result.record),
        "these runs have no config of two talkers; run them on 'en_overlap_*'",
    ),
    "lenient": (
        ("config", *LENIENT.values()),
        _lenient_rows,
        "these results have no WER lenient; score them again with `srb score`",
    ),
    "confidence": (
        calibration.HEADS,
        lambda result: calibration.confidence_rows(result.record),
        "none of these recognisers told how sure it is of its words (docs/models.md says which do)",
    ),
}
