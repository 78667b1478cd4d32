"""Tables on the terminal: no wider than it is, numbers whole, names folded, nothing that could steer it."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from rich import box
from rich.table import Table
from rich.text import Text

from speech_robust_bench.core.errors import for_terminal
from speech_robust_bench.core.progress import Console
from speech_robust_bench.reporting import MeasureTable, PaperTable, cell_text


def plain_table(title: str, *heads: str) -> Table:
    """A table without lines: the first column to the left, numbers to the right."""
    table = Table(title=title and Text(for_terminal(title)), title_justify="left", box=None, pad_edge=False)
    for place, head in enumerate(heads):
        table.add_column(head, justify="right" if place else "left")
    return table


def print_measure(measure: MeasureTable) -> None:
    """A row for each config; numbers are never cut, names fold last."""
    heads, rows = measure.heads, measure.rows
    widths = [max(map(len, (*head.split(), *(row[place] for row in rows)))) for place, head in enumerate(heads)]
    console = Console()
    table = Table(box=None, pad_edge=False, title=measure.title, title_justify="left")
    left = console.width - sum(width + 2 for width in widths[1:])
    for place, (head, width) in enumerate(zip(heads, widths, strict=True)):
        table.add_column(
            "\n".join(textwrap.fill(line, width) for line in head.split("\n")),
            justify="right" if place else "left",
            overflow="fold",
            min_width=width if place else min(width, max(left, 12)),
        )
    for row in rows:
        table.add_row(*row)
    console.print(table)


def print_blocks(tables: Sequence[PaperTable], intervals: bool = False) -> None:
    """Tables on the terminal, in blocks that are no wider than it is."""
    console = Console()
    for table in (table.filled() for table in tables):
        for block in blocks(table, console.width, intervals):
            console.print(block)
        for note in (*table.notes, *(table.interval_notes() if intervals else ())):
            console.print(for_terminal(note), style="dim", markup=False)


def blocks(table: PaperTable, width: int, intervals: bool) -> Iterator[Table]:
    """The table cut into as few blocks as fit the width, each with the models' names."""
    names = max([len(line.model) for line in table.lines] + [5])
    several = len({line.language for line in table.lines}) > 1
    labels = max(len(line.language) for line in table.lines) + 4 if several else 2
    room = max(width - min(names, width // 3) - min(labels, width // 3) - 2, 12)
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


def _block(table: PaperTable, wanted: range, intervals: bool) -> Table:
    part = table.keep(wanted)
    block = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    several = len({line.language for line in table.lines}) > 1
    if several:
        block.add_column("", no_wrap=True)
    block.add_column("model", overflow="fold")
    for column in part.columns:
        block.add_column(
            f"{column.title.replace(' ', chr(10))}\n[dim]{column.measure}[/]", justify="right", no_wrap=True
        )
    previous = None
    for line in part.lines:
        if previous not in (None, line.language):
            block.add_section()
        previous = line.language
        cells = [
            Text(cell_text(cell, intervals), style="bold" if part.best(line, i) else "")
            for i, cell in enumerate(line.cells)
        ]
        block.add_row(*([Text(for_terminal(line.language))] if several else []), Text(for_terminal(line.model)), *cells)
    return block
