"""Servers, commands and data that do what they should not: nothing runs, leaks, hangs or fills the memory."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.run_folders import lines, run_json, srb_run
from support.small_configs import tone, write_config

from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.names import is_language_code
from speech_robust_bench.core.secrets import mask_secrets
from speech_robust_bench.extensions.vendors import http_client
from speech_robust_bench.models.adapters import cmd
from speech_robust_bench.models.interface import SomeFailed, open_model, parse_spec
from speech_robust_bench.models.transcriber import transcription_of

CLIPS = [tone(i) for i in range(3)]


# -------------------------------------------------------------------------------------------------- a server of sockets


@pytest.fixture
def server(monkeypatch) -> Iterator[Callable[[Callable[[socket.socket], None]], str]]:
    """Starts a server whose answers a function writes to the socket, byte by byte if it likes; gives its address."""
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(http_client, "FIRST_WAIT_S", 0.01)
    listeners: list[socket.socket] = []

    def start(answer: Callable[[socket.socket], None]) -> str:
        listener = socket.create_server(("127.0.0.1", 0))
        listeners.append(listener)

        def serve() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                threading.Thread(target=converse, args=(connection,), daemon=True).start()

        def converse(connection: socket.socket) -> None:
            with connection:
                try:
                    read_request(connection)
                    answer(connection)
                except OSError:
                    pass

        threading.Thread(target=serve, daemon=True).start()
        return f"http://127.0.0.1:{listener.getsockname()[1]}/v1"

    yield start
    for listener in listeners:
        listener.close()


def read_request(connection: socket.socket) -> bytes:
    data = b""
    while b"\r\n\r\n" not in data:
        data += connection.recv(1 << 16)
    head, _, body = data.partition(b"\r\n\r\n")
    length = next(int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-len"))
    while len(body) < length:
        body += connection.recv(1 << 16)
    return head


def says(body: bytes, status: str = "200 OK", *headers: str) -> Callable[[socket.socket], None]:
    head = "\r\n".join([f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", "Connection: close", *headers])
    return lambda connection: connection.sendall(head.encode() + b"\r\n\r\n" + body)


def drip(connection: socket.socket) -> None:
    """One byte of a header every so often, for ever."""
    connection.sendall(b"HTTP/1.1 200 OK\r\nX: ")
    while True:
        connection.sendall(b"x")
        time.sleep(0.01)


def endless(connection: socket.socket) -> None:
    connection.sendall(b'HTTP/1.1 200 OK\r\n\r\n{"text": "')
    while True:
        connection.sendall(b"la " * 20_000)


def failure_of(spec: str) -> str:
    with pytest.raises(SomeFailed) as failed:
        open_model(spec).transcribe(CLIPS[:1], 16_000, "en")
    return str(failed.value)


def test_a_slow_drip_meets_the_deadline(server) -> None:
    assert "no whole answer within 0.3 s" in failure_of(f"openai-api:{server(drip)}?timeout_s=0.3&retries=0")


def test_an_endless_answer_meets_the_bound(server, monkeypatch) -> None:
    monkeypatch.setattr(http_client, "MOST_BYTES", 2**20)
    assert "longer than 1 MiB" in failure_of(f"openai-api:{server(endless)}?retries=0")


def test_a_compressed_answer_is_refused(server) -> None:
    spec = f"openai-api:{server(says(b'x', '200 OK', 'Content-Encoding: gzip'))}?retries=0"
    assert "compressed" in failure_of(spec)


def test_a_redirect_to_another_server_is_refused(server, monkeypatch) -> None:
    monkeypatch.setenv("MY_KEY", "secret")
    visits = []

    def thief(connection: socket.socket) -> None:
        visits.append(1)
        says(b'{"text": "stolen"}')(connection)

    elsewhere = server(thief)
    url = server(says(b"", "307 Temporary Redirect", f"Location: {elsewhere}/audio/transcriptions"))
    with pytest.raises(UserError, match="redirects to another server"):
        open_model(f"openai-api:{url}?key_env=MY_KEY").transcribe(CLIPS[:1], 16_000, "en")
    assert not visits


def test_a_redirect_on_the_same_server_is_followed(server) -> None:
    turns = iter([says(b"", "308 Permanent Redirect", "Location: /v2/audio/transcriptions"), says(b'{"text": "yes"}')])
    url = server(lambda connection: next(turns)(connection))
    assert open_model(f"openai-api:{url}").transcribe(CLIPS[:1], 16_000, "en") == ["yes"]


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (rb'{"text": "\ud800"}', "UnicodeEncodeError: half of a character (U+D800) at 0"),
        (b'{"text": null}', "RuntimeError: the answer has no text at text"),
        (b'{"text": ["a"]}', "RuntimeError: the answer has no text at text"),
        (b'["text"]', "RuntimeError: the answer has no text at text"),
        (b"<html>", "RuntimeError: the answer is not JSON"),
        (b"[" * 100_000, "RuntimeError: the answer is not JSON"),
        (b"\xff\xfe", "RuntimeError: the answer is not JSON"),
    ],
)
def test_an_answer_without_a_text_is_that_clips_error(server, tones, tmp_path, body: bytes, error: str) -> None:
    turns = iter([says(body)])
    good = says(b'{"text": "good"}')
    spec = f"openai-api:{server(lambda connection: next(turns, good)(connection))}?concurrency=1&retries=0"
    assert srb_run(spec, tones, tmp_path / "runs", "en-demo_clean", "--limit", "3", "--name", "m") == 0
    answers = lines(tmp_path / "runs/m/en-demo_clean.jsonl")
    assert sorted(line["pred_text"] or "" for line in answers) == ["", "good", "good"]
    assert [line["error"] for line in answers if "error" in line] == [error]


def test_a_server_that_repeats_the_key_does_not_get_it_printed(server, tones, tmp_path, monkeypatch, capsys) -> None:
    key = "hf_AbCdEfGhIjKlMnOpQrStUvWx12"
    monkeypatch.setenv("MY_KEY", key)
    body = json.dumps({"error": {"message": f"no access with {key}"}}).encode()
    spec = f"openai-api:{server(says(body, '403 Forbidden'))}?key_env=MY_KEY"
    assert srb_run(spec, tones, tmp_path / "runs", "en-demo_clean") == 2
    printed = capsys.readouterr().err
    assert "no access with ***" in printed
    assert key not in printed


@pytest.mark.parametrize("header", ["nonsense", "nan", "-5", "Wed, 99 Foo"])
def test_an_odd_retry_after_is_no_reason_to_fail(server, header: str) -> None:
    turns = iter([says(b"", "429 Too Many Requests", f"Retry-After: {header}"), says(b'{"text": "yes"}')])
    url = server(lambda connection: next(turns)(connection))
    assert open_model(f"openai-api:{url}").transcribe(CLIPS[:1], 16_000, "en") == ["yes"]


# ------------------------------------------------------------------------------------------------------------ commands


@pytest.mark.parametrize("language", ["$(touch pwned)", "en; touch pwned", "`touch pwned`", "'; touch pwned; '"])
@pytest.mark.parametrize("command", ["echo {language} # {}", "echo '{language}' # {}", "sh -c 'echo {language}' # {}"])
def test_nothing_in_a_language_is_run(tmp_path, monkeypatch, language: str, command: str) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SomeFailed, match="not a language code"):
        open_model(f"cmd:{command}").transcribe(CLIPS[:1], 16_000, language)
    assert not (tmp_path / "pwned").exists()


def test_a_config_with_a_language_that_is_none_is_refused(tmp_path, capsys) -> None:
    write_config(tmp_path / "srb", "en-demo_clean", CLIPS, language="$(touch pwned)")
    assert srb_run("cmd:echo {language} # {}", tmp_path / "srb", tmp_path / "runs") == 2
    assert "is not a language code" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["echo {}", "sh -c 'echo \"{}\"'"])
def test_nothing_in_the_name_of_the_temporary_folder_is_run(tmp_path, monkeypatch, command: str) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a $(touch pwned)").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "a $(touch pwned)"))
    with pytest.raises(UserError, match="set TMPDIR to another"):
        open_model(f"cmd:{command}").transcribe(CLIPS[:1], 16_000, "en")
    assert not (tmp_path / "pwned").exists()


def test_a_command_is_told_the_language() -> None:
    assert open_model("cmd:echo {language} # {}").transcribe(CLIPS[:1], 16_000, "zh-Hant") == ["zh-Hant"]


def test_a_command_that_prints_for_ever_meets_the_bound(monkeypatch) -> None:
    monkeypatch.setattr(cmd, "MOST_BYTES", 2**20)
    assert "printed more than 1 MiB" in failure_of("cmd:yes # {}")


def test_a_command_that_drips_for_ever_meets_the_deadline() -> None:
    spec = "cmd:while true; do echo -n x; sleep 0.01; done # {}?timeout_s=0.3"
    assert "no answer within 0.3 s" in failure_of(spec)


def test_a_child_that_keeps_the_pipe_open_meets_the_deadline() -> None:
    assert "no answer within 0.3 s" in failure_of("cmd:sleep 60 & echo done # {}?timeout_s=0.3")


def test_a_command_that_cannot_be_run_is_known_at_the_first_clip(tones, tmp_path, capsys) -> None:
    assert srb_run("cmd:nosuchprog {}", tones, tmp_path / "runs", "en-demo_clean", "--limit", "5") == 2
    assert "cannot be run" in capsys.readouterr().err
    assert not list((tmp_path / "runs").rglob("*.jsonl"))


def test_a_run_whose_every_clip_fails_says_why_and_is_no_success(tones, tmp_path, capsys) -> None:
    command = "cmd:echo no licence >&2; exit 3 # {}"
    assert srb_run(command, tones, tmp_path / "runs", "en-demo_clean", "--limit", "5") == 1
    assert "every clip failed, the first with: RuntimeError: exit code 3: no licence" in capsys.readouterr().err


# -------------------------------------------------------------------------------------------------- texts and secrets


@pytest.mark.parametrize("result", [None, 3, b"text", ["text"], "\udcff", "x" * 200_001])
def test_what_cannot_be_stored_as_a_text_is_an_error(result) -> None:
    outcome = transcription_of(result, 0.5)
    assert outcome.text is None
    assert outcome.error
    outcome.error.encode()


def leaves(clips, rate, language):
    raise SystemExit(3)


def test_a_function_that_ends_the_program_fails_on_those_clips(tones, tmp_path, capsys) -> None:
    assert srb_run("python:test_hostile_answers:leaves", tones, tmp_path / "runs", "--limit", "3") == 1
    assert "every clip failed, the first with: SystemExit: 3" in capsys.readouterr().err


def half_characters(clips, rate, language):
    return ["fine", "\ud800 broken", None][: len(clips)]


def test_a_function_that_returns_half_characters_fails(tones, tmp_path) -> None:
    assert srb_run("python:test_hostile_answers:half_characters", tones, tmp_path / "runs", "--limit", "3") == 0
    answers = lines(tmp_path / "runs/test_hostile_answers-half_characters/en-demo_clean.jsonl")
    assert [line["pred_text"] for line in answers].count("fine") == 1
    assert sum("error" in line for line in answers) == 2


KEY = "9f8A7b3cQ2xZ6vN1mK4pL0sT"


@pytest.mark.parametrize(
    "text",
    [
        f"API_KEY={KEY} my-recogniser {{}}",
        "DEEPGRAM_KEY=hunter2 my-recogniser {}",
        f"curl -H 'Authorization: Bearer {KEY}' -F file=@{{}} http://host",
        f"curl --api-key {KEY} {{}}",
        f"https://host/v1/{KEY}/audio",
        f"https://user:{KEY}@host/v1",
        f"https://host/v1?api_key={KEY}",
        "https://host/b0c4e7c2-7a54-4b0e-9a3c-2f8f1a6f0a11/v1",
        "https://host/d41d8cd98f00b204e9800998ecf8427e/v1",
        f"program {KEY} {{}}",
    ],
)
def test_keys_are_masked(text: str) -> None:
    masked = mask_secrets(text)
    assert "***" in masked
    for secret in (KEY, "hunter2", "b0c4e7c2", "d41d8cd98f"):
        assert secret not in masked
    assert mask_secrets(masked) == masked


@pytest.mark.parametrize(
    "text",
    [
        "my-recogniser --model whisper-large-v3-turbo-q5_0 --beam 5 {}",
        "http://localhost:8000/v1",
        "/opt/models/sherpa-onnx-streaming-zipformer-en-2023-06-26/encoder.onnx {}",
        "https://api.openai.com/v1",
        "nvidia/parakeet-tdt-0.6b-v3",
    ],
)
def test_names_are_not_masked(text: str) -> None:
    assert mask_secrets(text) == text


def test_a_key_in_a_spec_does_not_reach_the_run_folder(tones, tmp_path) -> None:
    spec = f"cmd:API_KEY={KEY} true {{}}"
    for _ in range(2):  # the second time, the folder's masked spec is compared with this one
        assert srb_run(spec, tones, tmp_path / "runs", "en-demo_clean", "--limit", "2", "--name", "mine") == 0
    assert run_json(tmp_path / "runs/mine")["spec"] == "cmd:API_KEY=*** true {}"
    for file in (tmp_path / "runs").rglob("*"):
        assert KEY not in str(file)
        assert not file.is_file() or KEY.encode() not in file.read_bytes()
    assert KEY not in parse_spec(f"openai-api:https://host/{KEY}/v1").folder


@pytest.mark.parametrize(
    "text",
    [
        "python:mine:load?api_key=hunter2&beams=4",
        "hf:acme/x?token=hunter2&revision=0123456789abcdef0123456789abcdef01234567",
        "openai-api:https://host/v1?model=m?api_key=hunter2",
        "front:asnr|python:mine:load?password=hunter2",
    ],
)
def test_an_option_that_is_named_like_a_secret_is_masked(text: str) -> None:
    masked = str(parse_spec(text).masked)
    assert "hunter2" not in masked
    assert "***" in masked
    assert "revision" not in text or "revision=0123456789abcdef0123456789abcdef01234567" in masked


@pytest.mark.parametrize(
    "text", ["moonshine?threads=1", "hf:a/b?dtype=float16&device=cuda:1", "cmd:ls *.wa? {}", "smooth:hf:X?beams=2?n=4"]
)
def test_a_spec_put_together_again_is_the_spec(text: str) -> None:
    assert str(parse_spec(text)) == text


def test_the_name_that_the_user_gives_is_the_models_name(tones: Path, tmp_path: Path) -> None:
    srb_run("python:support.standin:count", tones, tmp_path / "runs", "en-demo_clean", "--name", "mine", "--limit", "2")
    assert run_json(tmp_path / "runs/mine")["model"] == "mine"


@pytest.mark.parametrize("text", ["en", "yue", "zh-Hant-TW", "de-CH-1996", "sl-rozaj-biske"])
def test_language_codes_of_the_standard_are_codes(text: str) -> None:
    """From RFC 5646, appendix A."""
    assert is_language_code(text)


@pytest.mark.parametrize("text", ["", "e", "en_US", "en ", "$(x)", "en-", "abcdefghi", "en\n", "en-" + "a-" * 20 + "a"])
def test_what_is_no_language_code(text: str) -> None:
    assert not is_language_code(text)
