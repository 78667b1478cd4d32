"""`srb run`: predictions, failures, memory, resuming and refusing."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from support import standin
from support.run_folders import lines, run_json, srb_run
from support.small_configs import tone, write_config

from speech_robust_bench.builders.config_sources import open_data
from speech_robust_bench.builders.configs import StoredConfig
from speech_robust_bench.cli.main import main
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.records import Prediction
from speech_robust_bench.models.run_folder import PredictionsFile, record_of
from speech_robust_bench.models.runner import clean_first


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "runs"


def test_one_line_per_clip_in_the_order_of_the_data(tones: Path, out: Path) -> None:
    assert srb_run("python:support.standin:count?batch_size=5", tones, out) == 0
    for config in ("en-demo_noise_sev3", "en-demo_clean"):
        got = lines(out / "support.standin-count" / f"{config}.jsonl")
        assert [line["id"] for line in got] == [f"clip-{i:04d}" for i in range(23)]
        assert [line["pred_text"] for line in got] == [f"clip {i} in en" for i in range(23)]
        assert got[3]["text"] == "reference 3"
        assert got[3]["audio_filepath"] == f"{config}/clip-0003.flac"
        assert got[3]["duration"] == pytest.approx(len(tone(3)) / 16_000)
        level = 10 * np.log10(np.mean(np.square(tone(3), dtype=float)))
        assert got[3]["loudness_dbfs"] == pytest.approx(level, abs=0.06)
        assert (got[3]["speaker"], got[3]["gender"], got[3]["age"]) == ("speaker-1", "female", None)
        assert all(line["time"] >= 0 and "error" not in line for line in got)


def test_run_json_says_what_was_run_on_what(tones: Path, out: Path) -> None:
    srb_run("python:support.standin:SmallMemory?batch_size=3", tones, out)
    about = run_json(out / "support.standin-SmallMemory")
    assert (about["adapter"], about["revision"], about["options"]) == ("python", "2", {"memory_s": 1})
    assert about["versions"]["speech-robust-bench"]
    assert about["versions"]["soundfile"]
    config = about["configs"]["en-demo_noise_sev3"]
    assert config["rows"] == config["of"] == 23
    assert (config["scenario"], config["severity"], config["category"]) == ("noise", 3, "noise_env")
    assert config["source"] == "en-demo_clean"
    assert config["content_sha256"] == f"{len('en-demo_noise_sev3'):064x}"
    assert config["audio_s"] == pytest.approx(sum(len(tone(i)) for i in range(23)) / 16_000, abs=1e-3)
    assert config["seconds"] >= 0
    assert config["rtf"] >= 0


def test_the_speed_in_run_json_is_that_of_transcribed_clips(tones: Path) -> None:
    config = open_data(str(tones)).config("en-demo_clean")
    timings = [(1.0, 2.0, None), (3.0, 4.0, None), (6.0, 2.0, "broken"), (0.5, 0.0, None)]
    lines = [Prediction(id=str(n), text="", time=t, duration=d, error=e) for n, (t, d, e) in enumerate(timings)]
    record = record_of(config.about, len(config.rows), lines)
    assert (record.rows, record.of, record.failed) == (4, 23, 1)
    assert (record.audio_s, record.seconds) == (8.0, 10.5)
    assert record.rtf == 0.666667  # 4 s for 6 s: neither the failed clip nor the empty one counts
    assert record.rtf_quantiles == {
        "p5": 0.5125,
        "p25": 0.5625,
        "p50": 0.625,
        "p75": 0.6875,
        "p95": 0.7375,
        "p99": 0.7475,
    }
    assert record_of(config.about, 23, lines[2:]).rtf is None


def test_a_failing_clip_is_recorded_and_others_transcribed(tones: Path, out: Path, capsys) -> None:
    assert srb_run("python:support.standin:fails_on_seven?batch_size=8", tones, out, "en-demo_clean") == 0
    got = lines(out / "support.standin-fails_on_seven/en-demo_clean.jsonl")
    assert got[7]["pred_text"] is None
    assert got[7]["error"] == "ValueError: seven"
    assert [line["pred_text"] for line in got[:7]] == [f"clip {i} in en" for i in range(7)]
    assert run_json(out / "support.standin-fails_on_seven")["configs"]["en-demo_clean"]["failed"] == 1
    assert "1 clips failed" in capsys.readouterr().err


@pytest.mark.parametrize("place", [".", "mine"])
def test_a_model_that_cannot_be_loaded_leaves_nothing_behind(tones: Path, tmp_path: Path, place: str) -> None:
    (tmp_path / "mine").mkdir()
    before = sorted(tmp_path.rglob("*"))
    assert srb_run("python:support.standin:no_such_name", tones, tmp_path / place / "runs", "en-demo_clean") == 2
    assert sorted(tmp_path.rglob("*")) == before
    kept = tmp_path / "runs" / "support.standin-no_such_name" / "notes.txt"
    kept.parent.mkdir(parents=True)
    kept.touch()
    assert srb_run("python:support.standin:no_such_name", tones, tmp_path / "runs", "en-demo_clean") == 2
    assert kept.exists()  # the folder was there before


def test_failed_clips_can_be_tried_again(tones: Path, out: Path, monkeypatch) -> None:
    srb_run("python:support.standin:fails_on_seven", tones, out, "en-demo_clean")
    monkeypatch.setattr(standin, "fails_on_seven", standin.count)
    srb_run("python:support.standin:fails_on_seven", tones, out, "en-demo_clean")
    path = out / "support.standin-fails_on_seven/en-demo_clean.jsonl"
    assert lines(path)[7]["pred_text"] is None
    srb_run("python:support.standin:fails_on_seven", tones, out, "en-demo_clean", "--retry-failed")
    assert [line["pred_text"] for line in lines(path)] == [f"clip {i} in en" for i in range(23)]


def test_audio_that_cannot_be_decoded_is_a_failed_clip(tmp_path: Path, out: Path) -> None:
    write_config(tmp_path / "srb", "en-demo_clean", [tone(0), b"not audio at all", tone(2)])
    assert srb_run("python:support.standin:count", tmp_path / "srb", out) == 0
    got = lines(out / "support.standin-count/en-demo_clean.jsonl")
    assert "cannot be decoded" in got[1]["error"]
    assert [line["pred_text"] for line in got] == ["clip 0 in en", None, "clip 2 in en"]


def test_out_of_memory_halves_the_batch_and_stays_small(tones: Path, out: Path) -> None:
    standin.SmallMemory.calls.clear()
    standin.SmallMemory.too_big.clear()
    assert srb_run("python:support.standin:SmallMemory?batch_size=16", tones, out, "en-demo_clean") == 0
    got = lines(out / "support.standin-SmallMemory/en-demo_clean.jsonl")
    assert [line["pred_text"] for line in got] == [f"clip {i} in en" for i in range(23)]
    too_big, fine = standin.SmallMemory.too_big, standin.SmallMemory.calls
    assert too_big[0] == 16
    assert len(too_big) <= 5  # 16, 8, 4, 2 and once more for good measure: the bound is remembered
    assert sum(fine) == 23
    assert max(fine) > 1  # the short clips still go together


def test_a_recogniser_that_never_works_ends_the_run(tones: Path, out: Path, capsys) -> None:
    assert srb_run("python:support.standin:broken", tones, out) == 2
    assert "OSError: no such device" in capsys.readouterr().err


def test_too_few_texts_are_a_fault_of_the_recogniser(tones: Path, out: Path) -> None:
    srb_run("python:support.standin:forgets_one?batch_size=8", tones, out, "en-demo_clean")
    got = lines(out / "support.standin-forgets_one/en-demo_clean.jsonl")
    assert [line["pred_text"] for line in got] == [f"clip {i} in en" for i in range(23)]  # transcribed one by one


def test_limit_takes_the_first_clips_and_more_can_follow(tones: Path, out: Path) -> None:
    path = out / "support.standin-count/en-demo_clean.jsonl"
    srb_run("python:support.standin:count", tones, out, "en-demo_clean", "--limit", "4")
    assert [line["id"] for line in lines(path)] == [f"clip-{i:04d}" for i in range(4)]
    assert run_json(path.parent)["configs"]["en-demo_clean"]["rows"] == 4
    first = path.read_bytes()
    srb_run("python:support.standin:count", tones, out, "en-demo_clean")
    assert path.read_bytes().startswith(first)
    assert len(lines(path)) == 23
    srb_run("python:support.standin:count", tones, out, "en-demo_clean", "--limit", "2")
    assert len(lines(path)) == 23


def test_a_finished_run_is_not_run_again(tones: Path, out: Path, monkeypatch) -> None:
    srb_run("python:support.standin:count", tones, out)
    before = {path: path.read_bytes() for path in out.rglob("*.json*")}
    monkeypatch.setattr(standin, "count", standin.broken)
    assert srb_run("python:support.standin:count", tones, out) == 0
    assert {path: path.read_bytes() for path in out.rglob("*.json*")} == before


def test_a_torn_last_line_is_cut_off(tones: Path, out: Path) -> None:
    srb_run("python:support.standin:count", tones, out, "en-demo_clean")
    path = out / "support.standin-count/en-demo_clean.jsonl"
    whole = path.read_bytes().splitlines(keepends=True)
    path.unlink()
    path.with_name("en-demo_clean.jsonl.part").write_bytes(b"".join(whole[4:9]) + whole[12][:25])
    srb_run("python:support.standin:count", tones, out, "en-demo_clean")
    assert lines(path)[4:9] == [json.loads(line) for line in whole[4:9]]
    assert [line["pred_text"] for line in lines(path)] == [f"clip {i} in en" for i in range(23)]
    assert not path.with_name("en-demo_clean.jsonl.part").exists()


def test_lines_after_a_torn_one_survive_the_next_kill(tmp_path: Path) -> None:
    part = tmp_path / "en_clean.jsonl.part"
    part.write_bytes(b'{"id": "a", "text": ""}\n{"id": "b", "pre')
    with PredictionsFile(tmp_path, "en_clean") as predictions:
        predictions.add([Prediction(id="c", text="")])  # and then the process dies: nothing is finished
    with PredictionsFile(tmp_path, "en_clean") as predictions:
        assert list(predictions.lines) == ["a", "c"]
    kept = [json.loads(line) for line in part.read_bytes().splitlines()]
    assert [(line["id"], line["text"]) for line in kept] == [("a", ""), ("c", "")]


def test_other_options_in_the_same_folder_are_refused(tones: Path, out: Path, capsys) -> None:
    srb_run("python:support.standin:count", tones, out, "en-demo_clean", "--name", "mine")
    assert srb_run("python:support.standin:count?batch_size=2", tones, out, "en-demo_clean", "--name", "mine") == 0
    assert srb_run("python:support.standin:at_once", tones, out, "en-demo_clean", "--name", "mine") == 2
    assert "--name" in capsys.readouterr().err


def test_another_revision_in_the_same_folder_is_refused(tones: Path, out: Path, capsys, monkeypatch) -> None:
    srb_run("python:support.standin:SmallMemory", tones, out, "en-demo_clean")
    monkeypatch.setattr(standin.SmallMemory, "revision", "3")
    assert srb_run("python:support.standin:SmallMemory", tones, out, "en-demo_noise_sev3") == 2
    assert "revision 2" in capsys.readouterr().err


def test_changed_data_under_old_predictions_is_refused(tones: Path, out: Path, capsys) -> None:
    srb_run("python:support.standin:count", tones, out, "en-demo_clean")
    manifest = tones / "en-demo_clean/_manifest.json"
    manifest.write_text(manifest.read_text().replace('"content_sha256": "0', '"content_sha256": "1'))
    assert srb_run("python:support.standin:count", tones, out, "en-demo_clean") == 2
    assert "other data" in capsys.readouterr().err


def test_two_runs_cannot_write_one_file(tones: Path, out: Path) -> None:
    with PredictionsFile(out / "m", "en_clean"), pytest.raises(UserError, match="another srb run"):
        PredictionsFile(out / "m", "en_clean")
    with PredictionsFile(out / "m", "en_clean"):
        pass


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--model", "python:support.standin:count", "en-demo_nois_sev3"], "did you mean en-demo_noise_sev3"),
        (["--model", "python:support.standin:count", "--data", "nowhere"], "nowhere: no such folder"),
        (["--model", "moonshin"], "did you mean moonshine"),
        (["--model", "python:support.standin:count?batchsize=3"], "did you mean batch_size"),
        (["--model", "python:support.standin:count?batch_size=many"], "not a whole number"),
        (["--model", "python:support.standin:nothing"], "has no 'nothing'"),
        (["--model", "python:nomodule:nothing"], "No module named"),
    ],
)
def test_mistakes_are_one_line_with_the_way_out(
    tones: Path, out: Path, capsys, arguments: list[str], said: str
) -> None:
    data = [] if "--data" in arguments else ["--data", str(tones)]
    assert main(["run", *data, "--out", str(out), "--quiet", *arguments]) == 2
    said_by_srb = capsys.readouterr().err.strip()
    assert said in said_by_srb
    assert "\n" not in said_by_srb


def test_an_out_that_is_a_file_is_one_line(tones: Path, tmp_path: Path, capsys) -> None:
    file = tmp_path / "file"
    file.write_text("not a folder")
    assert srb_run("python:support.standin:count", tones, file, "en-demo_clean") == 2
    said = capsys.readouterr().err.strip().splitlines()[-1]
    assert said.startswith(f"srb run: {file}")


def test_clean_speech_comes_first_and_the_rest_as_given() -> None:
    names = ["en_noise_sev1", "es_clean", "en_echo_sev2", "en_clean"]
    ordered = clean_first([StoredConfig(name, []) for name in names])
    assert [config.name for config in ordered] == ["es_clean", "en_clean", "en_noise_sev1", "en_echo_sev2"]
