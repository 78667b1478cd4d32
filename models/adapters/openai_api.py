"""An OpenAI-compatible transcription endpoint: `openai-api:http://localhost:8000/v1?model=whisper-1`.

POST <url>/audio/transcriptions with a 16-bit WAV, as OpenAI's API reference has it; many servers speak it (vLLM,
speaches, LocalAI). Busy and broken answers (408, 409, 429, 5xx, lost connections) are tried again, after what
`Retry-After` says or after a wait that doubles; a refusal (401, 403, 404) ends the run, as every clip would meet it.
"""

from __future__ import annotations

import email.utils
import http.client
import io
import json
import os
import random
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from srb.builders.audio import to_pcm16
from srb.builders.errors import UserError
from srb.models.interface import Clip, Described, Recogniser, SomeFailed

AGAIN = {408, 409, 425, 429, 500, 502, 503, 504}
REFUSED = {401, 403, 404}
FIRST_WAIT_S, LONGEST_WAIT_S = 1.0, 60.0


@dataclass
class Api(Described):
    """`concurrency` requests at a time, no more than `requests_per_minute`."""

    url: str = ""
    model: str = ""
    key: str | None = None
    retries: int = 5
    timeout_s: float = 120.0
    spacing_s: float = 0.0
    pool: Any = None
    _next_s: float = 0.0
    _lock: Any = field(default_factory=threading.Lock)

    def transcribe(self, clips: list[Clip], rate: int, language: str | None) -> list[str]:
        return SomeFailed.unless_all_well(list(self.pool.map(lambda clip: self._one(clip, rate, language), clips)))

    def _one(self, clip: Clip, rate: int, language: str | None) -> str | Exception:
        fields = {"model": self.model, "response_format": "json", "temperature": "0", "language": language}
        body, kind = multipart({key: value for key, value in fields.items() if value}, _wav(clip, rate))
        headers = {"Content-Type": kind, **({"Authorization": f"Bearer {self.key}"} if self.key else {})}
        request = urllib.request.Request(f"{self.url}/audio/transcriptions", body, headers)
        for attempt in range(self.retries + 1):
            self._wait_for_turn()
            pause = min(LONGEST_WAIT_S, FIRST_WAIT_S * 2**attempt) * random.uniform(0.5, 1.0)
            try:
                with urllib.request.urlopen(request, timeout=self.timeout_s) as answer:
                    return json.load(answer)["text"]
            except urllib.error.HTTPError as refusal:
                problem: Exception = RuntimeError(f"HTTP {refusal.code} {_reason(refusal)}".strip())
                if refusal.code in REFUSED:
                    return UserError(f"openai-api:{self.url}: {problem}; check the address, the model and the key")
                if refusal.code not in AGAIN:
                    return problem
                pause = _retry_after_s(refusal.headers.get("Retry-After")) or pause
            except (OSError, http.client.HTTPException, ValueError, KeyError) as error:
                problem = RuntimeError(f"{type(error).__name__}: {error}")
            if attempt < self.retries:
                time.sleep(pause)
        return problem

    def _wait_for_turn(self) -> None:
        with self._lock:
            now = time.monotonic()
            mine = max(now, self._next_s)
            self._next_s = mine + self.spacing_s
        time.sleep(mine - now)

    def close(self) -> None:
        self.pool.shutdown(wait=False, cancel_futures=True)


def multipart(fields: dict[str, str], wav: bytes) -> tuple[bytes, str]:
    """A multipart/form-data body (RFC 7578) of text fields and one file, and its content type."""
    boundary = uuid.uuid4().hex
    parts = [
        f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'.encode()
        for name, value in fields.items()
    ]
    head = f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="clip.wav"\r\n'
    parts += [head.encode(), b"Content-Type: audio/wav\r\n\r\n", wav, f"\r\n--{boundary}--\r\n".encode()]
    return b"".join(parts), f"multipart/form-data; boundary={boundary}"


def _wav(clip: Clip, rate: int) -> bytes:
    import soundfile

    buffer = io.BytesIO()
    soundfile.write(buffer, to_pcm16(clip.clip(-1, 1)), rate, format="WAV", subtype="PCM_16")
    return buffer.getvalue()


def _reason(refusal: urllib.error.HTTPError) -> str:
    try:
        return str(json.loads(refusal.read())["error"]["message"])[:200]
    except (ValueError, KeyError, TypeError, OSError):
        return refusal.reason or ""


def _retry_after_s(header: str | None) -> float | None:
    """Seconds, or a date (RFC 9110, 10.2.3)."""
    if not header:
        return None
    try:
        return min(LONGEST_WAIT_S, max(0.0, float(header)))
    except ValueError:
        date = email.utils.parsedate_to_datetime(header)
        return min(LONGEST_WAIT_S, max(0.0, date.timestamp() - time.time()))


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
    if urllib.parse.urlsplit(url).scheme not in ("http", "https"):
        raise UserError(f"openai-api:{target}: not a web address; write openai-api:https://host/v1")
    key = os.environ.get(key_env)
    if not key and urllib.parse.urlsplit(url).hostname == "api.openai.com":
        raise UserError(f"openai-api: set {key_env} to your key, or name another variable with ?key_env=NAME")
    return Api(
        name=model,
        revision=None,
        options={
            "model": model,
            "concurrency": concurrency,
            "requests_per_minute": requests_per_minute,
            "temperature": 0,
        },
        batch_size=4 * concurrency,
        url=url,
        model=model,
        key=key,
        retries=retries,
        timeout_s=timeout_s,
        spacing_s=60.0 / requests_per_minute if requests_per_minute else 0.0,
        pool=ThreadPoolExecutor(concurrency, thread_name_prefix="openai-api"),
    )
