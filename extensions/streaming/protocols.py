"""The WebSocket protocols of live servers: Vosk, Deepgram, OpenAI's realtime transcription, and vLLM's.

Facts are from the servers' own references: vosk-server's asr_server.py; Deepgram, "Live Audio"; OpenAI, "Realtime
transcription" and the list of its events (general availability); vLLM, `entrypoints/speech_to_text/realtime`.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol
from urllib.parse import parse_qsl, urlencode, urlsplit

from speech_robust_bench.models.interface import Event, Word

Message = dict[str, Any]


class Wire(Protocol):
    """One stream in a protocol: its first and last messages, its audio messages, and the events in its answers."""

    rate: int

    def address(self, url: str) -> str:
        """The address with the parameters of the protocol."""
        ...

    def begin(self) -> list[str | bytes]: ...

    def audio(self, pcm: bytes) -> str | bytes: ...

    def end(self) -> list[str | bytes]: ...

    def read(self, message: Message) -> list[Event]:
        """The events in a message."""
        ...

    @property
    def done(self) -> bool:
        """Whether the server has finished."""
        ...

    @property
    def may_close(self) -> bool:
        """Whether the server may end the stream by closing the connection now."""
        ...


@dataclass
class BinaryWire:
    """The state of protocols that take the samples as binary messages."""

    rate: int = 16_000
    language: str | None = None
    model: str = ""
    done: bool = False
    may_close: bool = False


@dataclass
class VoskWire(BinaryWire):
    """One answer to every chunk and to the end, after which the server closes."""

    _awaited: int = 0  # answers: a server that is behind still owes those of earlier chunks when the audio ends
    _ended: bool = False

    def address(self, url: str) -> str:
        return url

    def begin(self) -> list[str | bytes]:
        return [json.dumps({"config": {"sample_rate": self.rate, "words": True}})]

    def audio(self, pcm: bytes) -> str | bytes:
        self._awaited += 1
        return pcm

    def end(self) -> list[str | bytes]:
        self._awaited += 1
        self._ended = True
        return [json.dumps({"eof": 1})]

    def read(self, message: Message) -> list[Event]:
        self._awaited -= 1
        if "partial" in message:
            return [Event(_text(message, "partial"))] if message["partial"] else []
        text = _text(message, "text")
        self.may_close = self._ended
        self.done = self._ended and self._awaited <= 0
        return [Event(text, True, _words(message.get("result", ())), not self._ended)] if text else []


@dataclass
class DeepgramWire(BinaryWire):
    """A result replaces the last one until it is final. The last message is the metadata."""

    _final_s: float = 0.0  # up to here the transcript is final

    def address(self, url: str) -> str:
        said = {"encoding": "linear16", "sample_rate": str(self.rate), "channels": "1", "interim_results": "true"}
        return with_query(url, {**said, "model": self.model, "language": self.language or ""})

    def begin(self) -> list[str | bytes]:
        return []

    def audio(self, pcm: bytes) -> str | bytes:
        return pcm

    def end(self) -> list[str | bytes]:
        return [json.dumps({"type": "CloseStream"})]

    def read(self, message: Message) -> list[Event]:
        self.done = message.get("type") == "Metadata"
        if message.get("type") != "Results":
            return []
        start_s, length_s = float(message.get("start", 0.0)), float(message.get("duration", 0.0))
        if start_s + 1e-3 < self._final_s:  # it goes back behind what was final
            return []
        best = message["channel"]["alternatives"][0]
        final = bool(message.get("is_final"))
        if final:
            self._final_s = start_s + length_s
        words = _words(best.get("words", ()))
        return [Event(_text(best, "transcript"), final, words, final and bool(message.get("speech_final")))]


@dataclass
class Item:
    """A part of the audio that the server transcribes separately: its text so far, and whether it is complete."""

    text: str = ""
    complete: bool = False


@dataclass
class RealtimeWire:
    """Audio in base64, deltas of an item's text, then the whole text.

    Several items may be in progress at once, and a later one may be complete first. Events come in the order of the
    audio: an item is shown when those before it are complete.
    """

    rate: int
    language: str | None = None
    model: str = ""
    may_close: bool = False
    _items: dict[str, Item] = field(default_factory=dict)  # incomplete or waiting, in the order of the audio
    _shown: set[str] = field(default_factory=set)
    _ended: bool = False
    _commits: bool = False  # the server says which item a commit has made
    _last_known: bool = False  # which items there are is known, to the last

    def address(self, url: str) -> str:
        return url

    def begin(self) -> list[str | bytes]:
        raise NotImplementedError

    def audio(self, pcm: bytes) -> str | bytes:
        return json.dumps({"type": "input_audio_buffer.append", "audio": base64.b64encode(pcm).decode()})

    def end(self) -> list[str | bytes]:
        self._ended = True
        return [json.dumps({"type": "input_audio_buffer.commit", "final": True})]

    @property
    def done(self) -> bool:
        return self._ended and self._last_known and not self._items

    def read(self, message: Message) -> list[Event]:
        kind, name = str(message.get("type", "")), str(message.get("item_id", ""))
        if kind == "error" or kind.endswith("transcription.failed"):
            return self._failed(message)
        if kind == "input_audio_buffer.committed":
            self._commits = True
            self._last_known |= self._ended
            self._place(name, message)
            return []
        if not kind.endswith(("transcription.delta", "transcription.completed", "transcription.done")):
            return []
        if name in self._shown:  # too late
            return []
        item = self._items.setdefault(name, Item())
        if kind.endswith("transcription.delta"):
            item.text += _text(message, "delta")
        else:
            whole = message.get("transcript", message.get("text"))
            item.text, item.complete = whole if isinstance(whole, str) else item.text, True
            self._last_known |= self._ended and not self._commits
        return self._show(name)

    def _failed(self, message: Message) -> list[Event]:
        error = message.get("error")
        if self._ended and isinstance(error, dict) and error.get("code") == "input_audio_buffer_commit_empty":
            self._last_known = True  # the server had cut the audio itself, and nothing was left
            return []
        raise ValueError(f"the server answered: {str(error)[:200]}")

    def _place(self, name: str, message: Message) -> None:
        """Put an item behind its previous one; last if the server names none."""
        if name in self._items or name in self._shown:
            return
        before = message.get("previous_item_id", name)
        if before is None or before in self._shown:
            self._items = {name: Item(), **self._items}
            return
        order = list(self._items.items())
        at = list(self._items).index(before) + 1 if before in self._items else len(order)
        self._items = dict([*order[:at], (name, Item()), *order[at:]])

    def _show(self, changed: str) -> list[Event]:
        events: list[Event] = []
        while self._items:
            name, item = next(iter(self._items.items()))
            if not item.complete:
                return [*events, Event(item.text)] if item.text and (events or name == changed) else events
            events.append(Event(item.text, final=True, endpoint=not self._ended))
            del self._items[name]
            self._shown |= {name} - {""}  # a server without names for its items has one at a time
        return events


@dataclass
class OpenAIWire(RealtimeWire):
    """OpenAI's transcription sessions, which take 24 kHz."""

    rate: int = 24_000

    def address(self, url: str) -> str:
        return url if "model=" in urlsplit(url).query else with_query(url, {"intent": "transcription"})

    def begin(self) -> list[str | bytes]:
        about = {"model": self.model, "language": self.language}
        audio = {
            "format": {"type": "audio/pcm", "rate": self.rate},
            "transcription": {name: value for name, value in about.items() if value},
        }
        return [json.dumps({"type": "session.update", "session": {"type": "transcription", "audio": {"input": audio}}})]


