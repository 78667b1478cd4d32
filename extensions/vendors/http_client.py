"""Requests to an untrusted server, with retries, a deadline for the whole answer and a limit on its size.

Busy and broken answers (408, 409, 425, 429, 5xx, lost connections) are retried after `Retry-After`, or after a wait
that doubles. A refusal (401, 403, 404) ends the run, because every clip would be refused. So does a redirect to
another server, which would receive the key.
"""

from __future__ import annotations

import asyncio
import email.utils
import io
import json
import random
import time
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from typing import Any, TypeVar

import httpx
import soundfile

from speech_robust_bench.core.audio import to_pcm16
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.secrets import mask_secrets
from speech_robust_bench.models.interface import Clip

AGAIN = {408, 409, 425, 429, 500, 502, 503, 504}
REFUSED = {401, 403, 404}
REDIRECTS = {301, 302, 303, 307, 308}
FIRST_WAIT_S, LONGEST_WAIT_S = 1.0, 60.0
MOST_BYTES = 4 * 2**20  # of one answer; a transcript of a day of speech is half a megabyte
MOST_REDIRECTS = 3

T = TypeVar("T")


@dataclass(frozen=True)
class ClientOptions:
    """Limits: `concurrency` requests at a time, at most `requests_per_minute` (0: any number)."""

    concurrency: int = 4
    requests_per_minute: float = 0.0
    retries: int = 5
    timeout_s: float = 120.0


@dataclass(frozen=True)
class ServerRequest:
    """The arguments of `httpx.AsyncClient.stream`."""

    method: str
    url: str
    headers: dict[str, str] = field(default_factory=dict)
    params: dict[str, str] | None = None
    data: dict[str, str] | None = None
    files: dict[str, tuple[str, bytes, str]] | None = None
    json: Any = None
    content: bytes | None = None


class Retry(Exception):
    """A broken answer or a busy server: try again, after `wait_s` if the server said so."""

    def __init__(self, problem: str, wait_s: float | None = None) -> None:
        super().__init__(problem)
        self.wait_s = wait_s


class ServerClient:
    """Sends requests from its own thread, so that it works where an event loop runs already (notebooks)."""

    def __init__(self, label: str, options: ClientOptions) -> None:
        self.label = label
        self.options = options
        self._spacing_s = 60.0 / options.requests_per_minute if options.requests_per_minute else 0.0
        self._next_s = 0.0
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=label)
        self._runner = asyncio.Runner()

    def map(self, work: Callable[[T], Awaitable[str]], items: Sequence[T]) -> list[str | Exception]:
        """The results of `work` for every item, `concurrency` at a time; an exception takes the place of a result."""
        return self._thread.submit(lambda: self._runner.run(self._map(work, items))).result()

    async def _map(self, work: Callable[[T], Awaitable[str]], items: Sequence[T]) -> list[str | Exception]:
        turns = asyncio.Semaphore(self.options.concurrency)
        limits = httpx.Limits(max_connections=self.options.concurrency)
        # `send` has the deadline: those of httpx are for one read, and a slow drip of bytes never meets them
        async with httpx.AsyncClient(timeout=None, limits=limits, headers={"Accept-Encoding": "identity"}) as client:
            self._client = client

            async def one_at_a_turn(item: T) -> str | Exception:
                async with turns:
                    try:
                        return await work(item)
                    except Exception as error:
                        return error

            return list(await asyncio.gather(*(one_at_a_turn(item) for item in items)))

    async def send(self, request: ServerRequest) -> Any:
        """The JSON of the answer, retried up to `retries` times."""
        for attempt in range(self.options.retries + 1):
            await self._wait_for_turn()
            pause_s = min(LONGEST_WAIT_S, FIRST_WAIT_S * 2**attempt) * random.uniform(0.5, 1.0)
            try:
                async with asyncio.timeout(self.options.timeout_s):
                    return parse_json(await self._answer(request))
            except Retry as problem:
                reason, pause_s = str(problem), pause_s if problem.wait_s is None else problem.wait_s
            except TimeoutError:
                reason = f"no whole answer within {self.options.timeout_s:g} s"
            except httpx.HTTPError as error:
                reason = f"{type(error).__name__}: {error}"
            if attempt < self.options.retries:
                await asyncio.sleep(pause_s)
        raise RuntimeError(reason)

    async def _answer(self, request: ServerRequest) -> bytes:
        url = httpx.URL(request.url)
        for _ in range(MOST_REDIRECTS + 1):
            async with self._client.stream(**{**asdict(request), "url": url}) as answer:
                if answer.status_code not in REDIRECTS:
                    body = await _bounded(answer)
                    self._check(answer, body)
                    return body
                url = self._redirected(url, answer.headers.get("Location", ""))
        raise RuntimeError(f"more than {MOST_REDIRECTS} redirects")

    def _redirected(self, url: httpx.URL, location: str) -> httpx.URL:
        target = url.join(location)
        if (target.scheme, target.host, target.port) != (url.scheme, url.host, url.port):
            raise UserError(
                f"{self.label}: {url.host} redirects to another server, {target.host}, which would receive the key and "
                "the audio; to use it, name it in the spec"
            )
        return target

    def _check(self, answer: httpx.Response, body: bytes) -> None:
        if answer.is_success:
            return
        problem = f"HTTP {answer.status_code} {reason_of(body) or answer.reason_phrase}".strip()
        if answer.status_code in REFUSED:
            raise UserError(f"{self.label}: {problem}; check the address, the model and the key")
        if answer.status_code in AGAIN:
            raise Retry(problem, retry_after_s(answer.headers.get("Retry-After")))
        raise RuntimeError(problem)

    async def _wait_for_turn(self) -> None:
        now = time.monotonic()
        turn = max(now, self._next_s)
        self._next_s = turn + self._spacing_s
        await asyncio.sleep(turn - now)

    def close(self) -> None:
        self._thread.submit(self._runner.close)
        self._thread.shutdown(wait=False)


