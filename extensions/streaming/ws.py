"""A live server over a WebSocket: `ws:<url>?protocol=vosk|deepgram|openai|vllm`.

The key is in the environment variable `key_env`. A server has its own clock, so it is measured in real time:
`srb run --stream --realtime`. Its messages are untrusted, and bounded in size, number and time: an unreadable answer
or a broken connection fails that clip.

The protocols are from the servers' own references: vosk-server's asr_server.py; Deepgram, "Live Audio"; OpenAI,
"Realtime transcription" and the list of its events (general availability); vLLM, `entrypoints/speech_to_text/realtime`.
"""

from __future__ import annotations

import base64
import json
import os
import socket
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol
from urllib.parse import parse_qsl, urlencode, urlsplit

from speech_robust_bench.core.audio import resample, to_pcm16
from speech_robust_bench.core.errors import UserError, did_you_mean
from speech_robust_bench.extensions.streaming.replay import replay
from speech_robust_bench.extensions.streaming.streams import StreamOptions
from speech_robust_bench.models.interface import Clip, Described, Event, Recogniser, Word, need, spec_traits

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


MOST_BYTES = 1 << 20  # of one message
CLOSE_TIMEOUT_S = 2.0  # a stalled server does not confirm that the connection is closed
MOST_MESSAGES = 200_000  # of one stream: two hours have 72,000 chunks of 100 ms


@dataclass
class WebSocketSession:
    """One stream to a server."""

    connection: Any
    wire: Wire
    rate: int
    timeout_s: float
    needs_realtime: bool = True
    _started: bool = field(default=False, repr=False)
    _messages: int = field(default=0, repr=False)
    _closed: bool = field(default=False, repr=False)  # by the server, when it might

    def accept(self, chunk: Clip) -> list[Event]:
        self._start()
        pcm = to_pcm16(resample(chunk, self.rate, self.wire.rate).clip(-1, 1))
        self.connection.send(self.wire.audio(pcm.tobytes()))
        return list(self._received(0.0))

    def wait(self, seconds: float) -> Iterator[Event]:
        """Every event that arrives within a number of seconds, as it arrives."""
        return self._received(seconds)

    def finish(self) -> Iterator[Event]:
        """End the audio and wait for the rest, at most `timeout_s`; each event as it comes."""
        self._start()
        for message in self.wire.end():
            self.connection.send(message)
        yield from self._received(self.timeout_s)
        if not (self.wire.done or self._closed):
            raise TimeoutError(f"the server had not finished {self.timeout_s:g} s after the end of the audio")
        self.close()

    def close(self) -> None:
        self.connection.close()

    def _start(self) -> None:
        if not self._started:
            self._started = True
            for message in self.wire.begin():
                self.connection.send(message)

    def _received(self, wait_s: float) -> Iterator[Event]:
        """The events that have arrived; with `wait_s`, also those until the server has finished."""
        from websockets.exceptions import ConnectionClosedOK

        deadline = time.monotonic() + wait_s
        while not self.wire.done:
            left_s = deadline - time.monotonic()
            if wait_s and left_s < 0:
                return
            try:
                message = self.connection.recv(timeout=max(0.0, left_s))
            except TimeoutError:
                return
            except ConnectionClosedOK:
                self._closed = self.wire.may_close
                if self._closed:
                    return
                raise
            self._messages += 1
            if self._messages > MOST_MESSAGES:
                raise ValueError(f"the server sent more than {MOST_MESSAGES} messages")
            yield from self._events(message)

    def _events(self, message: str | bytes) -> list[Event]:
        content = json.loads(message)
        if not isinstance(content, dict):
            raise ValueError("the server's answer is not a JSON object")
        try:
            return self.wire.read(content)
        except (AttributeError, LookupError, TypeError) as error:
            raise ValueError(f"the server's answer is not as its protocol says: {error!r}") from None


def give_up_sending_after(connection: Any, seconds: float) -> None:
    """Bound the time of a send: a server that stops reading would hold a stream for ever once the buffers are full."""
    with suppress(AttributeError, OSError):  # not every system has it
        whole = int(seconds)
        timeval = struct.pack("ll", whole, int(1e6 * (seconds - whole)))
        connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, timeval)


@dataclass
class WebSocket(Described):
    """A server and how to talk to it."""

    needs_realtime: ClassVar[bool] = True
    url: str = ""
    protocol: str = "vosk"
    model: str = ""
    key: str = ""
    timeout_s: float = 30.0

    def stream(self, rate: int, language: str | None) -> WebSocketSession:
        client = need("websockets.sync.client", "ws", "pip install websockets")
        scheme = "Token" if self.protocol == "deepgram" else "Bearer"
        headers = {"Authorization": f"{scheme} {self.key}"} if self.key else {}
        wire = WIRES[self.protocol](language=language, model=self.model)
        try:
            opened = client.connect(
                wire.address(self.url),
                additional_headers=headers,
                open_timeout=self.timeout_s,
                close_timeout=CLOSE_TIMEOUT_S,
                max_size=MOST_BYTES,
            )
            connection: Any = ExitStack().enter_context(opened)  # the session closes it
        except (OSError, TimeoutError) as error:
            raise ConnectionError(f"{self.url}: no connection ({error})") from None
        give_up_sending_after(connection, self.timeout_s)
        return WebSocketSession(connection, wire, rate, self.timeout_s)

    def transcribe(self, clips: list[Clip], rate: int, language: str | None) -> list[str]:
        pace = StreamOptions(realtime=True)
        return [replay(self.stream(rate, language), clip, rate, pace).text for clip in clips]


@spec_traits(holds_keys=True)
def load(
    target: str,
    *,
    protocol: str = "vosk",
    model: str = "",
    key_env: str = "",
    timeout_s: float = 30.0,
    cost_per_minute: float = 0.0,
) -> Recogniser:
    """`ws:wss://host/v1/listen?protocol=deepgram`; `cost_per_minute` is for the estimate before a run."""
    if not target.startswith(("ws://", "wss://")):
        raise UserError(f"ws:{target}: a WebSocket address begins with ws:// or wss://, as in ws:ws://localhost:2700")
    if protocol not in WIRES:
        raise UserError(f"ws: no protocol '{protocol}'; {did_you_mean(protocol, WIRES)}")
    key = os.environ.get(key_env, "") if key_env else ""
    if key_env and not key:
        raise UserError(f"ws: the environment variable {key_env} is not set; it holds the server's key")
    return WebSocket(
        name=model or target,
        revision=None,
        options={
            "protocol": protocol,
            "model": model,
            "timeout_s": timeout_s,
            **({"cost_per_minute": cost_per_minute} if cost_per_minute else {}),
        },
        url=target,
        protocol=protocol,
        model=model,
        key=key,
        timeout_s=timeout_s,
    )
