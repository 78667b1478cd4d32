"""transformers' own streaming: `generate` over a generator of mel chunks (Nemotron ASR, Voxtral Realtime).

`generate` takes what it needs from the generator and gives tokens to a streamer, so it runs in a thread of its own: it
waits in the generator until enough audio has come, and `accept` waits until it does. One of the two works at a time,
so the time of `accept` is what the model took. How the audio is cut into chunks of whole frames is laid down in
transformers' documentation of the processors: the first chunk is centred, each further one begins half a window early.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from speech_robust_bench.core.audio import resample
from speech_robust_bench.core.options import Settings
from speech_robust_bench.models.hf.base import Inputs, TransformersRecogniser
from speech_robust_bench.models.hf.generate import AudioLanguageModel, Transducer, parameters
from speech_robust_bench.models.interface import Clip, Event

LONGEST_TOKENS = 400  # of a segment: so the cost of an event does not grow with the length of the stream


class LiveTransducer(Transducer):
    """A transducer whose `generate` can be fed while it runs."""

    def stream(self, rate: int, language: str | None) -> TransducerSession:
        return TransducerSession(self, rate, self._spoken(language))


class LiveVoxtral(AudioLanguageModel):
    """Voxtral Realtime: writes a token for every 80 ms of audio, a fixed time behind it."""

    def stream(self, rate: int, language: str | None) -> VoxtralSession:
        return VoxtralSession(self, rate, self._spoken(language))


def live_kind(kind: type[TransformersRecogniser], model: Any, processor: Any) -> type[TransformersRecogniser]:
    """The kind of recogniser that can be fed while it generates, if this version of transformers can do that."""
    if not hasattr(processor, "num_samples_per_audio_chunk"):
        return kind
    if kind is Transducer and hasattr(model, "_validate_stream_chunk"):
        return LiveTransducer
    return LiveVoxtral if model.config.model_type == "voxtral_realtime" else kind


@dataclass
class GenerateSession:
    """One stream. Its thread ends with the stream, or with the program."""

    told: ClassVar[tuple[str, ...]] = ()  # of what the processor gives, besides the spectrogram
    recogniser: TransformersRecogniser
    rate: int
    language: str | None = None
    audio: np.ndarray = field(default_factory=lambda: np.empty(0, np.float32))
    dropped: int = 0  # samples before those that are kept
    tokens: list[int] = field(default_factory=list)  # of the segment
    _ended: bool = False
    _hungry: bool = False  # the model waits for audio
    _over: bool = False  # the model has finished
    _shown: str = ""
    _error: BaseException | None = None
    _thread: threading.Thread | None = None
    _turn: threading.Condition = field(default_factory=threading.Condition)

    def __post_init__(self) -> None:
        self.model, self.processor = self.recogniser.model, self.recogniser.processor

    def accept(self, chunk: Clip) -> list[Event]:
        self._feed(resample(chunk, self.rate, self.recogniser.rate))
        events = self._whole_segments()
        text = self._text(self.tokens).rstrip("\ufffd").rstrip()  # of a character that is not all there
        if text != self._shown:
            self._shown = text
            events.append(Event(text))
        return events

    def finish(self) -> list[Event]:
        self._ended = True
        self._feed(np.zeros(self._tail, np.float32))
        return [*self._whole_segments(), Event(self._text(self.tokens), final=True)]

    def close(self) -> None:
        """Let go of a stream that has failed: the model finds that it has ended."""
        with self._turn:
            self._ended, self._hungry = True, False
            self._turn.notify_all()

    def _feed(self, samples: np.ndarray) -> None:
        """Hand over samples, and wait until the model has made of them what it can."""
        with self._turn:
            self.audio = np.concatenate((self.audio, samples))
            self._hungry = False
            if self._thread is None:
                self._thread = threading.Thread(target=self._generate, name="generate", daemon=True)
                self._thread.start()
            self._turn.notify_all()
            self._turn.wait_for(lambda: self._hungry or self._over)
            if self._error is not None:
                raise self._error

    def _whole_segments(self) -> list[Event]:
        """Words are never taken back: those of a segment that has grown long are final, up to the last one."""
        if len(self.tokens) < LONGEST_TOKENS:
            return []
        for cut in range(len(self.tokens) - 1, 0, -1):
            before = self._text(self.tokens[:cut])
            if before and self._text(self.tokens[: cut + 1]).startswith(f"{before} "):
                self.tokens, self._shown = self.tokens[cut:], ""
                return [Event(before, final=True)]
        return []

    def _text(self, tokens: list[int]) -> str:
        return str(self.processor.decode(tokens, skip_special_tokens=True)).strip()

    @property
    def _tail(self) -> int:
        """Samples of silence that the model needs after the audio."""
        return 0

    # --- in the thread of the model --------------------------------------------------------------------------------

    def put(self, tokens: Any) -> None:
        """Tokens, as `generate` gives them to its streamer."""
        self.tokens += [int(token) for token in tokens.flatten()]

    def end(self) -> None:
        """`generate` has nothing more to say."""

    def _generate(self) -> None:
        import torch

        try:
            with torch.inference_mode():
                self.model.generate(**self._arguments(), streamer=self)
        except BaseException as error:  # it belongs to the clip, in the thread that waits
            self._error = error
        finally:
            with self._turn:
                self._over = True
                self._turn.notify_all()

    def _arguments(self) -> Settings:
        """What `generate` is given: what the processor says of the first chunk, and a generator of the mel chunks."""
        size = self.processor.num_samples_first_audio_chunk
        self._wait_for(size)
        first = self._inputs(0, size)
        told = {name: first[name] for name in self.told if name in first}
        return {**told, "input_features": self._chunks(first["input_features"])}

    def _chunks(self, first: Any) -> Iterator[Any]:
        """The mel chunks, each as soon as its audio is there."""
        raise NotImplementedError

    def _inputs(self, start: int, size: int) -> Inputs:
        """What the processor makes of a chunk; one that goes beyond the audio is filled up with silence."""
        samples = self.audio[start - self.dropped : start - self.dropped + size]
        told = {"language": self.language} if self.language and "language" in parameters(self.processor) else {}
        inputs = self.processor(
            np.pad(samples, (0, size - len(samples))),
            sampling_rate=self.recogniser.rate,
            is_streaming=True,
            is_first_audio_chunk=start == 0,
            return_tensors="pt",
            **told,
        )
        return self.recogniser._placed(inputs)

    def _start_of(self, frames: int) -> int:
        """Where the chunk after a number of frames of the spectrogram begins."""
        extractor = self.processor.feature_extractor
        return frames * extractor.hop_length - extractor.win_length // 2

    @property
    def _length(self) -> int:
        return self.dropped + len(self.audio)

    def _wait_for(self, end: int) -> bool:
        """Wait until the audio up to a sample is there; false if the stream ends before."""
        with self._turn:
            while self._length < end and not self._ended:
                self._hungry = True
                self._turn.notify_all()
                self._turn.wait_for(lambda: not self._hungry)
        return self._length >= end

    def _drop(self, start: int) -> None:
        """Forget what no chunk needs any more: a stream may be long."""
        with self._turn:
            self.audio, self.dropped = self.audio[max(0, start - self.dropped) :], max(start, self.dropped)


class TransducerSession(GenerateSession):
    """Nemotron ASR: chunks of fixed length, of which the last one is filled up with silence."""

    told = ("num_lookahead_tokens", "prompt_ids")

    def put(self, tokens: Any) -> None:
        blank = self.processor.blank_token_id
        self.tokens += [int(token) for token in tokens.flatten() if int(token) != blank]

    def _chunks(self, first: Any) -> Iterator[Any]:
        frames, hop = self.processor.num_mel_frames_first_audio_chunk, self.processor.feature_extractor.hop_length
        yield first[:, :frames]
        step, size = self.processor.num_mel_frames_per_audio_chunk, self.processor.num_samples_per_audio_chunk
        while True:
            start = self._start_of(frames)
            self._drop(start)
            if not self._wait_for(start + size) and self._length <= frames * hop:
                return
            yield self._inputs(start, size)["input_features"][:, :step]
            frames += step


class VoxtralSession(GenerateSession):
    """Voxtral Realtime: the prompt goes with the first chunk, and whole chunks of 80 ms follow."""

    told = ("input_ids", "num_delay_tokens")
    _prompt_given: bool = False

    @property
    def _tail(self) -> int:
        processor = self.processor
        shortest = processor.num_samples_first_audio_chunk - self._length
        return max(processor.num_right_pad_tokens * processor.raw_audio_length_per_tok, shortest)

    def put(self, tokens: Any) -> None:
        if self._prompt_given:
            super().put(tokens)
        self._prompt_given = True  # the first that comes is the prompt

    def _chunks(self, first: Any) -> Iterator[Any]:
        yield first
        frames, size = self.processor.num_mel_frames_first_audio_chunk, self.processor.num_samples_per_audio_chunk
        while self._wait_for(self._start_of(frames) + size):
            yield self._inputs(self._start_of(frames), size)["input_features"]
            frames += self.processor.audio_length_per_tok
            self._drop(self._start_of(frames))
