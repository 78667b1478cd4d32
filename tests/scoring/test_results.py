"""`results.json`: right numbers (jiwer, arithmetic by hand), nothing left out in silence, and never stale."""

from __future__ import annotations

import hashlib
import json
import math
from pathlib import Path

import jiwer
import pytest
from support.run_folders import TEXTS, write_run

from speech_robust_bench.cli.main import main
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.scoring.results import ScoreOptions, load
from speech_robust_bench.scoring.results import score_run as scored

SAID = list(TEXTS.values())
CLEAN = ["the quick brown fox", "jumps over the lazy dog", "and runs away", "from all of it at one"]
NOISY = ["the quick brown", "jumps over a lazy dog", "and he runs away", "from all at once"]
WORSE = ["a fox", "dog", "", "from all of it"]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    hypotheses = {
        "clean": CLEAN,
        "noise_sev1": NOISY,
        "noise_sev4": WORSE,
        "opus_sev1": NOISY,
        "pgd_sev2-m": WORSE,
        "silence": ["", "thank you", "", "Thank you for watching."],
    }
    return write_run(tmp_path / "runs" / "m", "m", hypotheses)


def score_run(folder):
    """The content of the results.json that is written."""
    return scored(folder).as_json()


def jiwer_wer(hypotheses: list[str]) -> float:
    return 100 * jiwer.wer(SAID, hypotheses)


def test_wer_is_jiwers_and_werd_and_nwerd_follow_the_paper(run):
    configs = score_run(run)["configs"]
    noise = configs["en-tiny_noise_sev4"]
    assert noise["wer"]["value"] == pytest.approx(jiwer_wer(WORSE), abs=1e-4)
    werd = jiwer_wer(WORSE) - jiwer_wer(CLEAN)
    assert noise["werd"]["value"] == pytest.approx(werd, abs=1e-4)
    assert noise["difficulty"] == 89.6  # Table 3, MS-SNSD noise at severity 4
    assert noise["nwerd"]["value"] == pytest.approx(100 * werd / 89.6, abs=1e-3)
    assert noise["werd"]["interval"] is None  # four clips of two speakers: nothing is known of others
    assert noise["resampled"] == {"unit": "speakers", "units": 2, "clips": 4}


def test_a_category_is_the_mean_of_its_configs(run):
    made = score_run(run)
    configs, row = made["configs"], made["languages"]["en"]["categories"]["noise_env"]
    values = [configs[f"en-tiny_noise_sev{n}"]["nwerd"]["value"] for n in (1, 4)]
    assert row["nwerd"]["value"] == pytest.approx(sum(values) / 2, abs=1e-3)
    assert made["languages"]["en"]["overall"]["nwerd"]["value"] == row["nwerd"]["value"]  # the only category with one


def test_no_difficulty_no_nwerd_and_it_says_so(run):
    made = score_run(run)
    codec, attack = made["configs"]["en-tiny_opus_sev1"], made["configs"]["en-tiny_pgd_sev2-m"]
    assert codec["nwerd"] is None
    assert "no entry" in codec["why"]["nwerd"]
    assert attack["nwerd"] is None
    assert "adversarial" in attack["why"]["nwerd"]
    overall = made["languages"]["en"]["overall"]
    assert overall["members"] == ["noise_env"]
    assert made["languages"]["en"]["adversarial"]["werd"]["value"] == attack["werd"]["value"]


def test_what_is_missing_is_named(run):
    english = score_run(run)["languages"]["en"]
    assert english["missing"]["noise_white"] == [f"en-tiny_gaussian_sev{n}" for n in (1, 2, 3, 4)]
    assert "en-tiny_noise_sev4" not in english["missing"]["noise_env"]
    assert "accent" in english["overall"]["missing"]


def test_words_in_silence_stay_out_of_the_means(run):
    made = score_run(run)
    silence = made["reject"]["en-tiny_silence"]
    assert (silence["words"], silence["clips_with_words"], silence["clips"]) == (6, 2, 4)
    assert silence["words_per_minute"] == pytest.approx(6 / (4 * 2.0 / 60))
    assert "reject" not in made["languages"]["en"]["categories"]
    assert made["configs"]["en-tiny_noise_sev1"]["insertions"] == 1  # "he"


def test_a_failed_clip_is_named_and_all_its_words_are_lost(tmp_path):
    folder = write_run(tmp_path / "m", "m", {"clean": CLEAN, "noise_sev1": [*CLEAN[:3], None]})
    made = score_run(folder)
    config = made["configs"]["en-tiny_noise_sev1"]
    assert (config["failed"], config["failed_ids"], made["failed"]) == (1, ["d"], 1)
    assert config["wer"]["value"] == pytest.approx(jiwer_wer([*CLEAN[:3], ""]), abs=1e-4)


def test_lwerr_and_slices(run):
    slices = score_run(run)["configs"]["en-tiny_noise_sev1"]["slices"]
    female, male = slices["gender"]["female"], slices["gender"]["male"]
    assert female["wer"] == pytest.approx(100 * jiwer.wer([SAID[0], SAID[2]], [NOISY[0], NOISY[2]]), abs=1e-4)
    assert slices["lwerr"]["value"] == pytest.approx(math.log2((2 / 7) / (3 / 11)), abs=1e-3)  # counted by hand
    assert (slices["speakers"], male["speakers"], male["words"]) == (2, 1, 11)


def test_results_name_everything_they_came_from(run):
    made = score_run(run)
    config = made["configs"]["en-tiny_noise_sev1"]
    assert config["content_sha256"] == "hash of noise_sev1"
    assert config["predictions_sha256"] == hashlib.sha256((run / "en-tiny_noise_sev1.jsonl").read_bytes()).hexdigest()
    assert made["scoring"]["normaliser"] == "srb-paper-1"
    assert made["scoring"]["difficulty"]["name"] == "paper-table3"
    assert {"speech-robust-bench", "numpy", "python"} <= set(made["software"])
    assert json.loads((run / "results.json").read_text()) == made


def test_results_are_the_same_every_time(run):
    assert score_run(run) == score_run(run)


def test_load_scores_again_only_when_something_changed(run):
    score_run(run)
    before = (run / "results.json").stat().st_mtime_ns
    load(run)
    assert (run / "results.json").stat().st_mtime_ns == before
    path = run / "en-tiny_noise_sev1.jsonl"
    path.write_text(path.read_text().replace("jumps over a lazy dog", "dog"))
    assert load(run).as_json()["configs"]["en-tiny_noise_sev1"]["wer"]["value"] > jiwer_wer(NOISY)
    assert load(run, ScoreOptions(difficulty="srb-1")).as_json()["scoring"]["difficulty"]["name"] == "srb-1"


def test_the_command_says_what_a_reader_must_know(tmp_path, capsys):
    folder = write_run(tmp_path / "m", "m", {"noise_sev1": [*CLEAN[:3], None]})
    assert main(["score", str(folder)]) == 0
    said = capsys.readouterr()
    assert "1 configs" in said.out
    assert "1 clips failed" in said.err
    assert "en-tiny_clean was not scored" in said.err


def test_a_folder_without_a_run_is_one_line(tmp_path, capsys):
    assert main(["score", str(tmp_path)]) == 2
    assert "no run.json" in capsys.readouterr().err


def test_comparing_apples_with_pears_is_refused(run, tmp_path):
    from speech_robust_bench.scoring.results import check_comparable

    other = write_run(tmp_path / "n", "n", {"clean": CLEAN})
    with pytest.raises(UserError, match="different difficulty"):
        check_comparable([load(run), load(other, ScoreOptions(difficulty="srb-1"))])
