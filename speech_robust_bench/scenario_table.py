"""`srb.scenarios`, `srb.suites`: the scenarios as a table that prints, filters and becomes a data frame; the suites.

`srb.difficulty`: how hard each scenario is.
"""

from __future__ import annotations

import html
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, overload

from speech_robust_bench.builders import suites as suite_files
from speech_robust_bench.builders.custom import load_table
from speech_robust_bench.builders.scenario import Scenario
from speech_robust_bench.builders.scenarios import choose, find
from speech_robust_bench.builders.suites import Suite
from speech_robust_bench.core.categories import CATEGORIES
from speech_robust_bench.core.errors import UserError, warn
from speech_robust_bench.core.options import Options, option
from speech_robust_bench.options import Place
from speech_robust_bench.scoring import difficulty as tables
from speech_robust_bench.scoring.quality_scores import read_built

if TYPE_CHECKING:
    import pandas


HEADS = ("scenario", "category", "what", "parameter", "severities", "source")


class ScenarioRecord(TypedDict):
    """A scenario as JSON holds it."""

    name: str
    category: str
    help: str
    maker: str
    parameter: str | None
    severities: dict[float, Any]
    bank: str | None
    version: str
    has_speech: bool
    source: str


def as_record(row: Scenario) -> ScenarioRecord:
    """A scenario as JSON holds it."""
    return {
        "name": row.name,
        "category": row.category,
        "help": row.help,
        "maker": row.maker,
        "parameter": row.parameter,
        "severities": dict(zip(row.levels, row.severities, strict=True)) if row.graded else {},
        "bank": " + ".join(row.banks) or None,
        "version": row.edition,
        "has_speech": row.has_speech,
        "source": row.source,
    }


def cells(row: Scenario) -> tuple[str, ...]:
    """What a table says of a scenario, below `HEADS`."""
    values = ", ".join(str(value) for value in row.severities if value is not None)
    return row.name, row.category, row.help, row.parameter or "", values, row.source


def as_markdown(rows: Iterable[Scenario]) -> str:
    """The rows as a Markdown table."""
    lines = [f"| {' | '.join(HEADS)} |", "|---" * len(HEADS) + "|"]
    for row in rows:
        name, *others = cells(row)
        lines.append(f"| {' | '.join((f'`{name}`', *others))} |")
    return "\n".join(lines)


def as_text(rows: Iterable[Scenario]) -> str:
    """The rows by category, one a line."""
    rows = list(rows)
    lines = []
    for category in CATEGORIES.values():
        chosen = [row for row in rows if row.category == category.name]
        if chosen:
            lines += ["", f"{category.name}  {category.label}"]
        for row in chosen:
            values = () if row.parts else (value for value in (row.parameter, *row.severities) if value is not None)
            lines.append(f"  {row.name:<18}{row.help:<28} {' '.join(map(str, values))}".rstrip())
            lines += [f"    {number}: {steps}" for number, steps in enumerate(row.severities, 1)] if row.parts else []
    configs = sum(len(row.levels) for row in rows)
    return "\n".join([*lines[1:], "", f"{len(rows)} scenarios, {configs} with their severities"])


class ScenarioTable(Sequence[Scenario]):
    """Scenarios in the table's order: index it, loop over it, print it, or make it a data frame."""

    def __init__(self, rows: Sequence[Scenario]) -> None:
        self._rows = tuple(rows)

    @overload
    def __getitem__(self, key: int | str) -> Scenario: ...
    @overload
    def __getitem__(self, key: slice) -> ScenarioTable: ...
    def __getitem__(self, key: int | str | slice) -> Scenario | ScenarioTable:
        """A scenario by its name or place."""
        if isinstance(key, str):
            return find(key, {row.name: row for row in self._rows})
        return ScenarioTable(self._rows[key]) if isinstance(key, slice) else self._rows[key]

    def __iter__(self) -> Iterator[Scenario]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def names(self) -> list[str]:
        """The scenarios' names."""
        return [row.name for row in self._rows]

    def to_records(self) -> list[ScenarioRecord]:
        """One dict per scenario."""

        return [as_record(row) for row in self._rows]

    def to_pandas(self) -> pandas.DataFrame:
        """One row per scenario."""
        import pandas

        return pandas.DataFrame(self.to_records())

    def to_markdown(self) -> str:
        """The scenarios as a Markdown table."""

        return as_markdown(self._rows)

    def __repr__(self) -> str:

        return as_text(self._rows)

    def _repr_html_(self) -> str:

        def line(values: Sequence[str], tag: str) -> str:
            return "<tr>" + "".join(f"<{tag}>{html.escape(value)}</{tag}>" for value in values) + "</tr>"

        body = "".join(line(cells(row), "td") for row in self._rows)
        return f"<table><thead>{line(HEADS, 'th')}</thead><tbody>{body}</tbody></table>"


def scenarios(*names: str, scenario_file: str | os.PathLike | None = None) -> ScenarioTable:
    """The scenario table: all of it, or the categories and scenarios named; `scenario_file` adds your own from YAML."""
    return ScenarioTable(choose(names, load_table(scenario_file)))


def suites() -> dict[str, str]:
    """All suites: name and purpose."""
    return dict(suite_files.SUITES)


def suite(name: str) -> Suite:
    """A suite by its name, or a file of `srb anchors`: its configs and clips."""
    return suite_files.load(name)


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
    from speech_robust_bench.scoring.quality_scores import PESQ_OFFSET, POLLUTED, paper_table, quality_scores, srb_1

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
