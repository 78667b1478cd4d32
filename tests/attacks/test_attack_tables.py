"""What a run says about attacks: success rates in results.json, `srb table --adversarial`, and the report's section."""

from __future__ import annotations

import base64
import json

import jiwer
import numpy as np
import pytest

pytest.importorskip("torch")

from support.tone_configs import one_thread, tone_data  # noqa: F401

from speech_robust_bench.attacks.clips import clips_of
from speech_robust_bench.builders.config_sources import open_data
from speech_robust_bench.cli.main import main
from speech_robust_bench.core import records
from speech_robust_bench.core.audio import read
from speech_robust_bench.core.result_records import RunResults
from speech_robust_bench.scoring.attack_success import attack_rows, attacks_of


@pytest.fixture
def run(tone_data, tmp_path):  # noqa: F811
    """A small model attacked by PGD at two SNRs, with and without a target, and run."""
    words = ["en-tones_clean", "--model", "python:support.tones:Ctc", "--data", str(tone_data), "--out"]
    common = [*words, str(tone_data), "--limit", "6", "--quiet", "--name", "toy", "--transcribe-every", "5"]
    assert main(["attack", "pgd", *common, "--severity", "3", "4", "--steps", "10"]) == 0
    assert main(["attack", "cw", *common, "--steps", "30", "--target", "ba", "--target", "ab cd"]) == 0
    place = tmp_path / "runs"
    where = ["--data", str(tone_data), "--out", str(place), "--name", "toy", "--quiet"]
    assert main(["run", "--model", "python:support.tones:Ctc", *where]) == 0
    assert main(["score", str(place / "toy")]) == 0
    return place / "toy"


def lines_of(run, config: str) -> list[dict]:
    return [json.loads(line) for line in (run / f"{config}.jsonl").read_text().splitlines()]


def test_success_rates_are_in_the_results(run, tone_data) -> None:  # noqa: F811
    configs = json.loads((run / "results.json").read_text())["configs"]
    lines = lines_of(run, "en-tones_pgd_sev4-toy")
    by_hand = 100 * np.mean([min(jiwer.wer(line["text"], line["pred_text"]), 1) for line in lines])
    assert configs["en-tones_pgd_sev4-toy"]["attack"]["uasr"] == pytest.approx(by_hand, abs=1e-3)
    assert "tasr" not in configs["en-tones_pgd_sev4-toy"]["attack"]
    assert "attack" not in configs["en-tones_clean"]
    rows = open_data(str(tone_data)).config("en-tones_pgd_sev4-toy")
    clips = [(clip.samples, clip.id) for clip in clips_of(rows)]
    clean = {clip.id: clip.samples for clip in clips_of(open_data(str(tone_data)).config("en-tones_clean"))}
    by_hand = [10 * np.log10(np.sum(clean[i] ** 2) / np.sum((x - clean[i]) ** 2)) for x, i in clips]
    assert configs["en-tones_pgd_sev4-toy"]["attack"]["snr_db"] == pytest.approx(np.mean(by_hand), abs=0.02)
    assert 0 < configs["en-tones_pgd_sev4-toy"]["attack"]["above_threshold"] <= 100
    lines = lines_of(run, "en-tones_cw-toy")
    assert {line["target"] for line in lines} == {"ba", "ab cd"}
    to_target = [jiwer.cer(line["target"], line["pred_text"]) for line in lines]
    scores = configs["en-tones_cw-toy"]["attack"]
    assert scores["tasr_char"] == pytest.approx(100 * np.mean([max(1 - rate, 0) for rate in to_target]), abs=1e-3)
    assert scores["exact"] == pytest.approx(100 * np.mean([rate == 0 for rate in to_target]), abs=1e-3)


def test_the_table_and_the_report_show_them(run, tmp_path, capsys, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    assert main(["table", "--adversarial", str(run)]) == 0
    said = capsys.readouterr().out
    rows = attacks_of(records.read(run / "results.json", RunResults))
    assert [(row.attack, row.snr_db) for row in rows] == [("cw", None), ("pgd", 20.0), ("pgd", 10.0)]
    for row in rows:
        assert f"{row.rates['uasr']:.1f}" in said
    assert main(["report", str(run), "--out", str(tmp_path / "page.html")]) == 0
    page = (tmp_path / "page.html").read_text()
    section = page[page.index('id="attacks"') :]
    section = section[: section.index("</section>")]
    assert "TASR words" in section
    assert "success of pgd over SNR" in section


def test_the_report_shows_transfer_and_plays_what_was_added(run, tone_data, tmp_path) -> None:  # noqa: F811
    where = ["--data", str(tone_data), "--out", str(run.parent), "--name", "other", "--quiet"]
    assert main(["run", "--model", "python:support.tones:Seq2Seq", "en-tones_clean", "en-tones_pgd_sev*", *where]) == 0
    page = tmp_path / "page.html"
    words = ["report", str(run), str(run.parent / "other"), "--data", str(tone_data), "--out", str(page)]
    assert main([*words, "--embed-audio", "2"]) == 0
    section = page.read_text().partition('id="attacks"')[2].partition("</section>")[0]
    matrix = section[section.index("<h3>Transfer") : section.index("<h3>Attacked clips")]
    rows = attacks_of(records.read(run.parent / "other" / "results.json", RunResults))
    for row in rows:
        assert f"other on clips made for toy: WER {row.wer:.1f}, UASR {row.rates['uasr']:.1f}" in matrix
    assert matrix.count("outline") == 2  # toy under its own attack, at two SNRs
    clip = section[section.index("<h3>Attacked clips") :]
    assert clip.count("<article") == 4  # two configs of each model
    assert clip.count("<audio") == clip.count("data:image/png") == 12
    flac = [part.partition('"')[0] for part in clip.split("data:audio/flac;base64,")[1:4]]
    before, after, added = (read(base64.b64decode(text)) for text in flac)
    change = after - before
    assert np.corrcoef(added, change)[0, 1] > 0.999
    assert np.abs(added).max() == pytest.approx(0.5, abs=1e-3)


def test_white_noise_at_the_same_snr_stands_beside_an_attack() -> None:
    attacked = (3, {"uasr": 50.0, "uasr_char": 40.0})
    wer = {
        "en_gaussian_sev2": 7.0,  # 20 dB
        "en_pgd_sev3-m": 90.0,  # 20 dB
        "en_pgd_sev1-m": 60.0,  # 40 dB, which white noise does not have
    }
    rows = attack_rows("m", {"en_pgd_sev3-m": attacked, "en_pgd_sev1-m": attacked}, wer)
    assert [(row.snr_db, row.noise_wer) for row in rows] == [(40, None), (20, 7.0)]


def test_a_run_without_attacks_is_told_so(tone_data, tmp_path, capsys) -> None:  # noqa: F811
    where = ["--data", str(tone_data), "--out", str(tmp_path), "--name", "toy", "--quiet"]
    assert main(["run", "--model", "python:support.tones:Ctc", *where]) == 0
    assert main(["table", "--adversarial", str(tmp_path / "toy")]) == 2
    assert "srb attack makes them" in capsys.readouterr().err
