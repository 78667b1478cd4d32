"""`srb table`: the paper's Table 1 for any number of runs, on a terminal or for a paper."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", nargs="+", metavar="RUN", help="run folders; one without results is scored first")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--markdown", action="store_true", help="for a README")
    form.add_argument("--latex", action="store_true", help="for a paper (booktabs)")
    form.add_argument("--csv", action="store_true", help="for a spreadsheet, with intervals, in full precision")
    parser.add_argument("--intervals", action="store_true", help="with the bootstrap interval of each score")


def run(args: argparse.Namespace) -> None:
    from srb.metrics import table1
    from srb.metrics.results import check_comparable, load

    results = [load(folder) for folder in args.folder]
    check_comparable(results)
    tables = [table1.paper_table(results), table1.beyond_table(results)]
    tables = [table for table in tables if table.columns]
    if args.csv:
        print(table1.to_csv(tables[0]), end="")
    elif args.markdown or args.latex:
        text = table1.to_markdown if args.markdown else table1.to_latex
        print("\n".join(text(table, args.intervals) for table in tables), end="")
        print(*tables[0].notes, sep="\n", end="\n" if tables[0].notes else "", file=sys.stderr)
    else:
        print_tables(results, args.intervals)


def print_tables(results: list, intervals: bool = False) -> None:
    """Both tables on the terminal, in blocks that are no wider than it is."""
    from rich.console import Console

    from srb.metrics.table1 import beyond_table, paper_table

    console = Console()
    for table in (paper_table(results).filled(), beyond_table(results).filled()):
        for block in blocks(table, console.width, intervals):
            console.print(block)
        for note in table.notes:
            console.print(note, style="dim", markup=False)


def blocks(table, width: int, intervals: bool) -> Iterator:
    """The table cut into as few blocks as fit the width, each with the models' names."""
    from srb.metrics.table1 import cell_text

    names = max([len(line.model) for line in table.lines] + [5])
    several = len({line.language for line in table.lines}) > 1
    room = max(width - min(names, width // 3) - (8 if several else 4), 12)
    start, used = 0, 0
    for index, column in enumerate(table.columns):
        texts = [cell_text(line.cells[index], intervals) for line in table.lines]
        words = [*column.title.split(), column.measure, *texts]
        need = max(map(len, words)) + 2
        if used and used + need > room:
            yield _block(table, range(start, index), intervals)
            start, used = index, 0
        used += need
    if table.columns:
        yield _block(table, range(start, len(table.columns)), intervals)


def _block(table, wanted: range, intervals: bool):
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from srb.metrics.table1 import cell_text

    part = table.keep(wanted)
    made = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    several = len({line.language for line in table.lines}) > 1
    if several:
        made.add_column("", no_wrap=True)
    made.add_column("model", overflow="fold")
    for column in part.columns:
        made.add_column(
            f"{column.title.replace(' ', chr(10))}\n[dim]{column.measure}[/]", justify="right", no_wrap=True
        )
    previous = None
    for line in part.lines:
        if previous not in (None, line.language):
            made.add_section()
        previous = line.language
        cells = [
            Text(cell_text(cell, intervals), style="bold" if part.best(line, i) else "")
            for i, cell in enumerate(line.cells)
        ]
        made.add_row(*([line.language] if several else []), Text(line.model), *cells)
    return made
