"""Recognisers outside this process, and packages that are not installed: commands, an endpoint, stand-ins."""

from __future__ import annotations

import io
import json
import sys
import threading
import time
import types
from email.message import EmailMessage
from email.parser import BytesParser
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
import soundfile
from support import toolkits
from support.run_folders import lines, srb_run
from support.small_configs import tone

from speech_robust_bench.core.errors import UserError
from speech_robust_bench.models.interface import SomeFailed, adapters, open_model, parse_spec

CLIPS = [tone(i) for i in range(6)]


def seconds(clips: list[np.ndarray]) -> list[str]:
    return [f"{len(clip)} samples" for clip in clips]


# ------------------------------------------------------------------------------------------------------------ specs


@pytest.mark.parametrize(
    ("text", "adapter", "target", "options", "folder"),
    [
        ("moonshine", "moonshine", "", {}, "moonshine"),
        ("moonshine?threads=1", "moonshine", "", {"threads": "1"}, "moonshine"),
        (
            "hf:openai/whisper-tiny.en?dtype=float16&device=cuda:1",
            "hf",
            "openai/whisper-tiny.en",
            {"dtype": "float16", "device": "cuda:1"},
            "whisper-tiny.en",
        ),
        ("hf:./models/mine/", "hf", "./models/mine/", {}, "mine"),
        ("openai-api:http://h:1/v1?model=a/b", "openai-api", "http://h:1/v1", {"model": "a/b"}, "a-b"),
        ("cmd:ls *.wa? {}", "cmd", "ls *.wa? {}", {}, "ls-.wa"),
        ("python:pack.mod:func", "python", "pack.mod:func", {}, "pack.mod-func"),
    ],
)
def test_specs_are_taken_apart(text: str, adapter: str, target: str, options: dict, folder: str) -> None:
    spec = parse_spec(text)
    assert (spec.adapter, spec.target, spec.options, spec.folder) == (adapter, target, options, folder)


def test_every_promised_adapter_is_there() -> None:
    promised = {"hf", "moonshine", "pocketsphinx", "vosk", "nemo", "faster-whisper", "openai-api", "cmd", "python"}
    assert promised <= set(adapters())


@pytest.mark.parametrize(
    ("spec", "package", "install"),
    [
        ("hf:openai/whisper-tiny.en", "torch", "[models]"),
        ("vosk:folder", "vosk", "pip install vosk"),
        ("nemo:nvidia/canary-1b", "nemo", "pip install"),
        ("faster-whisper:tiny.en", "faster_whisper", "pip install faster-whisper"),
        ("moonshine", "onnxruntime", "moonshine-voice==0.1.0"),
        ("pocketsphinx", "pocketsphinx", "[demo]"),
    ],
)
def test_a_missing_package_is_one_line(monkeypatch, spec: str, package: str, install: str) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(UserError, match="needs the package") as said:
        open_model(spec)
    assert install in str(said.value)
    assert "\n" not in str(said.value)


def test_a_spec_has_the_last_word_over_the_flags() -> None:
    assert open_model("python:support.standin:count?batch_size=3", batch_size=9, device="cuda").batch_size == 3
    assert open_model("python:support.standin:count", batch_size=9, device=None).batch_size == 9


# --------------------------------------------------------------------------------------------------------- commands


COUNT = f"{sys.executable} -c 'import sys,soundfile as s; print(s.info(sys.argv[1]).frames, \"samples\")'"


def test_a_command_transcribes_one_file_at_a_time() -> None:
    recogniser = open_model(f"cmd:{COUNT} {{}}?workers=2")
    assert recogniser.transcribe(CLIPS[:3], 16_000, "en") == seconds(CLIPS[:3])


def test_a_command_transcribes_a_list_of_files() -> None:
    listing = "while read f; do stat -c %s $f; done < {list}"
    hypotheses = open_model(f"cmd:{listing}").transcribe(CLIPS, 16_000, "en")
    assert hypotheses == [str(44 + 2 * len(clip)) for clip in CLIPS]  # a WAV's header, and two bytes a sample


