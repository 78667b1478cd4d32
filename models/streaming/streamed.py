"""A recogniser used live under `srb run --stream`: each clip is replayed to a session, and its timeline is stored."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.records import Stream
from speech_robust_bench.models.interface import Clip, Described, Recogniser, Transcript
from speech_robust_bench.models.streaming.replay import StreamOptions, Timeline, quickest, replay
from speech_robust_bench.models.streaming.session import Streams

WARM_UP_S = 3


@dataclass
class Streamed(Described):
    """The live side of a recogniser."""

    inner: Recogniser = None  # type: ignore[assignment]
    pace: StreamOptions = field(default_factory=StreamOptions)
    warm: bool = False

    def transcribe(self, clips: list[Clip], rate: int, language: str | None) -> list[str]:
        return [self._one(clip, rate, language) for clip in clips]

    def _one(self, clip: Clip, rate: int, language: str | None) -> Transcript:
        self._warm_up(clip, rate, language)
        sessions = (self.inner.stream(rate, language) for _ in range(self.pace.repeats))  # type: ignore[attr-defined]
        timeline = quickest([replay(session, clip, rate, self.pace) for session in sessions])
        return Transcript(timeline.text, stream=stream_of(timeline).as_json())

    def _warm_up(self, clip: Clip, rate: int, language: str | None) -> None:
        """Stream the beginning of the first clip once before it counts: what is loaded at first use is loaded then.

        A server is warm, and may cost money.
        """
        if not self.warm and not getattr(self.inner, "needs_realtime", False):
            self.warm = True
            with suppress(Exception):  # it comes again, where it belongs to a clip
                replay(self.inner.stream(rate, language), clip[: WARM_UP_S * rate], rate)  # type: ignore[attr-defined]

    def close(self) -> None:
        self.inner.close()


def streamed(recogniser: Recogniser, pace: StreamOptions) -> Streamed:
    """The recogniser as it is used live; one that cannot be is a UserError that says what would do."""
    if not isinstance(recogniser, Streams):
        raise UserError(
            f"{recogniser.name} transcribes whole clips only; to use it live, put a policy in front: live:<the model>"
        )
    timing: dict[str, Any] = {
        "chunk_ms": pace.chunk_ms,
        "speed": pace.speed,
        "realtime": pace.realtime,
        **_unusual(pace),
    }
    return Streamed(recogniser.name, recogniser.revision, {**recogniser.options, **timing}, 1, recogniser, pace)


def _unusual(pace: StreamOptions) -> dict[str, Any]:
    """What is only said where it was asked for."""
    counted = {"processor_time": True} if pace.processor_time else {}
    return {**counted, **({"repeats": pace.repeats} if pace.repeats > 1 else {})}


def stream_of(timeline: Timeline) -> Stream:
    """A timeline as the predictions keep it (`scoring.stream_record`)."""
    calls, pace = timeline.calls, timeline.pace
    return Stream(
        chunk_ms=pace.chunk_ms,
        speed=pace.speed,
        realtime=pace.realtime,
        took_ms=[round(1000 * took, 2) for took in calls.took_s],
        done_ms=[round(1000 * done, 2) for done in calls.done_s] if pace.realtime else None,
        events=[timed.stored for timed in timeline.events],
        **_unusual(pace),
    )
