"""Recognisers behind a server: `api:<vendor>`, `openai-api:<url>` and `chat-api:<url>`.

A vendor is a row of `VENDORS`; addresses, fields and answers are those of the vendors' own API references. The key of a
server is in an environment variable. `http_client` says which requests are sent again and what ends a run.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

from speech_robust_bench.core.errors import UserError, did_you_mean
from speech_robust_bench.extensions.vendors.http_client import (
    ClientOptions,
    ServerClient,
    ServerRequest,
    check_url,
    text_at,
    wav_bytes,
)
from speech_robust_bench.models.interface import Clip, Described, Recogniser, SomeFailed, spec_traits, split_at_pauses
from speech_robust_bench.models.prompts import PROMPT, unwrap, with_raw


@dataclass(frozen=True)
class Upload:
    """A clip and where it goes: the input of a vendor's request."""

    url: str
    key: str  # empty for a server that needs none
    model: str
    wav: bytes
    language: str | None
    rate: int


@dataclass(frozen=True)
class VendorJob:
    """How to wait for a vendor that answers with a job: where its id is, where to ask, and its last states."""

    id_at: tuple[str | int, ...]
    ask: Callable[[Upload, str], ServerRequest]
    status_at: tuple[str | int, ...]
    done: str
    failed: str
    result: Callable[[Upload, str], ServerRequest] | None = None  # for a text that is not in the job itself


@dataclass(frozen=True)
class Vendor:
    """A transcription service: its address, its requests and where its answer has the text."""

    url: str
    key_env: str
    model: str
    cost_per_minute: float
    send: Callable[[Upload], ServerRequest]
    text: Callable[[Any], str]
    before: Callable[[Upload], ServerRequest] | None = None  # a first request, which uploads the audio
    job: VendorJob | None = None
    longest_s: float = 3600.0


def _bearer(upload: Upload, scheme: str = "Bearer") -> dict[str, str]:
    return {"Authorization": f"{scheme} {upload.key}"} if upload.key else {}


def _given(**fields: str | None) -> dict[str, str]:
    return {name: value for name, value in fields.items() if value}


def _wav(upload: Upload) -> tuple[str, bytes, str]:
    return ("clip.wav", upload.wav, "audio/wav")


def _at(*path: str | int) -> Callable[[Any], str]:
    return lambda answer: text_at(answer, path)


# The largest region of a language, where it is not written as the language is (de-DE)
REGIONS = {
    "ar": "ar-EG", "bn": "bn-IN", "ca": "ca-ES", "cs": "cs-CZ", "cy": "cy-GB", "da": "da-DK", "el": "el-GR",
    "en": "en-US", "et": "et-EE", "eu": "eu-ES", "fa": "fa-IR", "ga": "ga-IE", "gl": "gl-ES", "he": "he-IL",
    "hi": "hi-IN", "hy": "hy-AM", "ja": "ja-JP", "ka": "ka-GE", "kk": "kk-KZ", "ko": "ko-KR", "ms": "ms-MY",
    "nb": "nb-NO", "pt": "pt-BR", "sl": "sl-SI", "sq": "sq-AL", "sr": "sr-RS", "sv": "sv-SE", "sw": "sw-KE",
    "ta": "ta-IN", "te": "te-IN", "uk": "uk-UA", "ur": "ur-IN", "vi": "vi-VN", "zh": "zh-CN", "no": "nb-NO",
}  # fmt: skip


def _locale(language: str | None) -> str:
    """The language with a region, which Google and Azure need: the largest one where the data has none."""
    code = language or "en"
    return code if "-" in code else REGIONS.get(code, f"{code}-{code.upper()}")


def openai_form(upload: Upload) -> ServerRequest:
    """OpenAI's transcription request, which many servers take (vLLM, speaches, LocalAI)."""
    fields = _given(model=upload.model, language=upload.language, response_format="json", temperature="0")
    url = f"{upload.url}/audio/transcriptions"
    return ServerRequest("POST", url, headers=_bearer(upload), data=fields, files={"file": _wav(upload)})


def _deepgram(upload: Upload) -> ServerRequest:
    headers = {**_bearer(upload, "Token"), "Content-Type": "audio/wav"}
    params = _given(model=upload.model, language=upload.language)
    return ServerRequest("POST", f"{upload.url}/listen", headers=headers, params=params, content=upload.wav)


def _elevenlabs(upload: Upload) -> ServerRequest:
    fields = _given(model_id=upload.model, language_code=upload.language, tag_audio_events="false")
    headers = {"xi-api-key": upload.key}
    return ServerRequest(
        "POST", f"{upload.url}/speech-to-text", headers=headers, data=fields, files={"file": _wav(upload)}
    )


def _google(upload: Upload) -> ServerRequest:
    config = {"encoding": "LINEAR16", "sampleRateHertz": upload.rate, "languageCode": _locale(upload.language)}
    body = {"config": {**config, "model": upload.model}, "audio": {"content": base64.b64encode(upload.wav).decode()}}
    return ServerRequest("POST", f"{upload.url}/speech:recognize", headers={"X-Goog-Api-Key": upload.key}, json=body)


def _results(answer: Any, default: Any = None) -> list[Any]:
    results = answer.get("results", default) if isinstance(answer, dict) else None
    if not isinstance(results, list):
        raise RuntimeError("the answer has no text at results")
    return results


def _google_text(answer: Any) -> str:
    results = _results(answer, [])  # silence has none
    return " ".join(text_at(result, ("alternatives", 0, "transcript")).strip() for result in results)