def test_a_command_that_fails_on_one_file_fails_on_that_one(tones: Path, tmp_path: Path) -> None:
    size = 44 + 2 * len(tone(7))
    command = f"test $(stat -c %s {{}}) != {size} && echo text || (echo no >&2; exit 3)"
    assert srb_run(f"cmd:{command}", tones, tmp_path / "runs", "en-demo_clean", "--name", "c") == 0
    got = lines(tmp_path / "runs/c/en-demo_clean.jsonl")
    same_length = [i for i in range(23) if len(tone(i)) == len(tone(7))]
    assert [i for i, line in enumerate(got) if line["pred_text"] is None] == same_length
    assert got[7]["error"] == "RuntimeError: exit code 3: no"
    assert got[8]["pred_text"] == "text"


def test_a_command_that_hangs_is_stopped() -> None:
    start = time.monotonic()
    with pytest.raises(SomeFailed, match="no answer within"):
        open_model("cmd:sleep 300; echo {}?timeout_s=0.2").transcribe(CLIPS[:1], 16_000, "en")
    assert time.monotonic() - start < 200


def test_a_command_without_a_place_for_the_file_is_refused() -> None:
    with pytest.raises(UserError, match=r"write \{\} where"):
        open_model("cmd:my-recogniser")


# --------------------------------------------------------------------------------------------------------- endpoint


class Endpoint(ThreadingHTTPServer):
    """A loopback transcription server; `plan` holds the status codes of the next answers, 200 once it is empty.

    Until `together` requests are there at once, none is answered.
    """

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.plan: list[int] = []
        self.forms: list[dict[str, object]] = []
        self.lock = threading.Lock()
        self.busy = self.busiest = 0
        self.together, self.enough = 1, threading.Event()
        self.url = f"http://127.0.0.1:{self.server_port}/v1"


class Answer(BaseHTTPRequestHandler):
    server: Endpoint

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        with self.server.lock:
            self.server.busy += 1
            self.server.busiest = max(self.server.busiest, self.server.busy)
            status = self.server.plan.pop(0) if self.server.plan else 200
            if self.server.busy >= self.server.together:
                self.server.enough.set()
        self.server.enough.wait(60)
        head = f"Content-Type: {self.headers['Content-Type']}\r\n\r\n".encode()
        form = {
            part.get_param("name", header="content-disposition"): part.get_payload(decode=True)
            for part in BytesParser(_class=EmailMessage).parsebytes(head + body).iter_parts()
        }
        form["Authorization"] = self.headers.get("Authorization")
        with self.server.lock:
            self.server.forms.append(form)
            self.server.busy -= 1
        text = f"{soundfile.info(io.BytesIO(form['file'])).frames} samples"
        content = {"text": text} if status == 200 else {"error": {"message": f"planned {status}"}}
        self.send_response(status)
        if status == 429:
            self.send_header("Retry-After", "0.05")
        answer = json.dumps(content).encode()
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def endpoint(monkeypatch):
    from speech_robust_bench.extensions.vendors import http_client

    monkeypatch.setattr(http_client, "FIRST_WAIT_S", 0.01)
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    server = Endpoint()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()


def test_the_endpoint_gets_what_the_api_asks_for(endpoint, monkeypatch) -> None:
    monkeypatch.setenv("MY_KEY", "secret")
    endpoint.together = 3
    recogniser = open_model(f"openai-api:{endpoint.url}?model=whisper-1&key_env=MY_KEY&concurrency=3")
    assert recogniser.transcribe(CLIPS, 16_000, "es") == seconds(CLIPS)
    form = endpoint.forms[0]
    assert (form["model"], form["language"], form["response_format"]) == (b"whisper-1", b"es", b"json")
    assert form["Authorization"] == "Bearer secret"
    assert endpoint.busiest == 3
    assert "secret" not in json.dumps(recogniser.options)


def test_busy_and_broken_answers_are_tried_again(endpoint) -> None:
    endpoint.plan[:] = [429, 500, 503, 429, 502]
    hypotheses = open_model(f"openai-api:{endpoint.url}?concurrency=2").transcribe(CLIPS, 16_000, None)
    assert hypotheses == seconds(CLIPS)
    assert len(endpoint.forms) == len(CLIPS) + 5
    assert "language" not in endpoint.forms[0]


