"""Results for Every Eval Ever: the fields that its schema (0.3.0) requires, and the scores of results.json."""

import json

import pytest
from support.run_folders import write_run

from speech_robust_bench.cli.main import main

CLEAN = ["the quick brown fox", "jumps over the lazy dog", "and runs away", "from all of it at once"]
WORSE = ["the quick brown box", "jumps over the lazy dog", "and runs away", "from all of it"]


def required(record: dict, *keys: str) -> None:
    assert set(keys) <= set(record), set(keys) - set(record)


@pytest.fixture
def export(tmp_path):
    write_run(tmp_path / "run", "mine", {"clean": CLEAN, "noise_sev3": WORSE, "opus_sev1": WORSE, "silence": [""] * 4})

    def run(*more: str) -> dict:
        words = [
            "every-eval-ever",
            tmp_path / "run",
            "--model-id",
            "org/mine",
            "--organisation",
            "Us",
            "--out",
            tmp_path,
        ]
        assert main(["export", *map(str, words), *more]) == 0
        (path,) = (tmp_path / "data" / "speech-robust-bench" / "org" / "mine").glob("*.json")
        return json.loads(path.read_text())

    return run


def test_it_has_what_the_schema_requires(export):
    record = export("--dataset", "org/srb", "--relationship", "first_party")
    top = ("schema_version", "evaluation_id", "retrieved_timestamp", "source_metadata", "model_info", "eval_library")
    required(record, *top, "evaluation_results")
    assert set(record) <= {*top, "evaluation_results", "evaluation_timestamp"}  # it allows no others that are ours
    assert record["schema_version"] == "0.3.0"
    assert record["evaluation_id"] == f"speech-robust-bench/org/mine/{record['retrieved_timestamp']}"
    assert record["source_metadata"]["source_type"] == "evaluation_run"
    assert record["source_metadata"]["source_organization_name"] == "Us"
    assert record["source_metadata"]["evaluator_relationship"] == "first_party"
    required(record["eval_library"], "name", "version")
    assert (record["model_info"]["name"], record["model_info"]["id"]) == ("mine", "org/mine")
    for entry in record["evaluation_results"]:
        required(entry, "evaluation_name", "source_data", "metric_config", "score_details")
        required(entry["source_data"], "dataset_name", "source_type")
        assert (entry["source_data"]["source_type"], entry["source_data"]["hf_repo"]) == ("hf_dataset", "org/srb")
        assert all(isinstance(value, str) for value in entry["source_data"]["additional_details"].values())
        metric = entry["metric_config"]
        assert metric["lower_is_better"] is True
        assert metric["score_type"] == "continuous"
        assert metric["min_score"] <= entry["score_details"]["score"] <= metric["max_score"]


def test_a_part_of_the_benchmark_says_so(export, tmp_path):
    about = json.loads((tmp_path / "run" / "run.json").read_text())
    about["configs"]["en-tiny_noise_sev3"] |= {"rows": 4, "of": 40}
    (tmp_path / "run" / "run.json").write_text(json.dumps(about))
    details = [entry["source_data"]["additional_details"] for entry in export()["evaluation_results"]]
    assert {each["part"] for each in details} == {"en-tiny_noise_sev3 has 4 of 40 clips"}
    assert {each["clips"] for each in details if each.get("config") == "en-tiny_noise_sev3"} == {"4 of 40"}


def test_its_scores_are_those_of_the_results(export, tmp_path):
    record = export()
    scores = {entry["evaluation_name"]: entry["score_details"] for entry in record["evaluation_results"]}
    assert scores["en-tiny_noise_sev3 (WER)"]["score"] == pytest.approx(100 * 3 / 18, abs=1e-3)
    assert scores["en-tiny_noise_sev3 (NWERD)"]["score"] == pytest.approx(100 * 100 * 3 / 18 / 77, abs=1e-2)
    assert scores["en overall (NWERD)"]["score"] == scores["en-tiny_noise_sev3 (NWERD)"]["score"]
    assert scores["en codec (WERD)"]["score"] == scores["en-tiny_opus_sev1 (WERD)"]["score"]
    assert "en-tiny_opus_sev1 (NWERD)" not in scores
    assert "uncertainty" not in scores["en-tiny_noise_sev3 (WER)"]  # four clips are too few for an interval
    assert {entry["source_data"]["source_type"] for entry in record["evaluation_results"]} == {"other"}


@pytest.mark.parametrize("name", ["mine", "a/b/c", "../x", "org/.."])
def test_a_model_needs_an_owner(tmp_path, capsys, name):
    write_run(tmp_path / "run", "mine", {"clean": CLEAN})
    words = [
        "every-eval-ever",
        str(tmp_path / "run"),
        "--model-id",
        name,
        "--organisation",
        "Us",
        "--out",
        str(tmp_path),
    ]
    assert main(["export", *words]) == 2
    assert "they look like ORG/MODEL" in capsys.readouterr().err
