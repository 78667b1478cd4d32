"""What commands show: progress on stderr, and a console that no text of the data can steer.

Progress is a bar on a terminal; elsewhere (a pipe, a log) a line every half minute.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import rich.console
from rich.console import ConsoleOptions, RenderableType
from rich.errors import MarkupError
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.segment import Segment

from speech_robust_bench.core.errors import for_terminal

LOG_EVERY_S = 30


@contextmanager
def progress(quiet: bool = False, every_s: float = LOG_EVERY_S) -> Iterator[Progress]:
    """A rich progress display; add tasks to it with `add_task(label, total=n)` and `advance(task)`."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    console = rich.console.Console(stderr=True)
    with Progress(*columns, console=console, disable=quiet or not console.is_terminal) as bar:
        if quiet or console.is_terminal:
            yield bar
            return
        ended = threading.Event()
        logger = threading.Thread(target=_log, args=(bar, ended, every_s), name="progress", daemon=True)
        logger.start()
        try:
            yield bar
        finally:
            ended.set()
            logger.join()


def _log(bar: Progress, ended: threading.Event, every_s: float) -> None:
    """Print how far the work is until it has ended."""
    done: dict[int, float] = {}
    while not ended.wait(every_s):
        for task in working(bar.tasks, done):
            print(log_line(task), file=sys.stderr, flush=True)
        done = {task.id: task.completed for task in bar.tasks}


def working(tasks: Sequence[Task], done: dict[int, float]) -> list[Task]:
    """The tasks that went on since `done` was noted; if none did, the last that is unfinished."""
    unfinished = [task for task in tasks if not task.finished]
    return [task for task in unfinished if task.completed != done.get(task.id, 0)] or unfinished[-1:]


def log_line(task: Task) -> str:
    """`building demo: 30 of 100, 0.5/s, 2 min 20 s left`, by the mean speed since the task began."""
    label = task.description or "working"
    if task.total is None:
        return f"{label}: {task.completed:g} done"
    line = f"{label}: {task.completed:g} of {task.total:g}"
    if not task.completed or not task.elapsed:
        return line
    speed = task.completed / task.elapsed
    return f"{line}, {speed:.2g}/s, {duration((task.total - task.completed) / speed)} left"


def duration(seconds: float) -> str:
    """In the two largest units: `1 h 5 min`, `2 min 20 s`, `9 s`."""
    whole = round(seconds)
    units = [(whole // 3600, "h"), (whole // 60 % 60, "min"), (whole % 60, "s")]
    first = next((place for place, (count, _) in enumerate(units) if count), 2)
    return " ".join(f"{count} {unit}" for count, unit in units[first : first + 2])


@contextmanager
def tasks(quiet: bool = False) -> Iterator[Callable[[str, int], Callable[[int], None]]]:
    """The same as a function: `advance = show("building", total)`, then `advance(n)` as the work goes on."""
    with progress(quiet) as bar:

        def show(what: str, total: int) -> Callable[[int], None]:
            task = bar.add_task(what, total=total)
            return lambda count: bar.advance(task, count)

        yield show


class Console(rich.console.Console):
    """Rich's console, but every character of a text goes through `for_terminal`, in the cells of tables too."""

    def print(self, *objects: Any, **how: Any) -> None:
        cleaned = [_clean(each) if isinstance(each, str) else Cleaned(each) for each in objects]
        try:
            super().print(*cleaned, **how)
        except MarkupError:  # brackets in a name that Rich takes for a tag
            super().print(*cleaned, **{**how, "markup": False})


class Cleaned:
    """Something to print, its text cleaned after it was laid out and before it is written."""

    def __init__(self, renderable: RenderableType) -> None:
        self.renderable = renderable

    def __rich_console__(self, console: rich.console.Console, options: ConsoleOptions) -> Iterator[Segment]:
        for segment in console.render(self.renderable, options):
            yield segment if segment.control else Segment(_clean(segment.text), segment.style)


def _clean(text: str) -> str:
    return "\n".join(map(for_terminal, text.split("\n")))
