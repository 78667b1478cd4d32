"""An OpenAI-compatible transcription endpoint: `openai-api:http://localhost:8000/v1?model=whisper-1`.

POST <url>/audio/transcriptions with a 16-bit WAV, as OpenAI's API reference has it; many servers speak it (vLLM,
speaches, LocalAI). `extensions.vendors.http_client` decides which requests are repeated and what ends the run.
"""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from typing import Any

from speech_robust_bench.core.errors import UserError
from speech_robust_bench.extensions.vendors.http_client import (
    ClientOptions,
    ServerClient,
    ServerRequest,
    check_url,
    text_at,
    wav_bytes,
)
from speech_robust_bench.models.interface import Clip, Described, Recogniser, SomeFailed


@dataclass
class TranscriptionEndpoint(Described):
    """One request per clip."""

    url: str = ""
    model: str = ""
    key: str | None = None
    client: Any = None

    def transcribe(self, clips: list[Clip], rate: int, language: str | None) -> list[str]:
        return SomeFailed.raise_if_failed(self.client.map(lambda clip: self._text(clip, rate, language), clips))

    async def _text(self, clip: Clip, rate: int, language: str | None) -> str:
        fields = {"model": self.model, "response_format": "json", "temperature": "0", "language": language}
        request = ServerRequest(
            "POST",
            f"{self.url}/audio/transcriptions",
            headers={"Authorization": f"Bearer {self.key}"} if self.key else {},
            data={name: value for name, value in fields.items() if value},
            files={"file": ("clip.wav", wav_bytes(clip, rate), "audio/wav")},
        )
        return text_at(await self.client.send(request), ("text",))

    def close(self) -> None:
        self.client.close()


def load(
    target: str,
    *,
    model: str = "whisper-1",
    key_env: str = "OPENAI_API_KEY",
    concurrency: int = 4,
    requests_per_minute: float = 0.0,
    retries: int = 5,
    timeout_s: float = 120.0,
) -> Recogniser:
    """`openai-api:<url>`, https://api.openai.com/v1 if none; the key is in the environment variable `key_env`."""
    url = (target or "https://api.openai.com/v1").rstrip("/").removesuffix("/audio/transcriptions")
    host = check_url("openai-api", target, url).host
    key = os.environ.get(key_env)
    if not key and host == "api.openai.com":
        raise UserError(f"openai-api: set {key_env} to your key, or name another variable with ?key_env=NAME")
    options = ClientOptions(concurrency, requests_per_minute, retries, timeout_s)
    return TranscriptionEndpoint(
        name=model,
        revision=None,
        options={"model": model, "temperature": 0, **asdict(options)},
        batch_size=4 * concurrency,
        url=url,
        model=model,
        key=key,
        client=ServerClient(f"openai-api:{host}", options),
    )
