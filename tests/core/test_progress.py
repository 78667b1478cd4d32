"""Progress: a bar on stderr to a person, a line now and then in a log, nothing when asked to be quiet."""

import io
import threading
from contextlib import nullcontext

import pytest
from rich.progress import Progress

from speech_robust_bench.core.progress import duration, log_line, progress, tasks, working


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("terminal", "quiet", "shown"), [(True, False, True), (True, True, False), (False, False, False)]
)
def test_it_is_shown_to_those_who_look(monkeypatch, terminal, quiet, shown):
    screen = Terminal() if terminal else io.StringIO()
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    with progress(*([True] if quiet else [])) as bar:
        bar.advance(bar.add_task("building", total=4), 3)
    assert ("building" in screen.getvalue()) is shown
    assert ("3/4" in screen.getvalue()) is shown
    assert ("left" in screen.getvalue()) is shown


def test_tasks_count_what_is_reported(monkeypatch):
    bar = Progress(disable=True)
    asked = []
    monkeypatch.setattr(
        "speech_robust_bench.core.progress.progress", lambda quiet: asked.append(quiet) or nullcontext(bar)
    )
    with tasks() as show:
        advance = show("building", 10)
        advance(3)
        advance(4)
    assert asked == [False]
    (task,) = bar.tasks
    assert (task.description, task.total, task.completed) == ("building", 10, 7)


class Clock:
    """A time that a test sets."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def bar(clock) -> Progress:
    return Progress(disable=True, get_time=clock)


def test_a_line_says_how_much_is_done_how_fast_and_what_is_left(bar, clock):
    """30 of 100 in a minute are one in two seconds, so that 70 take 140 s."""
    task = bar.add_task("building demo", total=100)
    assert log_line(bar.tasks[0]) == "building demo: 0 of 100"
    bar.update(task, completed=3)
    assert log_line(bar.tasks[0]) == "building demo: 3 of 100"  # no time has passed: no speed
    bar.update(task, completed=0)
    clock.now = 60
    assert log_line(bar.tasks[0]) == "building demo: 0 of 100"
    bar.advance(task, 30)
    assert log_line(bar.tasks[0]) == "building demo: 30 of 100, 0.5/s, 2 min 20 s left"


def test_without_a_total_it_says_what_is_done(bar):
    bar.advance(bar.add_task("fitting", total=None), 7)
    assert log_line(bar.tasks[0]) == "fitting: 7 done"


def test_lines_are_of_tasks_that_go_on(bar):
    first, second, third = (bar.add_task(name, total=2) for name in "abc")
    bar.advance(first, 2)
    bar.advance(second)
    assert [task.description for task in working(bar.tasks, {})] == ["b"]
    assert [task.description for task in working(bar.tasks, {first: 2, second: 1})] == ["c"]
    bar.advance(second)
    bar.advance(third, 2)
    assert working(bar.tasks, {}) == []


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.2, "0 s"), (9, "9 s"), (60, "1 min 0 s"), (140, "2 min 20 s"), (3600, "1 h 0 min"), (3900, "1 h 5 min")],
)
def test_durations_have_two_units(seconds, text):
    assert duration(seconds) == text


@pytest.mark.parametrize("quiet", [False, True])
def test_lines_are_printed_where_there_is_no_terminal(monkeypatch, quiet):
    """The work goes on until a line has come, or as long as a quiet one is given to print one."""
    written = threading.Event()

    class Log(io.StringIO):
        def write(self, text: str) -> int:
            written.set()
            return super().write(text)

    log = Log()
    monkeypatch.setattr("sys.stderr", log)
    with progress(quiet, every_s=0.001) as bar:
        bar.advance(bar.add_task("building", total=4), 3)
        assert written.wait(0.2 if quiet else 60) is not quiet
    assert ("building: 3 of 4" in log.getvalue()) is not quiet
