"""A vendor of speech recognition: `api:deepgram`, `api:assemblyai`, ...; the rows are in `models.vendors`.

The key is in the vendor's environment variable. What is tried again and what ends a run: see `models.http_client`.
"""

from __future__ import annotations

import asyncio
import os
from dataclasses import asdict, dataclass, replace
from typing import Any

from speech_robust_bench.core.errors import UserError, did_you_mean
from speech_robust_bench.models.chunks import split_at_pauses
from speech_robust_bench.models.http_client import (
    ClientOptions,
    ServerClient,
    ServerRequest,
    check_url,
    text_at,
    wav_bytes,
)
from speech_robust_bench.models.interface import Clip, Described, Recogniser, SomeFailed
from speech_robust_bench.models.vendors import VENDORS, Upload, Vendor, VendorJob

FIRST_ASK_S, LONGEST_ASK_S = 1.0, 10.0  # between two questions whether a job is done


@dataclass
class VendorEndpoint(Described):
    """One request per clip, or one job."""

    vendor: Vendor = None  # type: ignore[assignment]
    url: str = ""
    key: str = ""
    model: str = ""
    client: Any = None

    def transcribe(self, clips: list[Clip], rate: int, language: str | None) -> list[str]:
        return SomeFailed.unless_all_well(self.client.map(lambda clip: self._text(clip, rate, language), clips))

    async def _text(self, clip: Clip, rate: int, language: str | None) -> str:
        pieces = split_at_pauses(clip, rate, self.vendor.longest_s)
        texts = [await self._piece(piece, rate, language) for piece in pieces]
        return " ".join(filter(None, texts))

    async def _piece(self, clip: Clip, rate: int, language: str | None) -> str:
        upload = Upload(self.url, self.key, self.model, wav_bytes(clip, rate), language, rate)
        request = self.vendor.send(upload)
        if self.vendor.before:
            sent = text_at(await self.client.send(self.vendor.before(upload)), ("upload_url",))
            request = replace(request, json={**request.json, "audio_url": sent})
        answer = await self.client.send(request)
        if self.vendor.job:
            answer = await self._wait(self.vendor.job, upload, answer)
        return self.vendor.text(answer).strip()

    async def _wait(self, job: VendorJob, upload: Upload, answer: Any) -> Any:
        """Ask until the job is done; one that takes longer than the deadline of an answer is that clip's error."""
        name = text_at(answer, job.id_at)
        if not name.replace("-", "").isalnum():
            raise RuntimeError("the answer has no usable job id")
        pause_s = FIRST_ASK_S
        async with asyncio.timeout(self.client.options.timeout_s):
            while (status := text_at(answer := await self._ask(job, upload, name), job.status_at)) != job.done:
                if status == job.failed:
                    raise RuntimeError(f"the job has failed: {answer.get('error', status)}")
                await asyncio.sleep(pause_s)
                pause_s = min(LONGEST_ASK_S, 2 * pause_s)
        return await self.client.send(job.result(upload, name)) if job.result else answer

    async def _ask(self, job: VendorJob, upload: Upload, name: str) -> Any:
        request: ServerRequest = job.ask(upload, name)
        return await self.client.send(request)

    def close(self) -> None:
        self.client.close()


def load(
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
    key = os.environ.get(variable)
    if not key:
        raise UserError(f"api:{target}: set {variable} to your key, or name another variable with ?key_env=NAME")
    if "{region}" in vendor.url and not (url or region):
        raise UserError(f"api:{target}: say where your resource is, as in api:{target}?region=westeurope")
    address = (url or vendor.url.format(region=region)).rstrip("/")
    check_url("api", target, address)
    options = ClientOptions(concurrency, requests_per_minute, retries, timeout_s)
    name = model or vendor.model
    return VendorEndpoint(
        name=f"{target}-{name}",
        revision=None,
        options={"model": name, "cost_per_minute": cost_per_minute or vendor.cost_per_minute, **asdict(options)},
        batch_size=4 * concurrency,
        vendor=vendor,
        url=address,
        key=key,
        model=name,
        client=ServerClient(f"api:{target}", options),
    )


def vendor_of(target: str) -> Vendor:
    """A row of the table by its name."""
    if target not in VENDORS:
        raise UserError(f"api: no vendor '{target}'; {did_you_mean(target, VENDORS)}")
    return VENDORS[target]
