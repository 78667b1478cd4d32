"""transformers' own streaming: `generate` over a generator of mel chunks (cache-aware transducers such as Nemotron).

`generate` takes what it needs from the generator and gives tokens to a streamer, so it runs in a thread of its own: it
waits in the generator until enough audio has come, and `accept` waits until it does. One of the two works at a time,
so the time of `accept` is what the model took. How the audio is cut into chunks of whole frames is laid down in
transformers' documentation of the processor: the first chunk is centred, each further one begins half a window early.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from srb.core.audio import resample
from srb.models.hf.generate import Transducer
from srb.models.interface import Clip
from srb.models.streaming.session import Event


class LiveTransducer(Transducer):
    """A transducer whose `generate` can be fed while it runs."""

    def stream(self, rate: int, language: str | None) -> GenerateSession:
        return GenerateSession(self.model, self.processor, rate, self.rate)


def can_stream(model: Any, processor: Any) -> bool:
    """Whether this version of transformers feeds the model while it generates."""
    return hasattr(model, "_validate_stream_chunk") and hasattr(processor, "num_samples_per_audio_chunk")


@dataclass
class GenerateSession:
    """One stream. Its thread ends with the stream, or with the program."""

    model: Any
    processor: Any
    rate: int
    model_rate: int
    audio: np.ndarray = field(default_factory=lambda: np.empty(0, np.float32))
    dropped: int = 0  # samples before those that are kept
    tokens: list[int] = field(default_factory=list)
    _ended: bool = False
    _hungry: bool = False  # the model waits for audio, or is done
    _shown: str = ""
    _error: BaseException | None = None
    _thread: threading.Thread | None = None
    _turn: threading.Condition = field(default_factory=threading.Condition)

    def accept(self, chunk: Clip) -> list[Event]:
        text = self._feed(resample(chunk, self.rate, self.model_rate))
        if text == self._shown:
            return []
        self._shown = text
        return [Event(text)]

    def finish(self) -> list[Event]:
        self._ended = True
        return [Event(self._feed(np.empty(0, np.float32)), final=True)]

    def _feed(self, samples: np.ndarray) -> str:
        """Hand over samples, wait until the model has made of them what it can, and read what it has written."""
        with self._turn:
            self.audio = np.concatenate((self.audio, samples))
            self._hungry = False
            if self._thread is None:
                self._thread = threading.Thread(target=self._generate, name="generate", daemon=True)
                self._thread.start()
            self._turn.notify_all()
            self._turn.wait_for(lambda: self._hungry)
            if self._error is not None:
                raise self._error
            return str(self.processor.decode(self.tokens, skip_special_tokens=True)).strip()

    # --- in the thread of the model --------------------------------------------------------------------------------

    def put(self, tokens: Any) -> None:
        """A token, as `generate` gives it to its streamer; blanks are no text."""
        self.tokens += [int(token) for token in tokens.flatten() if int(token) != self.processor.blank_token_id]

    def end(self) -> None:
        """`generate` has nothing more to say."""

    def _generate(self) -> None:
        import torch

        try:
            with torch.inference_mode():
                self.model.generate(
                    input_features=self._mel_chunks(),
                    num_lookahead_tokens=self.processor.default_num_lookahead_tokens,
                    streamer=self,
                )
        except BaseException as error:  # it belongs to the clip, in the thread that waits
            self._error = error
        finally:
            with self._turn:
                self._hungry = True
                self._turn.notify_all()

    def _mel_chunks(self) -> Iterator[Any]:
        """The chunks that have come so far, and then what comes; the last one is filled up with silence."""
        extractor = self.processor.feature_extractor
        start, size, frames = 0, self.processor.num_samples_first_audio_chunk, 0
        while self._wait_for(start + size) or frames == 0 or start + extractor.win_length // 2 < self._length:
            samples = self.audio[start - self.dropped : start - self.dropped + size]
            samples = np.pad(samples, (0, size - len(samples)))
            inputs = self.processor(
                samples,
                sampling_rate=self.model_rate,
                is_streaming=True,
                is_first_audio_chunk=frames == 0,
                return_tensors="pt",
            )
            mel = inputs["input_features"]
            kind = "per" if frames else "first"
            wanted = getattr(self.processor, f"num_mel_frames_{kind}_audio_chunk")
            yield mel[:, :wanted]
            frames += wanted
            start = frames * extractor.hop_length - extractor.win_length // 2
            size = self.processor.num_samples_per_audio_chunk
            self._drop(start)

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
