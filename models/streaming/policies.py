"""Live transcripts from a recogniser that only knows whole clips: transcribe what has come so far, again and again.

- `local-agreement`: show the words on which the last two hypotheses agree, from the start of the segment on; a word
  once shown stays (Liu et al. 2020, LA-2; Macháček et al. 2023 use it with Whisper).
- `hold-n`: show each hypothesis but for its last `n` words, which are the least certain (Liu et al. 2020).
- `window`: show nothing until the segment ends, then its transcript.

A segment ends at a pause or after `longest_s`, so memory and cost are bounded however long the stream is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from speech_robust_bench.models.interface import Clip
from speech_robust_bench.models.streaming.session import Event
from speech_robust_bench.models.streaming.voice_activity import Endpointer

Transcribe = Callable[[Clip], str]
POLICIES = ("local-agreement", "hold-n", "window")


@dataclass(frozen=True)
class Policy:
    """When to transcribe what has come, and what of it to show."""

    name: str = "local-agreement"
    chunk_s: float = 1.0  # new audio between two hypotheses
    hold: int = 2  # words that hold-n keeps back
    longest_s: float = 28.0  # of a segment: Whisper takes 30


def common_prefix(first: Sequence[str], second: Sequence[str]) -> int:
    """How many words two hypotheses share from the start on, whatever their case and punctuation.

    >>> common_prefix(["It", "was,"], ["it", "was", "the"])
    2
    """
    same = 0
    for a, b in zip(first, second, strict=False):
        if _bare(a) != _bare(b):
            break
        same += 1
    return same


def _bare(word: str) -> str:
    return "".join(letter for letter in word.lower() if letter.isalnum()) or word


@dataclass
class Segment:
    """The audio of a segment and what has been made of it."""

    chunks: list[Clip] = field(default_factory=list)
    samples: int = 0
    untried: int = 0  # samples that no hypothesis covers yet
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
