"""One progress bar for all commands: on stderr, with an estimate, and none where nobody is looking (a pipe, a log)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn


@contextmanager
def progress(quiet: bool = False) -> Iterator[Progress]:
    """A rich progress display; add tasks to it with `add_task(label, total=n)` and `advance(task)`."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    console = Console(stderr=True)
    with Progress(*columns, console=console, disable=quiet or not console.is_terminal) as bar:
        yield bar


@contextmanager
def tasks(quiet: bool = False) -> Iterator[Callable[[str, int], Callable[[int], None]]]:
    """The same as a function: `advance = show("building", total)`, then `advance(n)` as the work goes on."""
    with progress(quiet) as bar:

        def show(what: str, total: int) -> Callable[[int], None]:
            task = bar.add_task(what, total=total)
            return lambda count: bar.advance(task, count)

        yield show
