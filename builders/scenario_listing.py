"""The scenario table for people and programs: as plain records, as Markdown, as text that fits a terminal."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from speech_robust_bench.builders.scenarios import Scenario
from speech_robust_bench.core.categories import CATEGORIES

HEADS = ("scenario", "category", "what", "parameter", "severities", "source")


def as_record(row: Scenario) -> dict[str, Any]:
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
            lines += ["", f"{category.name}  {category.meaning}"]
        for row in chosen:
            values = () if row.parts else (value for value in (row.parameter, *row.severities) if value is not None)
            lines.append(f"  {row.name:<18}{row.help:<28} {' '.join(map(str, values))}".rstrip())
            lines += [f"    {number}: {steps}" for number, steps in enumerate(row.severities, 1)] if row.parts else []
    configs = sum(len(row.levels) for row in rows)
    return "\n".join([*lines[1:], "", f"{len(rows)} scenarios, {configs} with their severities"])
