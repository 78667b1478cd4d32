"""Environments of their own for models, and files that name models."""

from __future__ import annotations

import concurrent.futures
import csv
import functools
import http.server
import json
import os
import stat
import subprocess
import sys
import sysconfig
import threading
import zipfile
from pathlib import Path

import numpy as np
import pytest
from support.run_folders import lines, run_json, srb_run
from support.small_configs import tone

from speech_robust_bench.cli.main import main
from speech_robust_bench.core import __version__
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.extensions.streaming.replay import StreamOptions, replay, streamed
from speech_robust_bench.models import environments
from speech_robust_bench.models.environments import (
    environment_key,
    linked_package,
    make_environment,
    open_in_environment,
)
from speech_robust_bench.models.interface import SomeFailed, open_model, parse_spec
from speech_robust_bench.models.run_plan import KNOWN, parse_models, read_models

TOKEN = "hf_AbCdEf0123456789AbCdEf01"  # made up
CLIPS = [tone(i) for i in range(6)]


def wheel(folder: Path, name: str, files: dict[str, str]) -> str:
    """A package that needs no network and no build."""
    path = folder / f"{name}-1.0-py3-none-any.whl"
    about = f"{name}-1.0.dist-info"
    files = {
        **files,
        f"{about}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n",
        f"{about}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{file},,\n" for file in [*files, f"{about}/RECORD"])
    with zipfile.ZipFile(path, "w") as archive:
        for file, content in {**files, f"{about}/RECORD": record}.items():
            archive.writestr(file, content)
    return str(path)


@pytest.fixture(scope="module")
def requirements(tmp_path_factory):
    """An environment with one small package of its own, and this one's packages behind it."""
    folder = tmp_path_factory.mktemp("environments")
    here = [path for path in {sysconfig.get_path("purelib"), os.path.dirname(os.path.dirname(np.__file__))} if path]
    made = wheel(folder, "onlythere", {"onlythere.py": "VERSION = 1", "zz_parent.pth": "\n".join(here) + "\n"})
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SRB_ENVIRONMENTS", str(folder / "kept"))
        patch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))
        patch.setattr(environments, "BASE", ())
        yield (made,)


def test_an_environment_is_found_by_its_requirements(requirements) -> None:
    python = make_environment(requirements)
    stamp = python.parents[1].stat().st_mtime_ns
    assert make_environment(requirements) == python
    assert python.parents[1].stat().st_mtime_ns == stamp
    assert environment_key(["a", "b"]) == environment_key(["b", "a"]) != environment_key(["a"])


def test_the_same_predictions_as_in_this_process(requirements) -> None:
    spec = parse_spec("python:support.standin:count?batch_size=3")
    there = open_in_environment(spec, requirements)
    here = open_model(spec)
    assert there.transcribe(CLIPS, 16_000, "en") == here.transcribe(CLIPS, 16_000, "en")
    assert (there.name, there.batch_size) == (here.name, 3)
    assert there.options["environment"] == list(requirements)
    assert there.versions["numpy"] == np.__version__
    there.close()


def test_our_own_code_works_where_nothing_else_is_installed(tmp_path, monkeypatch) -> None:
    """It asks for its own about, which no package of that environment tells."""
    monkeypatch.setenv("SRB_ENVIRONMENTS", str(tmp_path))
    monkeypatch.setattr(environments, "BASE", ())
    python = make_environment(())
    code = "import speech_robust_bench as srb; import speech_robust_bench.core; print(srb.__version__)"
    path = {"PYTHONPATH": str(linked_package(python.parents[1]))}
    told = subprocess.run([str(python), "-P", "-c", code], env=path, capture_output=True, text=True, check=True).stdout
    assert told.strip() == __version__


ONLY_BASE = """
import importlib, sys
class Nothing:
    def find_spec(self, name, *_):
        if name.split(".")[0] in ("pyarrow", "datasets", "pandas", "scipy", "yaml", "rapidfuzz", "evaluate", "torch"):
            raise ModuleNotFoundError(f"No module named '{name}'", name=name)
sys.meta_path.insert(0, Nothing())
for name in ("hf", "nemo", "speechbrain", "vosk", "faster_whisper", "python", "cmd"):
    importlib.import_module(f"speech_robust_bench.models.adapters.{name}")
import speech_robust_bench.models.environments
"""


def test_adapters_need_nothing_but_what_every_environment_has() -> None:
    subprocess.run([sys.executable, "-c", ONLY_BASE], check=True)


