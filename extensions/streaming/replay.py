"""A clip replayed to a session as it would arrive live, on a virtual clock or in real time.

On the virtual clock a chunk arrives at the time of its last sample and is processed when the one before is done, for as
long as the call took. So queues build up as they would live, and ten seconds of audio cost only their computation.
`speed` divides the processing times, which simulates another machine. With `realtime` chunks are sent when they arrive,
for servers, which have their own clock; a session with a method `wait(seconds)` is asked for the events in between, so
that each has the time at which it came.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

import numpy as np

from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.records import Settings, Stream, StreamEvent
from speech_robust_bench.extensions.streaming.streams import (
    MOST_CHARACTERS,
    Calls,
    StreamOptions,
    arrivals,
    completions,
    most_events,
    transcript,
)
from speech_robust_bench.models.interface import Clip, Described, Event, Recogniser, Session, Transcript

WARM_UP_S = 3
DEFAULTS = StreamOptions()


@dataclass(frozen=True)
class TimedEvent:
    """An event, its time since the first sample, the seconds of audio sent by then, and the number of its call."""

    time_s: float
    sent_s: float
    event: Event
    call: int

    @property
    def stored(self) -> StreamEvent:
        """The event as a line of the predictions file keeps it."""
        kind = "endpoint" if self.event.final and self.event.endpoint else "final" if self.event.final else "partial"
        return StreamEvent(round(self.time_s, 4), round(self.sent_s, 6), self.event.text, kind)


@dataclass
class Timeline:
    """The events and calls of one clip's stream."""

    duration_s: float
    pace: StreamOptions
    events: list[TimedEvent] = field(default_factory=list)
    calls: Calls = field(default_factory=lambda: Calls([], [], []))

    @property
    def text(self) -> str:
        """The final transcript."""
        return transcript([timed.stored for timed in self.events])


