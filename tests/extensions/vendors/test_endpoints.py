"""`chat-api:` and `api:<vendor>` against loopback servers that answer as each vendor's API reference says."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import threading
from email.message import EmailMessage
from email.parser import BytesParser
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import soundfile
from support.run_folders import lines, run_json, srb_run
from support.small_configs import tone

from speech_robust_bench.core.errors import UserError
from speech_robust_bench.extensions.vendors import endpoints, http_client
from speech_robust_bench.extensions.vendors.endpoints import VENDORS, Upload
from speech_robust_bench.models.interface import SomeFailed, open_model, parse_spec
from speech_robust_bench.models.run_plan import cost_per_minute

KEY = "the-key"
CLIPS = [tone(i) for i in range(4)]
TEXTS = [f"{len(clip)} samples" for clip in CLIPS]


class Server(ThreadingHTTPServer):
    """`plan` holds the status codes (or the bodies) of the next answers; then it answers as `vendor` does."""

    def __init__(self, vendor: str) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.vendor, self.plan = vendor, []
        self.seen: list[dict[str, Any]] = []
        self.stored: dict[str, str] = {}
        self.asked: dict[str, int] = {}
        self.lock = threading.Lock()
        self.release = threading.Event()  # a slow answer waits for it
        self.url = f"http://127.0.0.1:{self.server_port}"

    plan: list[int | bytes | str]


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.answer(b"")

    def do_POST(self) -> None:
        self.answer(self.rfile.read(int(self.headers["Content-Length"])))

    def answer(self, body: bytes) -> None:
        url = urlsplit(self.path)
        request = {"path": url.path, "query": parse_qs(url.query), "headers": dict(self.headers.items()), "body": body}
        with self.server.lock:
            self.server.seen.append(request)
            planned = self.server.plan.pop(0) if self.server.plan else 200
        if planned == "slow":
            self.server.release.wait(120)
            planned = 200
        if isinstance(planned, bytes):
            return self.send(200, planned)
        if planned != 200:
            return self.send(int(planned), json.dumps({"error": {"message": f"planned {planned}"}}).encode())
        return self.send(200, json.dumps(getattr(self, f"as_{self.server.vendor.replace('-', '_')}")(request)).encode())

    def send(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass

    # what each vendor expects and says

    def form(self, request: dict[str, Any]) -> dict[str, bytes]:
        head = f"Content-Type: {self.headers['Content-Type']}\r\n\r\n".encode()
        parts = BytesParser(_class=EmailMessage).parsebytes(head + request["body"]).iter_parts()
        return {part.get_param("name", header="content-disposition"): part.get_payload(decode=True) for part in parts}

    def as_openai(self, request: dict[str, Any]) -> Any:
        assert (request["path"], self.headers["Authorization"]) == ("/audio/transcriptions", f"Bearer {KEY}")
        form = self.form(request)
        assert form["language"] == b"de"
        return {"text": words(form["file"])}

    as_groq = as_mistral = as_openai

    def as_deepgram(self, request: dict[str, Any]) -> Any:
        assert (request["path"], self.headers["Authorization"]) == ("/listen", f"Token {KEY}")
        assert request["query"] == {"model": ["nova-3"], "language": ["de"]}
        assert self.headers["Content-Type"] == "audio/wav"
        return {
            "results": {"channels": [{"alternatives": [{"transcript": words(request["body"]), "confidence": 0.9}]}]}
        }

    def as_elevenlabs(self, request: dict[str, Any]) -> Any:
        assert (request["path"], self.headers["xi-api-key"]) == ("/speech-to-text", KEY)
        form = self.form(request)
        assert (form["model_id"], form["language_code"]) == (b"scribe_v2", b"de")
        return {"language_code": "deu", "text": words(form["file"])}

    def as_google(self, request: dict[str, Any]) -> Any:
        assert (request["path"], self.headers["X-Goog-Api-Key"]) == ("/speech:recognize", KEY)
        body = json.loads(request["body"])
        assert body["config"]["languageCode"] == "de-DE"
        count, unit = words(base64.b64decode(body["audio"]["content"])).split()
        return {"results": [{"alternatives": [{"transcript": part}]} for part in (count, f" {unit}")]}

    def as_azure(self, request: dict[str, Any]) -> Any:
        assert request["path"] == "/speechtotext/transcriptions:transcribe"
        assert self.headers["Ocp-Apim-Subscription-Key"] == KEY
        form = self.form(request)
        assert json.loads(form["definition"]) == {"locales": ["de-DE"]}
        return {"combinedPhrases": [{"text": words(form["audio"])}], "phrases": []}

    def as_assemblyai(self, request: dict[str, Any]) -> Any:
        assert self.headers["Authorization"] == KEY
        if request["path"] == "/upload":
            name = f"{self.server.url}/stored/{len(self.server.stored)}-{len(request['body'])}"
            self.server.stored[name] = words(request["body"])
            return {"upload_url": name}
        if request["path"] == "/transcript":
            body = json.loads(request["body"])
            assert (body["language_code"], body["speech_models"]) == ("de", ["universal-3-pro", "universal-2"])
            return {"id": f"job-{list(self.server.stored).index(body['audio_url'])}", "status": "queued"}
        job = request["path"].rsplit("/", 1)[-1]
        self.server.asked[job] = self.server.asked.get(job, 0) + 1
        if self.server.asked[job] < 2:
            return {"id": job, "status": "processing", "text": None}
        return {"id": job, "status": "completed", "text": list(self.server.stored.values())[int(job.split("-")[1])]}

    def as_speechmatics(self, request: dict[str, Any]) -> Any:
        assert self.headers["Authorization"] == f"Bearer {KEY}"
        if request["path"] == "/jobs":
            form = self.form(request)
            config = json.loads(form["config"])["transcription_config"]
            assert config == {"language": "de", "operating_point": "enhanced"}
            with self.server.lock:
                job = f"job{len(self.server.stored)}"
                self.server.stored[job] = words(form["data_file"])
            return {"id": job}
        job = request["path"].split("/")[2]
        if request["path"].endswith("/transcript"):
            assert request["query"] == {"format": ["json-v2"]}
            items = [{"type": "word", "alternatives": [{"content": word}]} for word in self.server.stored[job].split()]
            return {"results": items}
        self.server.asked[job] = self.server.asked.get(job, 0) + 1
        return {"job": {"id": job, "status": "running" if self.server.asked[job] < 2 else "done"}}

    def as_chat_api(self, request: dict[str, Any]) -> Any:
        assert request["path"] == "/v1/chat/completions"
        body = json.loads(request["body"])
        prompt, audio = body["messages"][0]["content"]
        assert (prompt["type"], audio["type"], audio["input_audio"]["format"]) == ("text", "input_audio", "wav")
        text = words(base64.b64decode(audio["input_audio"]["data"]))
        return {"choices": [{"message": {"role": "assistant", "content": f'The audio says: "{text}"'}}]}


def words(wav: bytes) -> str:
    return f"{soundfile.info(io.BytesIO(wav)).frames} samples"


@pytest.fixture
def start(monkeypatch):
    monkeypatch.setattr(http_client, "FIRST_WAIT_S", 0.01)
    monkeypatch.setattr(endpoints, "FIRST_ASK_S", 0.01)
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    for vendor in VENDORS.values():
        monkeypatch.setenv(vendor.key_env, KEY)
    servers: list[Server] = []

    def begin(vendor: str) -> Server:
        servers.append(Server(vendor))
        threading.Thread(target=servers[-1].serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return servers[-1]

    yield begin
    for server in servers:
        server.release.set()
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize("vendor", sorted(VENDORS))
def test_every_vendor_gets_what_its_reference_asks_for(start, vendor: str) -> None:
    server = start(vendor)
    recogniser = open_model(f"api:{vendor}?url={server.url}&concurrency=2")
    assert recogniser.transcribe(CLIPS, 16_000, "de") == TEXTS
    assert KEY not in json.dumps(recogniser.options)
    assert all(KEY not in str(request["query"]) for request in server.seen)


@pytest.mark.parametrize("vendor", ["deepgram", "assemblyai", "speechmatics", "google"])
def test_busy_broken_and_malformed_answers_are_tried_again(start, vendor: str) -> None:
    server = start(vendor)
    server.plan[:] = [429, 500, b"<html>", 503]
    recogniser = open_model(f"api:{vendor}?url={server.url}&concurrency=1")
    assert recogniser.transcribe(CLIPS[:1], 16_000, "de") == TEXTS[:1]


@pytest.mark.parametrize("vendor", ["deepgram", "elevenlabs", "azure"])
def test_a_slow_answer_is_that_clips_error(start, monkeypatch, vendor: str) -> None:
    server = start(vendor)
    server.plan[:] = ["slow"]
    limits, timeout = iter([0.3]), asyncio.timeout  # of the first request; the others may take as long as they like
    monkeypatch.setattr(asyncio, "timeout", lambda seconds: timeout(next(limits, seconds)))
    with pytest.raises(SomeFailed) as failed:
        open_model(f"api:{vendor}?url={server.url}&concurrency=1&retries=0").transcribe(CLIPS[:2], 16_000, "de")
    assert isinstance(failed.value.outcomes[0], Exception)
    assert failed.value.outcomes[1] == TEXTS[1]


@pytest.mark.parametrize("vendor", sorted(VENDORS))
@pytest.mark.parametrize("body", [b"{}", b"[]", b'{"text": 3, "results": 3, "id": "../x"}', b"3"])
def test_an_answer_of_another_shape_is_that_clips_error(start, vendor: str, body: bytes) -> None:
    server = start(vendor)
    server.plan[:] = [body]
    recogniser = open_model(f"api:{vendor}?url={server.url}&concurrency=1&retries=0")
    if vendor == "google" and body == b"{}":  # silence
        assert recogniser.transcribe(CLIPS[:1], 16_000, "de") == [""]
        return
    with pytest.raises(SomeFailed):
        recogniser.transcribe(CLIPS[:1], 16_000, "de")


@pytest.mark.parametrize(
    ("vendor", "answer"),
    [
        ("azure", {"combinedPhrases": [], "phrases": []}),
        ("assemblyai", {"text": None}),
        ("speechmatics", {"results": []}),
        ("google", {}),
        ("deepgram", {"results": {"channels": [{"alternatives": [{"transcript": ""}]}]}}),
    ],
)
def test_silence_is_an_empty_text(vendor: str, answer: Any) -> None:
    assert VENDORS[vendor].text(answer) == ""


@pytest.mark.parametrize(
    ("language", "locale"), [("de", "de-DE"), ("cs", "cs-CZ"), ("no", "nb-NO"), ("en-GB", "en-GB"), (None, "en-US")]
)
def test_a_language_gets_its_region_where_a_vendor_needs_one(language, locale: str) -> None:
    request = VENDORS["google"].send(Upload("http://h", KEY, "m", b"", language, 16_000))
    assert request.json["config"]["languageCode"] == locale


def test_a_refused_key_ends_the_run(start) -> None:
    server = start("deepgram")
    server.plan[:] = [401]
    with pytest.raises(UserError, match="check the address, the model and the key"):
        open_model(f"api:deepgram?url={server.url}").transcribe(CLIPS[:1], 16_000, "de")


def test_a_chat_endpoint_is_asked_and_unwrapped(start, tones: Path, tmp_path: Path) -> None:
    server = start("chat-api")
    server.plan[:] = [429, 500]
    spec = f"chat-api:{server.url}/v1?model=some/model&concurrency=1"
    assert srb_run(spec, tones, tmp_path / "runs", "en-demo_clean", "--limit", "3") == 0
    answers = lines(tmp_path / "runs/some-model/en-demo_clean.jsonl")
    assert [line["pred_text"] for line in answers] == [f"{len(tone(i))} samples" for i in range(3)]
    assert answers[0]["raw_text"] == f'The audio says: "{len(tone(0))} samples"'
    assert run_json(tmp_path / "runs/some-model")["options"]["prompt"].startswith("Transcribe")


def test_mistakes_are_told(start, monkeypatch) -> None:
    with pytest.raises(UserError, match="did you mean deepgram"):
        open_model("api:depgram")
    with pytest.raises(UserError, match="region=westeurope"):
        open_model("api:azure")
    with pytest.raises(UserError, match="name the model"):
        open_model("chat-api:http://localhost:1/v1")
    monkeypatch.delenv("DEEPGRAM_API_KEY")
    with pytest.raises(UserError, match="set DEEPGRAM_API_KEY"):
        open_model("api:deepgram")


# ------------------------------------------------------------------------------------------------------------- costs


def test_the_price_is_the_specs_or_the_vendors() -> None:
    assert cost_per_minute(parse_spec("api:deepgram")) == 0.0077
    assert cost_per_minute(parse_spec("api:deepgram?cost_per_minute=0.5")) == 0.5
    assert cost_per_minute(parse_spec("chat-api:http://h/v1?model=m&cost_per_minute=0.1")) == 0.1
    assert cost_per_minute(parse_spec("front:rnnoise|api:deepgram")) == 0.0077
    assert cost_per_minute(parse_spec("moonshine")) == 0


def test_a_run_above_a_dollar_wants_a_yes_and_sends_nothing(start, tones: Path, tmp_path: Path, capsys) -> None:
    server = start("chat-api")
    minutes = sum(len(tone(i)) for i in range(23)) / 16_000 / 60
    spec = f"chat-api:{server.url}/v1?model=m&cost_per_minute={2 / minutes:.4f}"
    assert srb_run(spec, tones, tmp_path / "runs", "en-demo_clean") == 2
    assert "would cost about 2.00 $" in capsys.readouterr().err
    assert not server.seen
    assert srb_run(spec, tones, tmp_path / "runs", "en-demo_clean", "--pay") == 0
    assert "cost: about 2.00 $" in capsys.readouterr().out
    assert srb_run(spec, tones, tmp_path / "runs", "en-demo_clean") == 0  # nothing is left to be sent
    assert len(server.seen) == 23