def test_a_refused_clip_fails_alone_and_is_not_sent_twice(endpoint, tones, tmp_path) -> None:
    endpoint.plan[:] = [400]
    out = tmp_path / "runs"
    assert srb_run(f"openai-api:{endpoint.url}", tones, out, "en-demo_clean", "--limit", "6") == 0
    errors = [line.get("error") for line in lines(out / "v1/en-demo_clean.jsonl")]
    assert errors.count("RuntimeError: HTTP 400 planned 400") == 1
    assert errors.count(None) == 5
    assert len(endpoint.forms) == 6


def test_a_refusal_ends_the_run(endpoint, tones, tmp_path, capsys) -> None:
    endpoint.plan[:] = [401] * 30
    assert srb_run(f"openai-api:{endpoint.url}", tones, tmp_path / "runs", "en-demo_clean") == 2
    assert "HTTP 401 planned 401; check" in capsys.readouterr().err


def test_an_endpoint_that_is_not_there_is_a_failure_that_says_so() -> None:
    with pytest.raises(SomeFailed, match="ConnectError"):
        open_model("openai-api:http://127.0.0.1:9/v1?retries=0").transcribe(CLIPS[:2], 16_000, None)


def test_requests_keep_to_the_rate(endpoint) -> None:
    recogniser = open_model(f"openai-api:{endpoint.url}?requests_per_minute=600&concurrency=4")
    start = time.monotonic()
    recogniser.transcribe(CLIPS[:4], 16_000, None)
    assert time.monotonic() - start >= 0.3  # the fourth may not leave before three tenths of a second


# --------------------------------------------------------------------- stand-ins with the interface of the real package


def test_vosk(monkeypatch, tmp_path) -> None:
    class KaldiRecognizer:
        def __init__(self, model, rate):
            assert (model, rate) == (("model", str(tmp_path)), 16_000)
            self.received = b""

        def SetWords(self, wanted):
            self.words = wanted

        def AcceptWaveform(self, data):
            self.received += data
            return len(self.received) == 8000  # after a quarter of a second: the end of a sentence

        def Result(self):
            return '{"text": "first"}'

        def FinalResult(self):
            words = [{"word": "samples", "conf": 0.5, "start": 0.1, "end": 0.25}] if self.words else []
            return json.dumps({"text": f"{len(self.received) // 2} samples", "result": words})

    fake = types.SimpleNamespace(
        SetLogLevel=lambda level: None, Model=lambda path: ("model", path), KaldiRecognizer=KaldiRecognizer
    )
    monkeypatch.setitem(sys.modules, "vosk", fake)
    hypotheses = open_model(f"vosk:{tmp_path}?threads=2").transcribe(CLIPS, 16_000, "en")
    assert hypotheses == [("first " if len(clip) >= 4000 else "") + f"{len(clip)} samples" for clip in CLIPS]
    assert hypotheses[0].details == {"word_confidences": [["samples", 0.5, 0.1, 0.25]]}
    with pytest.raises(UserError, match="no such folder"):
        open_model("vosk:nowhere")


@pytest.mark.parametrize("kind", ["EncDecCTCModel", "EncDecMultiTaskModel"])
def test_nemo(monkeypatch, kind: str) -> None:
    calls = []

    class Model:
        def to(self, device):
            return self

        def eval(self):
            return self

        def transcribe(self, audio, batch_size, verbose, **spoken):
            calls.append(spoken)
            return [types.SimpleNamespace(text=text) for text in seconds(audio)]

    Model.__name__ = kind
    asr = types.SimpleNamespace(
        models=types.SimpleNamespace(ASRModel=types.SimpleNamespace(from_pretrained=lambda name: Model()))
    )
    for name, module in (
        ("nemo", types.ModuleType("nemo")),
        ("nemo.collections", types.ModuleType("c")),
        ("nemo.collections.asr", asr),
    ):
        monkeypatch.setitem(sys.modules, name, module)
    assert open_model("nemo:nvidia/some-model?device=cuda").transcribe(CLIPS, 16_000, "de") == seconds(CLIPS)
    assert calls == [{"source_lang": "de", "target_lang": "de"} if "Multi" in kind else {}]


