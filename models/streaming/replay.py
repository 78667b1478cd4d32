"""A clip replayed to a session as it would arrive live, on a virtual clock or in real time.

Chunk i has arrived when its last sample has been spoken. It is processed when the one before is done, and takes as long
as it took: so queues build up as they would live, and ten seconds of audio cost no more than their computation. `speed`
divides the processing times, which tells what a machine of another speed would do. With `realtime` the clock on the
wall is used and chunks are sent when they arrive, for servers that have clocks of their own.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from srb.core.errors import UserError
from srb.models.interface import Clip
from srb.models.streaming.session import Event, Session

CHUNK_MS = 100
SHORTEST_MS, LONGEST_MS = 20, 500
MOST_EVENTS = 20_000  # of one clip: a server that sends more is broken
MOST_CHARACTERS = 20_000  # of one event


@dataclass(frozen=True)
class Pace:
    """How a clip is sent: the length of a chunk, the machine's relative speed, and whether to wait for real."""

    chunk_ms: int = CHUNK_MS
    speed: float = 1.0
    realtime: bool = False

    def __post_init__(self) -> None:
        if not SHORTEST_MS <= self.chunk_ms <= LONGEST_MS:
            raise UserError(f"chunks are {SHORTEST_MS} to {LONGEST_MS} ms long, not {self.chunk_ms}")
        if not 0 < self.speed < float("inf"):
            raise UserError(f"the speed of a machine is a factor above 0, not {self.speed}")
        if self.realtime and self.speed != 1:
            raise UserError("in real time no other machine can be simulated: leave the speed out")


@dataclass(frozen=True)
class TimedEvent:
    """An event, when it came (seconds since the first sample) and how much audio had been sent by then."""

    time_s: float
    sent_s: float
    event: Event


@dataclass
class Timeline:
    """What one clip's stream gave."""

    duration_s: float
    pace: Pace
    events: list[TimedEvent] = field(default_factory=list)
    busy_s: float = 0.0  # spent processing
    chunks: int = 0
    late_chunks: int = 0  # done only after the next one had arrived

    @property
    def text(self) -> str:
        """The final transcript: the final segments, and the last partial one if it was never finished."""
        parts, open_text = [], ""
        for timed in self.events:
            if timed.event.final:
                parts.append(timed.event.text)
            open_text = "" if timed.event.final else timed.event.text
        return " ".join(filter(None, (part.strip() for part in (*parts, open_text))))


def replay(
    session: Session,
    clip: Clip,
    rate: int,
    pace: Pace = Pace(),
    timer: Callable[[], float] = time.perf_counter,
    sleep: Callable[[float], None] = time.sleep,
) -> Timeline:
    """Send a clip to a session and write down what comes back, and when."""
    if getattr(session, "needs_realtime", False) and not pace.realtime:
        raise UserError("a server has a clock of its own: measure it with --realtime")
    timeline = Timeline(len(clip) / rate, pace)
    step = max(1, round(pace.chunk_ms * rate / 1000))
    chunks = [clip[start : start + step] for start in range(0, len(clip), step)]
    began, free_s, sent = timer(), 0.0, 0

    def call(work: Callable[[], Sequence[Event]], arrival_s: float) -> float:
        """Do one piece of work that could begin at `arrival_s`; when it was done."""
        if pace.realtime:
            sleep(max(0.0, began + arrival_s - timer()))
        start = timer()
        events = work()
        took = (timer() - start) / pace.speed
        timeline.busy_s += took
        done_s = timer() - began if pace.realtime else max(arrival_s, free_s) + took
        for event in events:
            _check(event, len(timeline.events))
            timeline.events.append(TimedEvent(done_s, sent / rate, event))
        return done_s

    for number, chunk in enumerate(chunks):
        sent += len(chunk)
        free_s = call(lambda chunk=chunk: session.accept(np.ascontiguousarray(chunk)), sent / rate)  # type: ignore[misc]
        timeline.chunks += 1
        next_arrival_s = min(sent + step, len(clip)) / rate
        timeline.late_chunks += number + 1 < len(chunks) and free_s > next_arrival_s
    call(session.finish, sent / rate)
    return timeline


def _check(event: Event, count: int) -> None:
    """What a session answers is not trusted: it may be a server."""
    if count >= MOST_EVENTS:
        raise ValueError(f"more than {MOST_EVENTS} events for one clip")
    if not isinstance(event.text, str) or len(event.text) > MOST_CHARACTERS:
        raise ValueError(f"an event whose text is not a string of at most {MOST_CHARACTERS} characters")
