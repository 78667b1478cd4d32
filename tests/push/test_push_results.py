"""`srb push results`: scores in the model's repository, by pull request."""

from __future__ import annotations

import json

import pytest
import yaml
from huggingface_hub import ModelCard, parse_eval_result_entries
from support.loopback_hub import File
from support.run_folders import write_run

HEARD = {
    "clean": ["the quick brown fox", "jumps over the lazy dog", "and runs away", "from all of it at once"],
    "noise_sev3": ["the quick fox", "jumps over the lazy dog", "and runs away", "from all of it at once"],
}
CARD = """---
license: mit
model-index:
- name: hears
  results:
  - task:
      type: automatic-speech-recognition
    dataset:
      type: other/bench
      name: Other
    metrics:
    - type: wer
      value: 7.5
---
# Hears
By hand.
"""


@pytest.fixture
def push(hub, srb, tmp_path):
    hub.create("acme/hears", "model").files["README.md"] = File(CARD.encode(), False)
    write_run(tmp_path / "runs" / "hears", "hears", HEARD)
    words = ("push", "results", tmp_path / "runs" / "hears", "--model-id", "acme/hears", "--dataset", "acme/srb")
    return lambda *more, **how: srb(*words, *more, **how)


def test_a_pull_request_with_both_forms(hub, push):
    done = push()
    repo = hub.repo("acme/hears", "model")
    assert done.stdout.strip() == f"{hub.url}/acme/hears/discussions/1"
    assert repo.files["README.md"].data == CARD.encode()  # the branch itself is as it was
    files = repo.commits[repo.refs["refs/pr/1"]]
    entries = yaml.safe_load(files[".eval_results/srb.yaml"].data)
    values = {entry["dataset"]["task_id"]: entry["value"] for entry in entries}
    assert values["en-tiny_clean"] == 0
    assert values["en-tiny_noise_sev3"] == pytest.approx(100 / 18, abs=1e-4)  # one of 18 words is lost
    assert {entry["dataset"]["id"] for entry in entries} == {"acme/srb"}
    card = files["README.md"].data.decode()
    assert card.endswith("# Hears\nBy hand.\n")
    results = yaml.safe_load(card.split("---\n")[1])["model-index"][0]["results"]
    by_dataset = {one["dataset"]["type"]: one for one in results}
    assert by_dataset["other/bench"]["metrics"][0]["value"] == 7.5
    read_back = parse_eval_result_entries(entries)
    assert {(entry.dataset_id, entry.task_id): entry.value for entry in read_back} == {
        ("acme/srb", task): value for task, value in values.items()
    }
    listed = [entry for entry in ModelCard(card).data.eval_results if entry.dataset_type == "acme/srb"]
    assert sorted(entry.metric_value for entry in listed) == sorted(values.values())
    ours = {r["dataset"].get("config"): r["metrics"][0]["value"] for r in results if r["dataset"]["type"] == "acme/srb"}
    assert ours["en-tiny_noise_sev3"] == values["en-tiny_noise_sev3"]


@pytest.mark.parametrize("how", ["fewer clips", "limit"])
def test_a_part_of_the_benchmark_is_not_published_as_the_whole(how, hub, push, tmp_path):
    path = tmp_path / "runs" / "hears" / "run.json"
    about = json.loads(path.read_text())
    if how == "limit":
        about["data"] = "--corpus en=LibriSpeech --limit 4"
    else:
        about["configs"]["en-tiny_noise_sev3"] |= {"rows": 4, "of": 40}
    path.write_text(json.dumps(about))
    said = push(code=2).stderr
    assert ("--limit 4" if how == "limit" else "en-tiny_noise_sev3 has 4 of 40 clips") in said
    assert len(said.splitlines()) == 1


def test_a_second_push_brings_the_open_request_up_to_date(hub, push):
    push()
    push()
    assert len(hub.repo("acme/hears", "model").pulls) == 1


def test_a_lost_answer_does_not_open_two_requests(hub, push):
    hub.fault("POST", "/commit/", lose_answer=True)
    push()
    assert len(hub.repo("acme/hears", "model").pulls) == 1


def test_a_dry_run_prints_the_files(hub, push):
    assert ".eval_results/srb.yaml" in push("--dry-run", token=None).stdout
    assert not hub.repo("acme/hears", "model").pulls


def test_a_model_without_a_card_gets_one(hub, push):
    del hub.repo("acme/hears", "model").files["README.md"]
    push()
    repo = hub.repo("acme/hears", "model")
    assert b"model-index" in repo.commits[repo.refs["refs/pr/1"]]["README.md"].data


def test_a_model_that_is_not_there(srb, tmp_path):
    write_run(tmp_path / "runs" / "hears", "hears", HEARD)
    done = srb("push", "results", tmp_path / "runs/hears", "--model-id", "acme/gone", "--dataset", "acme/srb", code=2)
    assert "acme/gone: not found on the Hub" in done.stderr
