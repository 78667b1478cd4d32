"""`srb run --stream`: its options, and the `stream` that the predictions keep of each clip.

`stream` of a line has how the clip was sent, how long every call took, and the events. It holds no measures: all are
computed from it, by `srb score` and again by `srb verify`. A line that `srb run` would not write may come from a
stranger, so it is a ValueError.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.options import option
from speech_robust_bench.core.records import Stream, StreamEvent, WordTime

if TYPE_CHECKING:
    from speech_robust_bench.builders.configs import Config
    from speech_robust_bench.core.records import Prediction, Settings, Told
    from speech_robust_bench.models.interface import Key, Recogniser


CHUNK_MS, SHORTEST_MS, LONGEST_MS = 100, 20, 500
MOST_EVENTS = 20_000  # of a short clip: a recogniser that sends more is broken
MOST_EVENTS_PER_S = 1000 / SHORTEST_MS  # of a long one
MOST_CHARACTERS = 20_000  # of one event
MOST_SPEED = 1_000_000.0
MOST_REPEATS = 20
KINDS = ("partial", "final", "endpoint")
TOLERANCE_S = 0.002  # times of events are kept to a tenth of a millisecond, those of calls to a hundredth
RATE = 16_000  # of every clip that a recogniser is given


@dataclass(frozen=True)
class StreamOptions:
    """How to stream: the length of a chunk, the simulated speed, and whether to pace the audio in real time."""

    about: ClassVar[str] = "stream the audio chunk by chunk, and store when each word appears"
    suffix: ClassVar[str] = "live"
    advanced: ClassVar[bool] = False

    chunk_ms: int = option(CHUNK_MS, "length of a chunk, in milliseconds", metavar="MS")
    speed: float = option(1.0, "simulate a machine that is F times as fast", metavar="F")
    realtime: bool = option(False, "pace the audio in real time (required by most servers)")
    processor_time: bool = option(
        False, "measure the processor time of srb itself, all threads, instead of wall-clock time (for a busy machine)"
    )
    repeats: int = option(
        1, "send every clip N times and keep the quickest time of each call (for a busy machine)", metavar="N"
    )

    def __post_init__(self) -> None:
        if not SHORTEST_MS <= self.chunk_ms <= LONGEST_MS:
            raise UserError(f"chunk_ms must be from {SHORTEST_MS} to {LONGEST_MS}, not {self.chunk_ms}")
        if not 0 < self.speed <= MOST_SPEED:
            raise UserError(f"speed must be a factor above 0, not {self.speed}")
        if self.realtime and self.speed != 1:
            raise UserError("realtime cannot simulate another machine: leave speed out")
        if self.realtime and self.processor_time:
            raise UserError("realtime measures wall-clock time: leave processor_time out")
        if not 1 <= self.repeats <= MOST_REPEATS:
            raise UserError(f"repeats must be from 1 to {MOST_REPEATS}, not {self.repeats}")
        if self.realtime and self.repeats > 1:
            raise UserError("realtime sends a clip once: leave repeats out")

    @property
    def flags(self) -> str:
        """The options of `srb run`."""
        repeated = f" --repeats {self.repeats}" if self.repeats > 1 else ""
        return f" --stream --chunk-ms {self.chunk_ms}{repeated}{' --realtime' if self.realtime else ''}"

    @classmethod
    def of_run(cls, options: Settings) -> StreamOptions | None:
        """The options of a streamed run in its run.json, which may be a stranger's."""
        kinds = {"chunk_ms": int, "speed": int | float, "realtime": bool}
        if not all(isinstance(options.get(name), kind) for name, kind in kinds.items()):
            return None
        repeats = options.get("repeats", 1)
        return cls(
            options["chunk_ms"],
            options["speed"],
            options["realtime"],
            options.get("processor_time") is True,
            repeats if isinstance(repeats, int) else 1,
        )

    # Recognisers and their packages are imported when a model is run, not for the help of a command.

    def adapted(self, recogniser: Recogniser) -> Recogniser:
        """A recogniser that can be used live: itself, or by local agreement where it only knows whole clips."""
        from speech_robust_bench.extensions.streaming.replay import as_live

        return as_live(recogniser)

    def wrap(self, recogniser: Recogniser) -> Recogniser:
        """The recogniser behind a replay: each clip is sent chunk by chunk, and its timeline is kept."""
        from speech_robust_bench.extensions.streaming.replay import streamed

        return streamed(recogniser, self)

    def facts(
        self, config: Config, clean: Callable[[], Config], wanted: set[int], store: Path
    ) -> Callable[[Prediction], Settings]:
        """The word times of a clip, from the clean clip that it was made from."""
        from speech_robust_bench.builders.word_times import word_times_of

        times = word_times_of(config, clean(), wanted, store / ".word_times")
        return lambda line: {"words": times(line)} if times else {}

    def agreement(
        self, sent: Mapping[Key, Prediction], again: Mapping[Key, Told], same: set[Key]
    ) -> tuple[int | None, float | None]:
        """The number of clips whose words appeared after the same audio again, and the ratio of the times."""
        pairs = [(key, before, after) for key in sent if (before := sent[key].stream) and (after := again[key].stream)]
        if not pairs or self.realtime:  # a server is not deterministic
            return None, None
        shown = sum(key in same and _shown(before) == _shown(after) for key, before, after in pairs)
        before_ms = sum(sum(before.took_ms) for _, before, _ in pairs)
        after_ms = sum(sum(after.took_ms) for _, _, after in pairs)
        return shown, round(after_ms / before_ms, 2) if before_ms else None


