"""`srb submit`, `srb verify` and the truth that they need, through the loopback Hub."""

from __future__ import annotations

import json

import pytest
from support.built_data import make_built
from support.fake_runs import make_run

CONFIGS = ["en_clean", "en_noise_sev3", "en_silence"]


@pytest.fixture
def ready(hub, srb, tmp_path):
    """The benchmark on the Hub, a results repository, and a run."""
    data = make_built(tmp_path / "srb", CONFIGS, clips=12)
    srb("push", "data", "--repo", "acme/srb", "--data", data)
    hub.create("acme/results", "dataset")
    return make_run(tmp_path / "runs" / "hears", data, "hears")


def test_a_submission_arrives_as_a_pull_request_and_verifies_from_there(hub, srb, ready, tmp_path):
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