def test_salm(monkeypatch) -> None:
    torch = pytest.importorskip("torch")
    asked = []

    class SALM:
        audio_locator_tag, device = "<|audioplaceholder|>", "cpu"
        tokenizer = types.SimpleNamespace(ids_to_text=lambda ids: f"Transcript: {ids[0]} samples")

        @classmethod
        def from_pretrained(cls, name):
            assert name == "nvidia/canary-qwen-2.5b"
            return cls()

        def to(self, device):
            return self

        def eval(self):
            return self

        def generate(self, prompts, audios, audio_lens, max_new_tokens):
            assert audios.shape == (len(prompts), max(audio_lens))
            asked.extend(prompts)
            return [torch.tensor([int(length)]) for length in audio_lens]

    modules = {"nemo": types.ModuleType("nemo"), "nemo.collections": types.ModuleType("c")}
    modules |= {"nemo.collections.asr": types.ModuleType("a"), "nemo.collections.speechlm2": types.ModuleType("s")}
    modules |= {"nemo.collections.speechlm2.models": types.SimpleNamespace(SALM=SALM)}
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    hypotheses = open_model("nemo:nvidia/canary-qwen-2.5b?device=cpu").transcribe(CLIPS, 16_000, "en")
    assert hypotheses == seconds(CLIPS)
    assert hypotheses[0].details == {"raw_text": f"Transcript: {len(CLIPS[0])} samples"}
    assert asked[0] == [{"role": "user", "content": "Transcribe the following: <|audioplaceholder|>"}]