def test_a_live_stream_through_the_pipe_gives_the_same_events(requirements) -> None:
    spec = parse_spec("live:python:support.standin:count?vad=none&chunk=0.2")
    there, here = open_in_environment(spec, requirements), open_model(spec)
    clip = np.concatenate(CLIPS)
    shown = [
        [(timed.sent_s, timed.event) for timed in replay(recogniser.stream(16_000, "en"), clip, 16_000).events]
        for recogniser in (there, here)
    ]
    assert shown[0] == shown[1]
    assert [event.final for _, event in shown[0]] == [False, True]
    assert there.transcribe(CLIPS[:1], 16_000, "en") == here.transcribe(CLIPS[:1], 16_000, "en")
    there.close()


def test_one_that_cannot_be_used_live_says_so_from_there_too(requirements) -> None:
    there = open_in_environment(parse_spec("python:support.standin:count"), requirements)
    with pytest.raises(UserError, match="put a policy in front"):
        streamed(there, StreamOptions())
    there.close()


def test_its_own_packages_are_there_and_only_there(requirements, tones: Path, tmp_path: Path) -> None:
    out = tmp_path / "runs"
    assert srb_run("python:support.standin_elsewhere:onlythere", tones, out, "en-demo_clean", "--name", "here") == 1
    arguments = ["--name", "there", "--env", requirements[0]]
    assert srb_run("python:support.standin_elsewhere:onlythere", tones, out, "en-demo_clean", *arguments) == 0
    assert {line["pred_text"] for line in lines(out / "there/en-demo_clean.jsonl")} == {"1"}
    assert run_json(out / "there")["options"]["environment"] == list(requirements)


def test_a_run_in_another_environment_is_another_run(requirements, tones: Path, tmp_path: Path, capsys) -> None:
    run = ("python:support.standin:count", tones, tmp_path / "runs", "en-demo_clean", "--name", "it")
    assert srb_run(*run) == 0
    assert srb_run(*run, "--env", requirements[0]) == 2
    assert f"holds a run with --env [], now it is ['{requirements[0]}']" in capsys.readouterr().err
    assert srb_run(*run) == 0
    again = (*run[:-1], "there", "--env", requirements[0])
    assert srb_run(*again) == srb_run(*again) == 0
    assert srb_run(*run[:-1], "there") == 2
    assert "now it is []" in capsys.readouterr().err


@pytest.fixture
def address_with_a_token(requirements, tmp_path, monkeypatch):
    """A requirement from a server that wants a password, as a private package index does."""
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=Path(requirements[0]).parent)
    handler.func.log_message = lambda *_: None
    monkeypatch.setenv("SRB_ENVIRONMENTS", str(tmp_path / "kept"))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"onlythere @ http://me:{TOKEN}@127.0.0.1:{server.server_port}/{Path(requirements[0]).name}"
        server.shutdown()


def test_a_token_in_a_requirement_is_neither_printed_nor_stored(
    address_with_a_token, tones: Path, tmp_path: Path, capsys
) -> None:
    run = ("python:support.standin:count", tones, tmp_path / "runs", "en-demo_clean", "--name", "it", "--env")
    assert srb_run(*run, address_with_a_token) == 0
    assert srb_run(*run, address_with_a_token) == 0  # the same environment, found again
    assert srb_run(*run, address_with_a_token.replace("onlythere @", "other @")) == 2
    assert main(["score", str(tmp_path / "runs/it")]) == 0
    assert main(["report", str(tmp_path / "runs/it"), "--out", str(tmp_path / "runs/report.html")]) == 0
    printed = capsys.readouterr()
    assert TOKEN not in printed.out + printed.err
    assert "onlythere @ http://***@127.0.0.1" in printed.err
    assert "onlythere @ http://***@127.0.0.1" in (tmp_path / "runs/it/run.json").read_text()
    stored = [path for path in (tmp_path / "runs").rglob("*") if path.is_file()]
    assert not [path for path in stored if TOKEN.encode() in path.read_bytes()]


@pytest.mark.skipif(os.name == "nt", reason="no such permissions there")
def test_files_of_an_environment_are_for_its_owner_alone(address_with_a_token, tmp_path) -> None:
    folder = make_environment([address_with_a_token]).parents[1]
    assert TOKEN not in (folder / "ready.json").read_text()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_two_processes_link_our_code_at_the_same_time(tmp_path) -> None:
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        made = set(pool.map(lambda _: linked_package(tmp_path), range(64)))
    (place,) = made
    assert list(tmp_path.iterdir()) == [place]
    assert (place / "speech_robust_bench/core/errors.py").is_file()