def _azure(upload: Upload) -> ServerRequest:
    url = f"{upload.url}/speechtotext/transcriptions:transcribe"
    definition = json.dumps({"locales": [_locale(upload.language)]})
    headers = {"Ocp-Apim-Subscription-Key": upload.key}
    params = {"api-version": "2024-11-15"}
    return ServerRequest(
        "POST", url, headers=headers, params=params, data={"definition": definition}, files={"audio": _wav(upload)}
    )


def _azure_text(answer: Any) -> str:
    phrases = answer.get("combinedPhrases") if isinstance(answer, dict) else None
    return "" if phrases == [] else text_at(answer, ("combinedPhrases", 0, "text"))  # silence has none


def _assemblyai_upload(upload: Upload) -> ServerRequest:
    headers = {"Authorization": upload.key, "Content-Type": "application/octet-stream"}
    return ServerRequest("POST", f"{upload.url}/upload", headers=headers, content=upload.wav)


def _assemblyai(upload: Upload) -> ServerRequest:
    """`speech_models` are tried in order: the first one knows six languages."""
    body = {**_given(audio_url="{before}", language_code=upload.language), "speech_models": upload.model.split(",")}
    return ServerRequest("POST", f"{upload.url}/transcript", headers={"Authorization": upload.key}, json=body)


def _assemblyai_text(answer: Any) -> str:
    silent = isinstance(answer, dict) and answer.get("text", "") is None
    return "" if silent else text_at(answer, ("text",))


def _assemblyai_job(upload: Upload, job: str) -> ServerRequest:
    return ServerRequest("GET", f"{upload.url}/transcript/{job}", headers={"Authorization": upload.key})


def _speechmatics(upload: Upload) -> ServerRequest:
    transcription = {"language": upload.language or "en", "operating_point": upload.model}
    config = json.dumps({"type": "transcription", "transcription_config": transcription})
    return ServerRequest(
        "POST",
        f"{upload.url}/jobs",
        headers=_bearer(upload),
        data={"config": config},
        files={"data_file": _wav(upload)},
    )


def _speechmatics_job(upload: Upload, job: str) -> ServerRequest:
    return ServerRequest("GET", f"{upload.url}/jobs/{job}", headers=_bearer(upload))


def _speechmatics_result(upload: Upload, job: str) -> ServerRequest:
    url = f"{upload.url}/jobs/{job}/transcript"
    return ServerRequest("GET", url, headers=_bearer(upload), params={"format": "json-v2"})


def _speechmatics_text(answer: Any) -> str:
    words = [(item.get("type"), text_at(item, ("alternatives", 0, "content"))) for item in _results(answer)]
    return "".join(word if kind == "punctuation" else f" {word}" for kind, word in words)


def chat_request(upload: Upload, prompt: str) -> ServerRequest:
    """A chat with the audio as `input_audio` (OpenAI's API reference), as vLLM and others take it."""
    audio = {"data": base64.b64encode(upload.wav).decode(), "format": "wav"}
    content = [{"type": "text", "text": prompt}, {"type": "input_audio", "input_audio": audio}]
    body = {"model": upload.model, "messages": [{"role": "user", "content": content}], "temperature": 0}
    return ServerRequest("POST", f"{upload.url}/chat/completions", headers=_bearer(upload), json=body)


def chat_text(answer: Any) -> str:
    """The transcript in a chat model's answer, with the answer beside it where that has more words."""
    raw = text_at(answer, ("choices", 0, "message", "content")).strip()
    return with_raw(unwrap(raw), raw)


VENDORS: dict[str, Vendor] = {
    "openai": Vendor(
        "https://api.openai.com/v1", "OPENAI_API_KEY", "gpt-4o-transcribe", 0.006, openai_form, _at("text")
    ),
    "groq": Vendor(
        "https://api.groq.com/openai/v1", "GROQ_API_KEY", "whisper-large-v3", 0.00185, openai_form, _at("text")
    ),
    "mistral": Vendor(
        "https://api.mistral.ai/v1", "MISTRAL_API_KEY", "voxtral-mini-latest", 0.0035, openai_form, _at("text")
    ),
    "deepgram": Vendor(
        "https://api.deepgram.com/v1", "DEEPGRAM_API_KEY", "nova-3", 0.0077, _deepgram,
        _at("results", "channels", 0, "alternatives", 0, "transcript"),
    ),
    "elevenlabs": Vendor(
        "https://api.elevenlabs.io/v1", "ELEVENLABS_API_KEY", "scribe_v2", 0.0067, _elevenlabs, _at("text")
    ),
    "google": Vendor(
        "https://speech.googleapis.com/v1", "GOOGLE_API_KEY", "latest_long", 0.024, _google, _google_text,
        longest_s=60.0,
    ),
    "azure": Vendor(
        "https://{region}.api.cognitive.microsoft.com", "AZURE_SPEECH_KEY", "fast", 0.006, _azure,
        _azure_text,
    ),
    "assemblyai": Vendor(
        "https://api.assemblyai.com/v2", "ASSEMBLYAI_API_KEY", "universal-3-pro,universal-2", 0.0035, _assemblyai,
        _assemblyai_text,
        before=_assemblyai_upload, job=VendorJob(("id",), _assemblyai_job, ("status",), "completed", "error"),
    ),
    "speechmatics": Vendor(
        "https://eu1.asr.api.speechmatics.com/v2", "SPEECHMATICS_API_KEY", "enhanced", 0.0067, _speechmatics,
        _speechmatics_text,
        job=VendorJob(("id",), _speechmatics_job, ("job", "status"), "done", "rejected", _speechmatics_result),
    ),
}  # fmt: skip


def vendor_of(target: str) -> Vendor:
    """The row of a vendor."""
    if target not in VENDORS:
        raise UserError(f"api: no vendor '{target}'; {did_you_mean(target, VENDORS)}")
    return VENDORS[target]


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
