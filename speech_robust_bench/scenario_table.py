"""`srb.scenarios()`: the scenario table as an object that prints, filters and becomes a data frame; `srb.suites()`."""

from __future__ import annotations

import html
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypedDict, overload

from speech_robust_bench.builders import suites as suite_files
from speech_robust_bench.builders.custom import load_table
from speech_robust_bench.builders.scenario import Scenario
from speech_robust_bench.builders.scenarios import choose, find
from speech_robust_bench.builders.suites import Suite
from speech_robust_bench.core.categories import CATEGORIES

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