@dataclass
class VllmWire(RealtimeWire):
    """vLLM's realtime endpoint: 16 kHz, and a first commit that starts the transcription."""

    rate: int = 16_000

    def begin(self) -> list[str | bytes]:
        update = {"type": "session.update", "model": self.model}
        return [json.dumps(update), json.dumps({"type": "input_audio_buffer.commit", "final": False})]


def with_query(url: str, parameters: dict[str, str]) -> str:
    """An address with parameters added, but for those that it has.

    >>> with_query("wss://host/listen?model=a", {"model": "b", "channels": "1"})
    'wss://host/listen?model=a&channels=1'
    """
    parts = urlsplit(url)
    there = parse_qsl(parts.query, keep_blank_values=True)
    more = [(name, value) for name, value in parameters.items() if value and name not in dict(there)]
    return parts._replace(query=urlencode(there + more)).geturl()


def _text(message: Message, key: str) -> str:
    value = message.get(key)
    if not isinstance(value, str):
        raise ValueError(f"the server's answer has no text under '{key}'")
    return value


def _words(words: Any) -> tuple[Word, ...]:
    return tuple(Word(str(word["word"]), float(word["start"]), float(word["end"])) for word in words)


WIRES: dict[str, Callable[..., Wire]] = {
    "vosk": VoskWire,
    "deepgram": DeepgramWire,
    "openai": OpenAIWire,
    "vllm": VllmWire,
}