@pytest.mark.parametrize("kind", ["EncoderDecoderASR", "EncoderASR"])
def test_speechbrain(monkeypatch, kind: str) -> None:
    pytest.importorskip("torch")
    batches = []

    class Model:
        hparams = types.SimpleNamespace(sample_rate=16_000)

        @classmethod
        def from_hparams(cls, source, run_opts):
            assert (source, run_opts) == ("speechbrain/some-model", {"device": "cpu"})
            return cls()

        def transcribe_batch(self, wavs, lengths):
            assert lengths.tolist() == [1.0] * len(wavs)
            batches.append(wavs.shape)
            texts = seconds(list(wavs))
            return (texts, [[1]] * len(texts)) if kind == "EncoderDecoderASR" else [text.split() for text in texts]

    class Other:
        @classmethod
        def from_hparams(cls, source, run_opts):
            raise ValueError("Need hparams['decoder']")

    Model.__name__ = kind
    asr = types.SimpleNamespace(**{"EncoderDecoderASR": Other, "EncoderASR": Other, kind: Model})
    for name in ("speechbrain", "speechbrain.inference"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    monkeypatch.setitem(sys.modules, "speechbrain.inference.ASR", asr)
    recogniser = open_model("speechbrain:speechbrain/some-model")
    assert recogniser.options["kind"] == kind
    assert recogniser.transcribe([*CLIPS, CLIPS[0]], 16_000, "en") == seconds([*CLIPS, CLIPS[0]])
    assert len(batches) == len({len(clip) for clip in CLIPS})  # clips of one length together
    long = np.zeros(50 * 16_000, np.float32)
    assert len(recogniser.transcribe([long], 16_000, "en")[0].split()) > 2  # in pieces
    with pytest.raises(UserError, match="no class"):
        open_model("speechbrain:x?kind=Nothing")


def test_faster_whisper(monkeypatch) -> None:
    class WhisperModel:
        def __init__(self, name, device, compute_type, num_workers):
            assert (name, device, compute_type) == ("tiny.en", "cpu", "int8")

        def transcribe(self, audio, language, task, beam_size, temperature, word_timestamps, hotwords):
            assert (language, task, beam_size, temperature, hotwords) == ("en", "transcribe", 1, 0.0, None)
            spoken = (
                [types.SimpleNamespace(word=" one", probability=0.75, start=0.0, end=0.5)] if word_timestamps else None
            )
            return (types.SimpleNamespace(text=f" {w}", words=spoken) for w in seconds([audio])[0].split()), None

    monkeypatch.setitem(sys.modules, "faster_whisper", types.SimpleNamespace(WhisperModel=WhisperModel))
    recogniser = open_model("faster-whisper:tiny.en?beams=1&dtype=int8", device="cpu")
    assert recogniser.transcribe([*CLIPS, CLIPS[0][:0]], 16_000, "en") == [*seconds(CLIPS), ""]
    sure = open_model("faster-whisper:tiny.en?beams=1&dtype=int8&confidence=true", device="cpu")
    (text,) = sure.transcribe(CLIPS[:1], 16_000, "en")
    assert text.details["word_confidences"][0] == ["one", 0.75, 0.0, 0.5]


@pytest.mark.parametrize(
    "option",
    ["batch_size=0", "batch_size=-1", "beams=0", "chunk_s=-1", "chunk_s=nan", "threads=-1"],
)
def test_a_number_that_makes_no_sense_is_one_line(option: str) -> None:
    with pytest.raises(UserError, match=f"option {option}: a number from"):
        open_model(f"hf:nowhere?{option}")


# ------------------------------------------------------------------------------------------------- SpeechBrain itself

HYPERPARAMETERS = """
sample_rate: 16000
encoder: !new:speechbrain.nnet.containers.LengthsCapableSequential
    features: !new:speechbrain.lobes.features.Fbank
        n_mels: 40
    normalize: !new:speechbrain.processing.features.InputNormalization
        norm_type: sentence
    linear: !new:speechbrain.nnet.linear.Linear
        input_size: 40
        n_neurons: 28
    log_softmax: !new:speechbrain.nnet.activations.Softmax
        apply_log: True
modules:
    encoder: !ref <encoder>
tokenizer: !new:speechbrain.dataio.encoder.CTCTextEncoder
decoding_function: !name:speechbrain.decoders.ctc_greedy_decode
    blank_id: 0
pretrainer: !new:speechbrain.utils.parameter_transfer.Pretrainer
    loadables:
        tokenizer: !ref <tokenizer>
"""


@pytest.fixture
def speechbrain_here():
    pytest.importorskip("torch")
    toolkits.skip_without("speechbrain")
    with toolkits.importable("speechbrain"):
        yield


def test_speechbrain_itself_gives_what_it_gives_by_hand(tmp_path, speechbrain_here):
    """A tiny CTC model."""
    import torch
    from speechbrain.dataio.encoder import CTCTextEncoder

    torch.manual_seed(3)
    letters = CTCTextEncoder()
    letters.insert_blank(index=0)
    letters.update_from_iterable("abcdefghijklmnopqrstuvwxyz ", sequence_input=False)
    letters.save(tmp_path / "tokenizer.ckpt")
    (tmp_path / "hyperparams.yaml").write_text(HYPERPARAMETERS)
    recogniser = open_model(f"speechbrain:{tmp_path}")
    assert recogniser.options["kind"] == "EncoderASR"
    rng = np.random.default_rng(0)
    clips = [rng.normal(0, 0.1, int(16_000 * seconds)).astype(np.float32) for seconds in (0.4, 0.9, 0.4, 1.3, 0.02)]

    def by_hand(clip):
        clip = np.pad(clip, (0, max(0, 1600 - len(clip))))
        return recogniser.model.transcribe_batch(torch.tensor(clip)[None], torch.ones(1))[0][0].strip()

    wanted = [by_hand(clip) for clip in clips]
    assert len(set(wanted)) > 3
    for batch_size in (1, 8):
        recogniser.batch_size = batch_size
        assert recogniser.transcribe(clips, 16_000, "en") == wanted
    long = rng.normal(0, 0.1, 16_000 * 70).astype(np.float32)
    assert len(recogniser.transcribe([long], 16_000, "en")[0]) > 1000
