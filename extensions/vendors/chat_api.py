"""An audio language model behind a chat endpoint: `chat-api:http://localhost:8000/v1?model=Qwen/Qwen2-Audio-7B-Instruct`.

POST <url>/chat/completions with the audio as `input_audio` (OpenAI's API reference), as vLLM and others serve it. Words
around the transcript are taken away by the rule of `models.llm_answer`; the answer as it came is stored beside.
"""

from __future__ import annotations

import base64
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
from speech_robust_bench.models.llm_answer import unwrap, with_raw

PROMPT = "Transcribe the speech word for word, and write nothing else."


@dataclass
class ChatEndpoint(Described):
    """One conversation per clip."""

    url: str = ""
    model: str = ""
    key: str | None = None
    prompt: str = PROMPT
    client: Any = None

    def transcribe(self, clips: list[Clip], rate: int, language: str | None) -> list[str]:
        return SomeFailed.raise_if_failed(self.client.map(lambda clip: self._text(clip, rate), clips))

    async def _text(self, clip: Clip, rate: int) -> str:
        audio = {"data": base64.b64encode(wav_bytes(clip, rate)).decode(), "format": "wav"}
        content = [{"type": "text", "text": self.prompt}, {"type": "input_audio", "input_audio": audio}]
        request = ServerRequest(
            "POST",
            f"{self.url}/chat/completions",
            headers={"Authorization": f"Bearer {self.key}"} if self.key else {},
            json={"model": self.model, "messages": [{"role": "user", "content": content}], "temperature": 0},
        )
        answer = text_at(await self.client.send(request), ("choices", 0, "message", "content")).strip()
        return with_raw(unwrap(answer), answer)

    def close(self) -> None:
        self.client.close()


def load(
    target: str,
    *,
    model: str = "",
    prompt: str = PROMPT,
    key_env: str = "OPENAI_API_KEY",
    cost_per_minute: float = 0.0,
    concurrency: int = 4,
    requests_per_minute: float = 0.0,
    retries: int = 5,
    timeout_s: float = 120.0,
) -> Recogniser:
    """`chat-api:<url>?model=<name>`; the key, if the server wants one, is in the environment variable `key_env`."""
    url = target.rstrip("/").removesuffix("/chat/completions")
    host = check_url("chat-api", target, url).host
    if not model:
        raise UserError("chat-api: say which model, as in chat-api:http://localhost:8000/v1?model=NAME")
    options = ClientOptions(concurrency, requests_per_minute, retries, timeout_s)
    return ChatEndpoint(
        name=model,
        revision=None,
        options={"model": model, "prompt": prompt, "temperature": 0, "cost_per_minute": cost_per_minute or None}
        | asdict(options),
        batch_size=4 * concurrency,
        url=url,
        model=model,
        key=os.environ.get(key_env),
        prompt=prompt,
        client=ServerClient(f"chat-api:{host}", options),
    )