async def _bounded(answer: httpx.Response) -> bytes:
    """The whole body. A compressed one is refused: a few bytes could become gigabytes."""
    if answer.headers.get("Content-Encoding", "identity") not in ("", "identity"):
        raise RuntimeError("the answer is compressed, which was not requested")
    body = bytearray()
    async for chunk in answer.aiter_raw():
        body += chunk
        if len(body) > MOST_BYTES:
            raise RuntimeError(f"the answer is longer than {MOST_BYTES // 2**20} MiB")
    return bytes(body)


def parse_json(body: bytes) -> Any:
    """The JSON of an answer; anything else is retried."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        raise Retry("the answer is not JSON") from None


def text_at(answer: Any, path: Sequence[str | int]) -> str:
    """The text at a place in an answer, such as ("results", 0, "text")."""
    value = answer
    try:
        for step in path:
            value = value[step]
    except (KeyError, IndexError, TypeError):
        value = None
    if not isinstance(value, str):
        raise RuntimeError(f"the answer has no text at {'.'.join(map(str, path))}")
    return value


def reason_of(body: bytes) -> str:
    """The server's error message in one short line, with keys masked."""
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        return ""
    for path in (("error", "message"), ("err_msg",), ("message",), ("detail", "message"), ("detail",), ("error",)):
        value = answer
        for step in path:
            value = value.get(step) if isinstance(value, dict) else None
        if isinstance(value, str) and value:
            return mask_secrets(" ".join(value[:1000].split()))[:200]
    return ""


def retry_after_s(header: str | None) -> float | None:
    """The seconds to wait by a Retry-After header, a number or a date (RFC 9110, 10.2.3); None for anything else."""
    if not header:
        return None
    try:
        seconds = float(header)
    except ValueError:
        try:
            seconds = email.utils.parsedate_to_datetime(header).timestamp() - time.time()
        except (ValueError, OverflowError):
            return None
    return min(LONGEST_WAIT_S, max(0.0, seconds)) if seconds == seconds else None  # not NaN


def wav_bytes(clip: Clip, rate: int) -> bytes:
    """A clip as a 16-bit WAV file."""
    buffer = io.BytesIO()
    soundfile.write(buffer, to_pcm16(clip.clip(-1, 1)), rate, format="WAV", subtype="PCM_16")
    return buffer.getvalue()


def check_url(adapter: str, target: str, url: str) -> httpx.URL:
    """The parsed address of a server; any other text is an error with an example."""
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL:
        parsed = httpx.URL("")
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise UserError(f"{adapter}:{mask_secrets(target)}: not a web address; write {adapter}:https://host/v1")
    return parsed