def _shown(stream: Stream) -> list[tuple[float, str, str]]:
    """The words shown, and the audio sent before each."""
    return [event[1:] for event in stream.events]


# --- the stored stream -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Calls:
    """The calls of a session: one for each chunk, and the last one when the stream ends. Seconds since the start."""

    arrived_s: list[float]
    took_s: list[float]
    done_s: list[float]

    @property
    def chunks(self) -> int:
        return len(self.took_s) - 1

    @property
    def late_chunks(self) -> int:
        """Chunks that were done only after the next one had arrived; the last one has no next."""
        following = self.arrived_s[1 : self.chunks]
        return sum(done > arrival for done, arrival in zip(self.done_s, following, strict=False))

    @property
    def busy_s(self) -> float:
        return sum(self.took_s)


def most_events(duration_s: float) -> int:
    """How many events a clip may have: one for each of the shortest chunks, and many for a clip of any length.

    >>> most_events(1.0), most_events(7200.0)
    (20000, 360000)
    """
    return max(MOST_EVENTS, round(MOST_EVENTS_PER_S * duration_s))


def arrivals(samples: int, rate: int, chunk_ms: int) -> list[float]:
    """The end of each chunk of a clip, and of the clip, in seconds.

    >>> arrivals(4000, 16_000, 100)
    [0.1, 0.2, 0.25, 0.25]
    """
    step = max(1, round(chunk_ms * rate / 1000))
    return [min(start + step, samples) / rate for start in range(0, samples, step)] + [samples / rate]


def completions(arrived_s: Sequence[float], took_s: Sequence[float]) -> list[float]:
    """The end of each call, if it begins when its audio has arrived and the call before is done.

    >>> completions([0.1, 0.2, 0.2], [0.25, 0.25, 0.0])
    [0.35, 0.6, 0.6]
    """
    done: list[float] = []
    for arrival, took in zip(arrived_s, took_s, strict=True):
        done.append(max(arrival, done[-1] if done else 0.0) + took)
    return done


def calls_of(stream: Stream, duration_s: float) -> Calls:
    """The calls of a stored stream; `done_ms` is measured in real time and computed otherwise."""
    arrived = arrivals(round(duration_s * RATE), RATE, stream.chunk_ms)
    took = [ms / 1000 for ms in stream.took_ms]
    done = [ms / 1000 for ms in stream.done_ms or ()] if stream.realtime else completions(arrived, took)
    return Calls(arrived, took, done)


def transcript(events: Sequence[StreamEvent]) -> str:
    """The final transcript: the final segments, and the last partial one if it was never finished.

    >>> transcript([StreamEvent(1, 1, "it", "partial"), StreamEvent(2, 2, "it was", "final")])
    'it was'
    """
    parts, open_text = [], ""
    for event in events:
        if event.kind != "partial":
            parts.append(event.text)
        open_text = event.text if event.kind == "partial" else ""
    return " ".join(filter(None, (part.strip() for part in (*parts, open_text))))