def test_another_clone_does_not_change_code_that_runs(tmp_path, monkeypatch) -> None:
    mine = linked_package(tmp_path)
    other = tmp_path / "clone" / "core"
    other.mkdir(parents=True)
    own = environments._origin
    monkeypatch.setattr(environments, "_origin", lambda name: other / "x" if name.endswith(".core") else own(name))
    assert (linked_package(tmp_path) / "speech_robust_bench/core").resolve() == other
    assert (mine / "speech_robust_bench/core/errors.py").is_file()


def test_failures_come_back_as_they_are(requirements) -> None:
    there = open_in_environment(parse_spec("python:support.standin_elsewhere:odd"), requirements)
    with pytest.raises(RuntimeError, match="CUDA out of memory"):
        there.transcribe([tone(0)], 16_000, "en")
    with pytest.raises(SomeFailed) as failed:
        there.transcribe([tone(1), tone(2)], 16_000, "en")
    assert failed.value.outcomes[0] == "fine"
    with pytest.raises(UserError, match="ended with code 7"):
        there.transcribe([tone(2)], 16_000, "en")
    with pytest.raises(UserError, match="has no 'nothing'"):
        open_in_environment(parse_spec("python:support.standin:nothing"), requirements)


def test_what_cannot_be_installed_is_one_line(requirements, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be made") as said:
        make_environment([str(tmp_path / "nosuch-1.0-py3-none-any.whl")])
    assert "\n" not in str(said.value)
    with pytest.raises(UserError, match="not an option of pip"):
        make_environment(["--index-url=http://evil"])


# ------------------------------------------------------------------------------------------------------- model files


def test_every_model_of_a_file_is_run_under_its_name(tones: Path, tmp_path: Path) -> None:
    file = tmp_path / "models.yaml"
    rows = [{"name": "one", "spec": "python:support.standin:count", "parameters": "1e6", "licence": "MIT"}]
    rows += [{"name": "two", "spec": "python:support.standin:at_once"}]
    file.write_text(json.dumps({"models": rows}))
    assert srb_run(f"@{file}", tones, tmp_path / "runs", "en-demo_clean", "--limit", "3") == 0
    assert [run_json(tmp_path / "runs" / name)["model"] for name in ("one", "two")] == ["one", "two"]
    assert [entry.name for entry in read_models(f"@{file}#t*")] == ["two"]
    assert parse_models(file)[0].parameters == 1e6


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("models: []", "write 'models:'"),
        ("[]", "write 'models:'"),
        ("models: [{name: a}]", "missing required field `spec`"),
        ("models: [{spec: moonshine, lisence: MIT}]", "did you mean licence"),
        ("models: [{spec: moonshin}]", "did you mean moonshine"),
        ("models: [{spec: moonshine, env: torch}]", "'env': expected `array`"),
        ("models: [{spec: moonshine, hours: many}]", "'hours': expected `float"),
        ("models: [{spec: moonshine, name: ../up}]", "'name': has characters that are not allowed"),
        ("models: [{spec: moonshine}, {spec: moonshine}]", "two models are named"),
        ("models: {", "not YAML"),
    ],
)
def test_mistakes_in_a_file_are_one_line(tmp_path: Path, content: str, said: str) -> None:
    (tmp_path / "models.yaml").write_text(content)
    with pytest.raises(UserError, match=said) as error:
        parse_models(tmp_path / "models.yaml")
    assert "\n" not in str(error.value)


def test_known_models_are_many_and_of_classes_that_hf_runs() -> None:
    """As far as it can be checked without the Hub: transformers maps the type of each to a class that `hf:` runs."""
    entries = parse_models(KNOWN)
    assert len(entries) >= 40
    transformers = pytest.importorskip("transformers", minversion="5.20")
    from transformers.models.auto import configuration_auto

    from speech_robust_bench.models.adapters.hf import kind_of

    for entry in entries:
        if entry.parsed.adapter == "hf":
            assert entry.model_type, entry.name
            config = configuration_auto.CONFIG_MAPPING[entry.model_type]()
            assert kind_of(transformers, config, entry.name), entry.name


def test_known_models_hold_those_of_the_papers_table_5() -> None:
    known = {entry.name: entry for entry in parse_models(KNOWN)}
    with open(Path(__file__).parent / "data" / "paper_table5_models.csv", encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            entry = known[row["model"]]
            assert entry.hours == float(row["train_hours"]), entry.name
            assert entry.parameters == pytest.approx(float(row["params_m"]) * 1e6, rel=0.01), entry.name
