"""`srb difficulty`: how hard each scenario is, from the quality of its speech; the divisor of NWERD."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import speech_robust_bench as srb
from speech_robust_bench.cli.command import Command
from speech_robust_bench.core.options import Options, argument, option, option_group


@dataclass(frozen=True, kw_only=True)
class Arguments(Options):
    source: str | None = argument(
        "folder of built configs with quality columns (`srb quality`), or a CSV file with the columns dataset, "
        "augmentation, severity, metric, value",
        None,
    )
    difficulty_options: srb.DifficultyOptions = option_group(srb.DifficultyOptions)
    out: str | None = option(
        None, "write the table as CSV; `srb score --difficulty FILE` scores with it", metavar="FILE"
    )
    difficulty: str = option("paper-table3", "table to show, if there is no source", metavar="TABLE")
    explain: bool = option(False, "explain how the paper's table came about, and how srb-1 differs")


def run(args: Arguments) -> None:
    from speech_robust_bench.core.progress import Console

    console = Console()
    if args.explain:
        lines, differences = srb.explain_difficulty()
        for line in lines:
            console.print(line)
        _show(console, "srb-1 minus paper-table3", differences, sign="+")
        return
    table = srb.difficulty(args.source, table=args.difficulty, difficulty_options=args.difficulty_options)
    if args.out:
        Path(args.out).write_text(table.to_csv(), "utf-8")
        console.print(f"{len(table.rows)} difficulties written to {args.out}", highlight=False)
    else:
        _show(console, f"difficulty, {table.name}", {key: row.avg for key, row in table.rows.items()})


def _show(console, title: str, values: Mapping[str, float], sign: str = "") -> None:
    """A table with one scenario a line and its severities side by side; fits 80 columns."""
    from rich.table import Table

    grid: dict[str, dict[str, float]] = {}
    for key, value in values.items():
        scenario, _, severity = key.partition("_sev")
        grid.setdefault(scenario, {})[severity] = value
    severities = sorted({s for row in grid.values() for s in row if s})
    shown = Table(title=title, title_justify="left", box=None, pad_edge=False)
    shown.add_column("scenario")
    for head in ["no severity", *(f"sev {s}" for s in severities)]:
        shown.add_column(head, justify="right")
    for scenario, row in sorted(grid.items()):
        shown.add_row(scenario, *(f"{row[s]:{sign}.1f}" if s in row else "" for s in ["", *severities]))
    console.print(shown)


COMMAND = Command(Arguments, run)