def check_stream(stream: Stream, duration_s: float) -> None:
    """Raise a ValueError with the first problem of a stored stream."""
    if (stream.done_ms is not None) != stream.realtime:
        raise ValueError("'stream' has 'done_ms' if it was in real time, and only then")
    if stream.processor_time is False:
        raise ValueError("'processor_time' of 'stream' is true or not there")
    if stream.repeats is not None and (stream.realtime or not 2 <= stream.repeats <= MOST_REPEATS):
        raise ValueError(f"'repeats' of 'stream' must be from 2 to {MOST_REPEATS}, and not in real time")
    if not SHORTEST_MS <= stream.chunk_ms <= LONGEST_MS:
        raise ValueError(f"'chunk_ms' of 'stream' must be a whole number from {SHORTEST_MS} to {LONGEST_MS}")
    if not 0 < stream.speed <= MOST_SPEED:
        raise ValueError("'speed' of 'stream' must be a number above 0")
    _check_calls(stream, duration_s)
    _check_events(stream, calls_of(stream, duration_s))


def _check_calls(stream: Stream, duration_s: float) -> None:
    arrived = arrivals(round(duration_s * RATE), RATE, stream.chunk_ms)
    for key, values in (("took_ms", stream.took_ms), ("done_ms", stream.done_ms)):
        if values is None:
            continue
        if not all(0 <= value < 1e9 for value in values):
            raise ValueError(f"'{key}' of 'stream' must be a list of milliseconds")
        if len(values) != len(arrived):
            raise ValueError(
                f"'{key}' of 'stream' has {len(values)} entries, but the clip has {len(arrived) - 1} chunks and an end"
            )
    if stream.realtime:
        calls = calls_of(stream, duration_s)
        earliest = [
            max(arrival, before) + took
            for arrival, took, before in zip(arrived, calls.took_s, (0.0, *calls.done_s), strict=False)
        ]
        if any(done < least - TOLERANCE_S for done, least in zip(calls.done_s, earliest, strict=True)):
            raise ValueError("a chunk of 'stream' is done before it can be")


def _check_events(stream: Stream, calls: Calls) -> None:
    events = stream.events
    most = most_events(calls.arrived_s[-1])
    if len(events) > most:
        raise ValueError(f"'events' of 'stream' must be a list of at most {most}")
    for event in events:
        if len(event.text) > MOST_CHARACTERS:
            raise ValueError(f"the text of an event must be a string of at most {MOST_CHARACTERS} characters")
        if event.kind not in KINDS:
            raise ValueError(f"the kind of an event must be {', '.join(KINDS)}")
    if any(late.time_s < early.time_s or late.sent_s < early.sent_s for early, late in pairwise(events)):
        raise ValueError("the events of 'stream' are not in the order of their times")
    ends: dict[int, list[float]] = {}  # samples sent -> when what was sent by then was done
    for arrived_s, done_s in zip(calls.arrived_s, calls.done_s, strict=True):
        ends.setdefault(round(arrived_s * RATE), []).append(done_s)
    for time_s, sent_s, _, _ in events:
        if not 0 <= sent_s <= calls.arrived_s[-1] + 1 or round(sent_s * RATE) not in ends:
            raise ValueError(f"an event of 'stream' says that {sent_s:g} s were sent,, which is not the end of a chunk")
        if time_s < sent_s - TOLERANCE_S:
            raise ValueError("an event of 'stream' comes before its audio was sent")
        possible = ends[round(sent_s * RATE)]
        if not stream.realtime and not any(abs(time_s - done_s) <= TOLERANCE_S for done_s in possible):
            raise ValueError("an event of 'stream' does not come when its chunk was done")


def check_words(words: Sequence[WordTime], duration_s: float) -> None:
    """Raise a ValueError for words that are too many, too long, out of order or outside the clip."""
    if len(words) > most_events(duration_s):
        raise ValueError("'words' has more words than a clip of that length can have")
    latest = 0.0
    for word in words:
        if len(word.text) > 200:
            raise ValueError("a word of 'words' is longer than 200 characters")
        if not latest <= word.start_s <= word.end_s <= duration_s + 0.1:
            raise ValueError("the times of 'words' must be in order and inside the clip")
        latest = word.start_s
