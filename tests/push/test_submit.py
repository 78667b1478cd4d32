"""`srb submit`, `srb verify` and the truth that they need, through the loopback Hub."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from support.built_data import make_built
from support.fake_runs import make_run

CONFIGS = ["en_clean", "en_noise_sev3", "en_silence"]


@pytest.fixture
def ready(hub, srb, tmp_path):
    """The benchmark on the Hub, a results repository, and a run."""
    data = make_built(tmp_path / "srb", CONFIGS, clips=12)
    srb("push", "data", "--dataset", "acme/srb", "--data", data)
    hub.create("acme/results", "dataset")
    return make_run(tmp_path / "runs" / "hears", data, "hears")


def test_a_submission_verifies_from_its_pull_request(hub, srb, ready, tmp_path):
    done = srb("submit", ready, "--to", "acme/results", "--data", "acme/srb", "--params-m", 39)
    assert done.stdout.splitlines()[-1] == f"{hub.url}/datasets/acme/results/discussions/1"
    repo = hub.repo("acme/results")
    files = repo.commits[repo.refs["refs/pr/1"]]
    sent = {path.removeprefix("submissions/ann/hears/"): file.data for path, file in files.items() if "/" in path}
    assert set(sent) == {"submission.json", "run.json", "results.json", *(f"{c}.jsonl" for c in CONFIGS)}
    there = tmp_path / "fetched" / "hears"
    there.mkdir(parents=True)
    for name, data in sent.items():
        (there / name).write_bytes(data)
    srb("verify", there, "--data", "acme/srb", "--out", tmp_path / "verified")
    made = json.loads((tmp_path / "verified" / "ann--hears.json").read_text())
    assert made["model"]["params_m"] == 39
    for place in (tmp_path / "srb", tmp_path / "benchmark.json"):  # the same from the folder and from the file
        (tmp_path / "benchmark.json").write_bytes(hub.repo("acme/srb").files["benchmark.json"].data)
        srb("verify", there, "--data", place)
    (there / "en_noise_sev3.jsonl").write_text("{}\n")
    refused = srb("verify", there, "--data", "acme/srb", code=1)
    assert refused.stdout.startswith("hears: refused\n")


def test_what_would_be_refused_is_not_sent(hub, srb, ready):
    (ready / "en_noise_sev3.jsonl").unlink()
    done = srb("submit", ready, "--to", "acme/results", "--data", "acme/srb", code=2)
    assert "en_noise_sev3: missing" in done.stderr
    assert hub.repo("acme/results").pulls == []


def test_a_secret_in_the_options_is_noticed(srb, ready):
    about = json.loads((ready / "run.json").read_text())
    about["options"]["api_key"] = "sk-abcdefghijklmnopqrstuv"
    (ready / "run.json").write_text(json.dumps(about))
    done = srb("submit", ready, "--to", "acme/results", "--data", "acme/srb", code=2)
    assert "secret key" in done.stderr
    assert "sk-abc" not in done.stderr


def test_a_name_that_no_file_could_have(srb, ready):
    done = srb("submit", ready, "--dry-run", "--name", "../x", "--data", "acme/srb", code=2)
    assert "letters, digits" in done.stderr


def test_no_benchmark_is_said_plainly(srb, ready):
    assert "--data nowhere" in srb("verify", ready, "--data", "nowhere", code=2).stderr


def test_configs_that_the_benchmark_does_not_have_are_left_out(srb, ready, tmp_path):
    more = make_built(tmp_path / "more", [*CONFIGS, "en_echo_sev1"], clips=12)
    run = make_run(tmp_path / "runs" / "larger", more, "larger")
    done = srb("submit", run, "--dry-run", "--data", "acme/srb", "--out", tmp_path / "sent")
    assert "left out, because acme/srb does not have them: en_echo_sev1" in done.stderr
    assert {path.stem for path in (tmp_path / "sent").glob("*.jsonl")} == set(CONFIGS)


def test_an_interrupted_submission_can_be_repeated(hub, srb, ready, tmp_path, monkeypatch):
    words = ("submit", ready, "--to", "acme/results", "--data", "acme/srb")

    def stop(*_, **__):
        raise KeyboardInterrupt

    for place in (
        "speech_robust_bench.push.submission.results.results",
        "speech_robust_bench.publishing.check",
        "speech_robust_bench.push.submission.send",
    ):
        with monkeypatch.context() as patch:
            patch.setattr(place, stop)
            assert srb(*words, code=None).code == 130
    srb(*words)
    assert len(hub.repo("acme/results").pulls) == 1
    assert [path.name for path in (tmp_path / "submissions").iterdir()] == ["hears"]


def test_a_dry_run_leaves_no_folder(srb, ready, tmp_path):
    assert srb("submit", ready, "--dry-run", "--data", "acme/srb").stdout == f"{ready}: accepted\n"
    assert not (tmp_path / "submissions").exists()


def test_a_refused_run_leaves_no_folder(srb, ready, tmp_path):
    words = ("submit", ready, "--dry-run", "--data", "acme/srb", "--out", tmp_path / "sent")
    predictions = ready / "en_noise_sev3.jsonl"
    whole = predictions.read_bytes()
    predictions.write_bytes(whole.split(b"\n")[0] + b"\n")
    assert "correct the run and submit again" in srb(*words, code=2).stderr
    predictions.write_bytes(whole)
    srb(*words)
    assert len((tmp_path / "sent" / predictions.name).read_bytes().splitlines()) == 12


def test_another_submission_is_not_replaced(srb, ready, tmp_path):
    words = ("submit", ready, "--dry-run", "--data", "acme/srb", "--out", tmp_path / "sent")
    srb(*words)
    before = (tmp_path / "sent" / "submission.json").read_bytes()
    assert "is there already, with something else" in srb(*words, "--licence", "MIT", code=2).stderr
    assert (tmp_path / "sent" / "submission.json").read_bytes() == before


@pytest.mark.parametrize("words", [["submit", "runs/hears", "--dry-run", "--data", "srb"], ["metrics", "install"]])
def test_a_full_disk_is_one_line_and_leaves_nothing_half_made(tmp_path, words):
    """A limit on the size of files stands in for the full disk: the write fails in the middle, in the same way."""
    make_run(tmp_path / "runs" / "hears", make_built(tmp_path / "srb", CONFIGS, clips=12), "hears")
    program = (
        "import evaluate, resource, sys; from speech_robust_bench.cli.main import main\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (800, 800)); sys.exit(main(sys.argv[1:]))"
    )
    env = {"PATH": "", "HF_HOME": str(tmp_path / "home"), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", program, *words], cwd=tmp_path, env=env, capture_output=True, text=True
    )
    assert done.returncode == 2, done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert "cannot be written" in done.stderr
    assert not list(tmp_path.glob("submissions/*"))
    assert not list(tmp_path.glob("home/**/werd.py"))
