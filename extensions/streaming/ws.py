"""A live server over a WebSocket: `ws:<url>?protocol=vosk|deepgram|openai|vllm` (see `protocols`).

The key is in the environment variable `key_env`. A server has its own clock, so it is measured in real time:
`srb run --stream --realtime`. Its messages are untrusted, and bounded in size, number and time: an unreadable answer
or a broken connection fails that clip.
"""

from __future__ import annotations

import json
import os
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from typing import Any, ClassVar

from speech_robust_bench.core.audio import resample, to_pcm16
from speech_robust_bench.core.errors import UserError, did_you_mean
from speech_robust_bench.extensions.streaming.protocols import WIRES, Wire
from speech_robust_bench.extensions.streaming.replay import replay
from speech_robust_bench.extensions.streaming.streams import StreamOptions
from speech_robust_bench.models.interface import Clip, Described, Event, Recogniser, need, spec_traits

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
