"""One stream to a live server over a WebSocket.

A server has a clock of its own, so such a session is only measured in real time. What a server sends is bounded in
size, number and time and never trusted: an answer that cannot be read, or a connection that breaks, is that clip's
error.
"""

from __future__ import annotations

import json
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from speech_robust_bench.core.audio import resample, to_pcm16
from speech_robust_bench.models.interface import Clip
from speech_robust_bench.models.streaming.protocols import Wire
from speech_robust_bench.models.streaming.session import Event

MOST_BYTES = 1 << 20  # of one message
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
        """Say that the audio has ended and wait for the rest, at most `timeout_s`; each event as it comes."""
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
        """What has come in; up to `wait_s` for the server's last word."""
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
    """A server that no longer reads would otherwise hold a stream for ever, once the buffers are full."""
    with suppress(AttributeError, OSError):  # not every system has it
        whole = int(seconds)
        timeval = struct.pack("ll", whole, int(1e6 * (seconds - whole)))
        connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, timeval)
