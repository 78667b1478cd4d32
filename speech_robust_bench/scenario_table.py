"""`srb.scenarios()`: the scenario table as an object that prints, filters and becomes a data frame; `srb.suites()`."""

from __future__ import annotations

import html
import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, overload

from speech_robust_bench.builders.scenarios import Scenario

if TYPE_CHECKING:
    import pandas

    from speech_robust_bench.builders.suites import Suite


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
            from speech_robust_bench.builders.scenarios import find

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

    def to_records(self) -> list[dict[str, Any]]:
        """One dict a scenario."""
        from speech_robust_bench.builders.scenario_listing import as_record

        return [as_record(row) for row in self._rows]

    def to_pandas(self) -> pandas.DataFrame:
        """One row a scenario."""
        import pandas

        return pandas.DataFrame(self.to_records())

    def to_markdown(self) -> str:
        """One table."""
        from speech_robust_bench.builders.scenario_listing import as_markdown

        return as_markdown(self._rows)

    def __repr__(self) -> str:
        from speech_robust_bench.builders.scenario_listing import as_text

        return as_text(self._rows)

    def _repr_html_(self) -> str:
        from speech_robust_bench.builders.scenario_listing import HEADS, cells

        def line(values: Sequence[str], tag: str) -> str:
            return "<tr>" + "".join(f"<{tag}>{html.escape(value)}</{tag}>" for value in values) + "</tr>"

        body = "".join(line(cells(row), "td") for row in self._rows)
        return f"<table><thead>{line(HEADS, 'th')}</thead><tbody>{body}</tbody></table>"


def scenarios(*names: str, scenario_file: str | os.PathLike | None = None) -> ScenarioTable:
    """The scenario table: all of it, or the categories and scenarios named; `scenario_file` adds your own from YAML."""
    from speech_robust_bench.builders.custom import load_table
    from speech_robust_bench.builders.scenarios import choose

    return ScenarioTable(choose(names, load_table(scenario_file)))


def suites() -> dict[str, str]:
    """The suites, parts of the benchmark that stand for all of it: name -> what it is for."""
    from speech_robust_bench.builders.suites import SUITES

    return dict(SUITES)


def suite(name: str) -> Suite:
    """A suite by its name, or a file of `srb anchors`: its configs, its clips, and what is known about it."""
    from speech_robust_bench.builders.suites import load

    return load(name)
