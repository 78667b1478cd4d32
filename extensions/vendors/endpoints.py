"""Recognisers behind a server: `api:<vendor>`, `openai-api:<url>` and `chat-api:<url>`.

The key of a server is in an environment variable. `http_client` says which requests are sent again and what ends a run.
"""

from __future__ import annotations

import asyncio
import os
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

from speech_robust_bench.core.errors import UserError
from speech_robust_bench.extensions.vendors.http_client import (
    ClientOptions,
    ServerClient,
    check_url,
    text_at,
    wav_bytes,
)
from speech_robust_bench.extensions.vendors.vendor_table import (
    VENDORS,
    Upload,
    Vendor,
    VendorJob,
    chat_request,
    chat_text,
    vendor_of,
)
from speech_robust_bench.models.interface import Clip, Described, Recogniser, SomeFailed, spec_traits, split_at_pauses
from speech_robust_bench.models.prompts import PROMPT

FIRST_ASK_S, LONGEST_ASK_S = 1.0, 10.0  # between two questions whether a job is done


@dataclass(kw_only=True)
class Endpoint(Described):
    """A server that gets one request per clip, or one job."""

    vendor: Vendor
    url: str
    key: str
    model: str
    client: ServerClient

    def transcribe(self, clips: list[Clip], rate: int, language: str | None) -> list[str]:
        return SomeFailed.raise_if_failed(self.client.map(lambda clip: self._text(clip, rate, language), clips))

    async def _text(self, clip: Clip, rate: int, language: str | None) -> str:
        texts = [
            await self._piece(piece, rate, language) for piece in split_at_pauses(clip, rate, self.vendor.longest_s)
        ]
        return texts[0] if len(texts) == 1 else " ".join(filter(None, texts))

    async def _piece(self, clip: Clip, rate: int, language: str | None) -> str:
        upload = Upload(self.url, self.key, self.model, wav_bytes(clip, rate), language, rate)
        request = self.vendor.send(upload)
        if self.vendor.before:
            sent = text_at(await self.client.send(self.vendor.before(upload)), ("upload_url",))
            request = replace(request, json={**request.json, "audio_url": sent})
        answer = await self.client.send(request)
        if self.vendor.job:
            answer = await self._wait(self.vendor.job, upload, answer)
        text = self.vendor.text(answer)
        return text if text == text.strip() else text.strip()  # a Transcript keeps its details

    async def _wait(self, job: VendorJob, upload: Upload, answer: Any) -> Any:
        """Ask until the job is done; a job that takes longer than the deadline of an answer fails its clip."""
        name = text_at(answer, job.id_at)
        if not name.replace("-", "").isalnum():
            raise RuntimeError("the answer has no usable job id")
        pause_s = FIRST_ASK_S
        async with asyncio.timeout(self.client.options.timeout_s):
            while True:
                answer = await self.client.send(job.ask(upload, name))
                status = text_at(answer, job.status_at)
                if status == job.done:
                    break
                if status == job.failed:
                    raise RuntimeError(f"the job has failed: {answer.get('error', status)}")
                await asyncio.sleep(pause_s)
                pause_s = min(LONGEST_ASK_S, 2 * pause_s)
        return await self.client.send(job.result(upload, name)) if job.result else answer

    def close(self) -> None:
        self.client.close()


@spec_traits(holds_keys=True, names_vendor=True)
def load_vendor(
    target: str,
    *,
    model: str = "",
    url: str = "",
    region: str = "",
    key_env: str = "",
    cost_per_minute: float = 0.0,
    concurrency: int = 4,
    requests_per_minute: float = 0.0,
    retries: int = 5,
    timeout_s: float = 300.0,
) -> Recogniser:
    """`api:<vendor>`; `model` is the vendor's name for it, `region` Azure's, `cost_per_minute` your own price."""
    vendor = vendor_of(target)
    variable = key_env or vendor.key_env
    key = os.environ.get(variable, "")
    if not key:
        raise UserError(f"api:{target}: set {variable} to your key, or name another variable with ?key_env=NAME")
    if "{region}" in vendor.url and not (url or region):
        raise UserError(f"api:{target}: name the region of your resource, as in api:{target}?region=westeurope")
    address = (url or vendor.url.format(region=region)).rstrip("/")
    check_url("api", target, address)
    options = ClientOptions(concurrency, requests_per_minute, retries, timeout_s)
    model = model or vendor.model
    return Endpoint(
        name=f"{target}-{model}",
        revision=None,
        options={"model": model, "cost_per_minute": cost_per_minute or vendor.cost_per_minute, **asdict(options)},
        batch_size=4 * concurrency,
        vendor=vendor,
        url=address,
        key=key,
        model=model,
        client=ServerClient(f"api:{target}", options),
    )


def cost_per_minute(target: str) -> float:
    """US dollars for a minute of audio by the vendor's price list; 0 for a server of your own."""
    return VENDORS[target].cost_per_minute if target in VENDORS else 0.0


@spec_traits(holds_keys=True)
def load_openai(
    target: str,
    *,
    model: str = "whisper-1",
    key_env: str = "OPENAI_API_KEY",
    concurrency: int = 4,
    requests_per_minute: float = 0.0,
    retries: int = 5,
    timeout_s: float = 120.0,
) -> Recogniser:
    """`openai-api:<url>`, by default https://api.openai.com/v1; the key is in the environment variable `key_env`."""
    url = (target or VENDORS["openai"].url).rstrip("/").removesuffix("/audio/transcriptions")
    host = check_url("openai-api", target, url).host
    key = os.environ.get(key_env, "")
    if not key and host == "api.openai.com":
        raise UserError(f"openai-api: set {key_env} to your key, or name another variable with ?key_env=NAME")
    options = ClientOptions(concurrency, requests_per_minute, retries, timeout_s)
    return Endpoint(
        name=model,
        revision=None,
        options={"model": model, "temperature": 0, **asdict(options)},
        batch_size=4 * concurrency,
        vendor=VENDORS["openai"],
        url=url,
        key=key,
        model=model,
        client=ServerClient(f"openai-api:{host}", options),
    )


@spec_traits(holds_keys=True)
def load_chat(
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
    """`chat-api:<url>?model=<name>`, an audio language model. A key is in the environment variable `key_env`.

    Words around the transcript are removed by the rule of `models.prompts`; the whole answer is stored beside it.
    """
    url = target.rstrip("/").removesuffix("/chat/completions")
    host = check_url("chat-api", target, url).host
    if not model:
        raise UserError("chat-api: name the model, as in chat-api:http://localhost:8000/v1?model=NAME")
    options = ClientOptions(concurrency, requests_per_minute, retries, timeout_s)
    settings = {"model": model, "prompt": prompt, "temperature": 0, "cost_per_minute": cost_per_minute or None}
    return Endpoint(
        name=model,
        revision=None,
        options={**settings, **asdict(options)},
        batch_size=4 * concurrency,
        vendor=Vendor(url, key_env, model, cost_per_minute, partial(chat_request, prompt=prompt), chat_text),
        url=url,
        key=os.environ.get(key_env, ""),
        model=model,
        client=ServerClient(f"chat-api:{host}", options),
    )
