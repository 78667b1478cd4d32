"""A live server over a WebSocket: `ws:<url>?protocol=vosk|deepgram|openai|vllm` (see `models/streaming/protocols.py`).

The key is read from the environment variable that `key_env` names. Measured in real time only: `srb run --stream
--realtime`.
"""

from __future__ import annotations

import os
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, ClassVar

from speech_robust_bench.core.errors import UserError, did_you_mean
from speech_robust_bench.models.interface import Clip, Described, Recogniser, need
from speech_robust_bench.models.streaming.protocols import WIRES
from speech_robust_bench.models.streaming.replay import StreamOptions, replay
from speech_robust_bench.models.streaming.websocket import MOST_BYTES, WebSocketSession, give_up_sending_after

CLOSE_TIMEOUT_S = 2.0  # for the server's goodbye: one that has stalled says none


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
