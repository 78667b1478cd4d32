"""The clips of a config in batches of like length, read and decoded while the recogniser works."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from speech_robust_bench.builders.configs import ClipRow, Config, Window
from speech_robust_bench.models.interface import Clip

T = TypeVar("T")


@dataclass
class Batch:
    """Clips of one language, of like length; a clip that could not be decoded is an error in its place."""

    rows: list[ClipRow]
    clips: list[Clip | Exception]


def plan(rows: Sequence[ClipRow], batch_size: int, batch_seconds: float | None) -> list[list[ClipRow]]:
    """Batches of like length, the longest first: so memory runs out at once if it does, and the estimate only falls.

    `batch_seconds` bounds the padded audio: the number of clips times the longest.
    """
    batches: list[list[ClipRow]] = []
    for row in sorted(rows, key=lambda row: (row.language or "", -row.duration, row.position)):
        last = batches[-1] if batches else []
        fits = last and len(last) < batch_size and last[0].language == row.language
        if fits and (batch_seconds is None or (len(last) + 1) * last[0].duration <= batch_seconds):
            last.append(row)
        else:
            batches.append([row])
    return batches


def read_batches(config: Config, wanted: set[int], batch_size: int, batch_seconds: float | None) -> Iterator[Batch]:
    """Read and decode the wanted clips, batch by batch."""
    for window in config.windows(wanted):
        for rows in plan(window.rows, batch_size, batch_seconds):
            yield Batch(rows, [_decoded(window, row) for row in rows])


def _decoded(window: Window, row: ClipRow) -> Clip | Exception:
    try:
        return window.decode(row)
    except Exception as error:  # any broken file is that clip's failure, not the run's
        return error


def prefetch(items: Iterable[T], depth: int = 2) -> Iterator[T]:
    """Iterate in a background thread, `depth` items ahead of the caller."""
    ready: queue.Queue[tuple[str, Any]] = queue.Queue(depth)
    stop = threading.Event()

    def put(kind: str, value: Any) -> bool:
        while not stop.is_set():
            try:
                ready.put((kind, value), timeout=0.1)
                return True
            except queue.Full:
                continue
        return False

    def work() -> None:
        try:
            for item in items:
                if not put("item", item):
                    return
            put("end", None)
        except BaseException as error:
            put("error", error)

    thread = threading.Thread(target=work, daemon=True, name="prefetch")
    thread.start()
    try:
        while True:
            kind, value = ready.get()
            if kind == "end":
                return
            if kind == "error":
                raise value
            yield value
    finally:
        stop.set()
        thread.join()
