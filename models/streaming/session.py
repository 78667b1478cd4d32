"""What a recogniser that works on a live stream offers: `stream(rate, language) -> Session`.

A session is fed chunks as they arrive and answers each with events. The text of an event is that of the current
segment, whole; a final event ends the segment, and the next text begins a new one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from speech_robust_bench.models.interface import Clip


@dataclass(frozen=True)
class Word:
    """A word and where it lies in the audio, in seconds."""

    text: str
    start_s: float
    end_s: float


@dataclass(frozen=True)
class Event:
    """A hypothesis of the current segment: a partial one, which may still change, or the final one."""

    text: str
    final: bool = False
    words: tuple[Word, ...] = ()
    endpoint: bool = False  # final because the recogniser believes that the speaker has finished


class Session(Protocol):
    """One live stream."""

    def accept(self, chunk: Clip) -> Iterable[Event]:
        """Take the next samples; what is new since the last call."""
        ...

    def finish(self) -> Iterable[Event]:
        """The stream has ended; what is left, with a final event for the last segment."""
        ...


@runtime_checkable
class Streams(Protocol):
    """A recogniser that can be used live."""

    def stream(self, rate: int, language: str | None) -> Session:
        """Open a session for one stream."""
        ...