def replay(
    session: Session,
    clip: Clip,
    rate: int,
    pace: StreamOptions = DEFAULTS,
    timer: Callable[[], float] | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> Timeline:
    """Send a clip to a session and record its events and their times. A stream that fails is closed."""
    try:
        return _replay(session, clip, rate, pace, timer, sleep)
    except BaseException:
        if close := getattr(session, "close", None):
            with suppress(Exception):  # the first error is the cause
                close()
        raise


def _replay(
    session: Session,
    clip: Clip,
    rate: int,
    pace: StreamOptions,
    timer: Callable[[], float] | None,
    sleep: Callable[[float], None],
) -> Timeline:
    timer = timer or (time.process_time if pace.processor_time else time.perf_counter)
    if getattr(session, "needs_realtime", False) and not pace.realtime:
        raise UserError("a server can only be measured in real time: add --realtime")
    step = max(1, round(pace.chunk_ms * rate / 1000))
    arrived = arrivals(len(clip), rate, pace.chunk_ms)
    timeline = Timeline(len(clip) / rate, pace, calls=Calls(arrived, [], []))
    began, took_s, done_s, sent_s = timer(), timeline.calls.took_s, timeline.calls.done_s, 0.0
    wait = getattr(session, "wait", None)

    def note(events: Iterable[Event], time_s: float | None = None) -> None:
        for event in events:
            _check(event)
            if len(timeline.events) >= most_events(timeline.duration_s):
                raise ValueError(f"more than {len(timeline.events)} events for one clip")
            came_s = timer() - began if time_s is None else time_s
            timeline.events.append(TimedEvent(came_s, sent_s, event, len(took_s)))

    for number, arrival_s in enumerate(arrived):
        if pace.realtime and wait is not None and number:
            note(wait(max(0.0, began + arrival_s - timer())))
        if pace.realtime:
            sleep(max(0.0, began + arrival_s - timer()))
        sent_s = arrival_s
        start = timer()
        if number + 1 < len(arrived):
            events = session.accept(np.ascontiguousarray(clip[number * step : (number + 1) * step]))
        else:
            events = session.finish()
        if pace.realtime:
            note(events)  # those of a server come one by one
        took = round((timer() - start) / pace.speed, 5)
        done_s.append(timer() - began if pace.realtime else max(arrival_s, done_s[-1] if done_s else 0.0) + took)
        if not pace.realtime:
            note(events, done_s[-1])
        took_s.append(took)
    return timeline


def quickest(timelines: Sequence[Timeline]) -> Timeline:
    """One timeline out of several of the same clip, with the shortest time of every call.

    If the recogniser's answers differ, the first timeline counts unchanged.
    """
    first = timelines[0]
    if any([timed.event for timed in other.events] != [timed.event for timed in first.events] for other in timelines):
        return first
    took = [min(calls) for calls in zip(*(timeline.calls.took_s for timeline in timelines), strict=True)]
    done = completions(first.calls.arrived_s, took)
    events = [replace(timed, time_s=done[timed.call]) for timed in first.events]
    return replace(first, events=events, calls=Calls(first.calls.arrived_s, took, done))


def _check(event: Event) -> None:
    """A session may be a server, so its answers are not trusted."""
    if not isinstance(event.text, str) or len(event.text) > MOST_CHARACTERS:
        raise ValueError(f"an event whose text is not a string of at most {MOST_CHARACTERS} characters")


@dataclass(kw_only=True)
class Streamed(Described):
    """A recogniser that gets every clip as a stream."""

    inner: Recogniser
    pace: StreamOptions
    warm: bool = False

    def transcribe(self, clips: list[Clip], rate: int, language: str | None) -> list[str]:
        return [self._one(clip, rate, language) for clip in clips]

    def _one(self, clip: Clip, rate: int, language: str | None) -> Transcript:
        self._warm_up(clip, rate, language)
        sessions = (self.inner.stream(rate, language) for _ in range(self.pace.repeats))  # type: ignore[attr-defined]
        timeline = quickest([replay(session, clip, rate, self.pace) for session in sessions])
        return Transcript(timeline.text, stream=stream_of(timeline).as_json())

    def _warm_up(self, clip: Clip, rate: int, language: str | None) -> None:
        """Stream the beginning of the first clip once unmeasured, to load whatever is loaded at first use.

        A server needs no warm-up, and may cost money.
        """
        if not self.warm and not getattr(self.inner, "needs_realtime", False):
            self.warm = True
            with suppress(Exception):  # it comes again for the clip itself
                replay(self.inner.stream(rate, language), clip[: WARM_UP_S * rate], rate)  # type: ignore[attr-defined]

    def close(self) -> None:
        self.inner.close()


def streamed(recogniser: Recogniser, pace: StreamOptions) -> Streamed:
    """The recogniser, fed with streams; one that only knows whole clips is an error that says what to do."""
    if not hasattr(recogniser, "stream"):
        raise UserError(
            f"{recogniser.name} transcribes whole clips only; to stream to it, put a policy in front: live:<the model>"
        )
    timing = {"chunk_ms": pace.chunk_ms, "speed": pace.speed, "realtime": pace.realtime, **_rare_options(pace)}
    options = {**recogniser.options, **timing}
    return Streamed(recogniser.name, recogniser.revision, options, 1, inner=recogniser, pace=pace)


def _rare_options(pace: StreamOptions) -> Settings:
    """The options that are recorded only where they were given."""
    counted = {"processor_time": True} if pace.processor_time else {}
    return {**counted, **({"repeats": pace.repeats} if pace.repeats > 1 else {})}


def stream_of(timeline: Timeline) -> Stream:
    """A timeline as the predictions keep it."""
    calls, pace = timeline.calls, timeline.pace
    return Stream(
        chunk_ms=pace.chunk_ms,
        speed=pace.speed,
        realtime=pace.realtime,
        took_ms=[round(1000 * took, 2) for took in calls.took_s],
        done_ms=[round(1000 * done, 2) for done in calls.done_s] if pace.realtime else None,
        events=[timed.stored for timed in timeline.events],
        **_rare_options(pace),
    )
