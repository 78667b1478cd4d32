"""Live servers over WebSockets, in the protocols of Vosk, Deepgram, and OpenAI's realtime API (which vLLM has too).

A server has a clock of its own, so such a session is only measured in real time. What a server sends is bounded in size
and time and never trusted: an answer that cannot be read, or a connection that breaks, is that clip's error.
"""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

from srb.core.audio import resample, to_pcm16
from srb.models.interface import Clip
from srb.models.streaming.session import Event, Word

MOST_BYTES = 1 << 20  # of one message


class Wire(Protocol):
    """What a protocol says: how a stream begins and ends, how audio is sent, and what a message means."""

    rate: int

    def begin(self) -> list[str | bytes]: ...

    def audio(self, pcm: bytes) -> str | bytes: ...

    def end(self) -> list[str | bytes]: ...

    def read(self, message: dict[str, Any]) -> tuple[list[Event], bool]:
        """The events in a message, and whether the server has nothing more to say."""
        ...


@dataclass
class VoskWire:
    """https://github.com/alphacep/vosk-server: binary PCM, an answer to each message."""

    rate: int = 16_000
    language: str | None = None
    model: str = ""
    _ended: bool = False

    def begin(self) -> list[str | bytes]:
        return [json.dumps({"config": {"sample_rate": self.rate, "words": True}})]

    def audio(self, pcm: bytes) -> str | bytes:
        return pcm

    def end(self) -> list[str | bytes]:
        self._ended = True
        return [json.dumps({"eof": 1})]

    def read(self, message: dict[str, Any]) -> tuple[list[Event], bool]:
        if "partial" in message:
            return ([Event(_text(message, "partial"))] if message["partial"] else []), False
        words = tuple(Word(str(w["word"]), float(w["start"]), float(w["end"])) for w in message.get("result", ()))
        text = _text(message, "text")
        return ([Event(text, True, words, not self._ended)] if text else []), self._ended


@dataclass
class DeepgramWire:
    """Deepgram's live API: binary PCM; a result replaces the last one until it is final."""

    rate: int = 16_000
    language: str | None = None
    model: str = ""
    _final_s: float = 0.0  # up to here the transcript is final

    def begin(self) -> list[str | bytes]:
        return []

    def audio(self, pcm: bytes) -> str | bytes:
        return pcm

    def end(self) -> list[str | bytes]:
        return [json.dumps({"type": "CloseStream"})]

    def read(self, message: dict[str, Any]) -> tuple[list[Event], bool]:
        if message.get("type") == "Metadata":
            return [], True
        if message.get("type") != "Results":
            return [], False
        start_s, length_s = float(message.get("start", 0.0)), float(message.get("duration", 0.0))
        if start_s + 1e-3 < self._final_s:  # it goes back behind what was final
            return [], False
        best = message["channel"]["alternatives"][0]
        words = tuple(Word(str(w["word"]), float(w["start"]), float(w["end"])) for w in best.get("words", ()))
        final = bool(message.get("is_final"))
        if final:
            self._final_s = start_s + length_s
        return [Event(_text(best, "transcript"), final, words, final and bool(message.get("speech_final")))], False


@dataclass
class RealtimeWire:
    """OpenAI's realtime transcription and vLLM's: audio in base64, deltas of the current item, then the whole of it."""

    rate: int = 24_000
    language: str | None = None
    model: str = ""
    _text: str = ""
    _ended: bool = False

    def begin(self) -> list[str | bytes]:
        about = {"model": self.model, **({"language": self.language} if self.language else {})}
        settings = {"input_audio_format": "pcm16", "input_audio_transcription": about, "model": self.model}
        return [json.dumps({"type": "session.update", "session": settings, "model": self.model})]

    def audio(self, pcm: bytes) -> str | bytes:
        return json.dumps({"type": "input_audio_buffer.append", "audio": base64.b64encode(pcm).decode()})

    def end(self) -> list[str | bytes]:
        self._ended = True
        return [json.dumps({"type": "input_audio_buffer.commit", "final": True})]

    def read(self, message: dict[str, Any]) -> tuple[list[Event], bool]:
        kind = str(message.get("type", ""))
        if kind == "error":
            raise ValueError(f"the server answered: {str(message.get('error'))[:200]}")
        if kind.endswith("transcription.delta"):
            self._text += _text(message, "delta")
            return [Event(self._text)], False
        if kind.endswith(("transcription.completed", "transcription.done")):
            whole = message.get("transcript", message.get("text"))
            text = whole if isinstance(whole, str) else self._text
            self._text = ""
            return [Event(text, final=True, endpoint=not self._ended)], self._ended
        return [], False


def _text(message: dict[str, Any], key: str) -> str:
    value = message.get(key)
    if not isinstance(value, str):
        raise ValueError(f"the server's answer has no text under '{key}'")
    return value


WIRES: dict[str, Callable[..., Wire]] = {"vosk": VoskWire, "deepgram": DeepgramWire, "openai": RealtimeWire}


@dataclass
class WebSocketSession:
    """One stream to a server."""

    connection: Any
    wire: Wire
    rate: int
    timeout_s: float
    needs_realtime: bool = True
    _done: bool = False
    _started: bool = field(default=False, repr=False)

    def accept(self, chunk: Clip) -> list[Event]:
        if not self._started:
            self._started = True
            for message in self.wire.begin():
                self.connection.send(message)
        pcm = to_pcm16(resample(chunk, self.rate, self.wire.rate).clip(-1, 1))
        self.connection.send(self.wire.audio(pcm.tobytes()))
        return list(self._received(0.0))

    def wait(self, seconds: float) -> Iterator[Event]:
        """What comes in within so many seconds, each event as it comes."""
        return self._received(seconds)

    def finish(self) -> Iterator[Event]:
        """Say that the audio has ended and wait for the rest, at most `timeout_s`; each event as it comes."""
        try:
            if not self._started:  # a clip without samples
                for message in self.wire.begin():
                    self.connection.send(message)
            for message in self.wire.end():
                self.connection.send(message)
            yield from self._received(self.timeout_s)
        finally:
            self.connection.close()
        if not self._done:
            raise TimeoutError(f"the server had not finished {self.timeout_s:g} s after the end of the audio")

    def _received(self, wait_s: float) -> Iterator[Event]:
        """What has come in; up to `wait_s` for the server's last word."""
        deadline = time.monotonic() + wait_s
        while not self._done:
            try:
                message = self.connection.recv(timeout=max(0.0, deadline - time.monotonic()))
            except TimeoutError:
                return
            content = json.loads(message)
            if not isinstance(content, dict):
                raise ValueError("the server's answer is not a JSON object")
            events, self._done = self.wire.read(content)
            yield from events
