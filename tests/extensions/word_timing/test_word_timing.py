"""Word times against a forced alignment: values by hand, and PocketSphinx on a clip whose words were moved."""

from __future__ import annotations

import json

import pytest

from speech_robust_bench.cli.main import main
from speech_robust_bench.core.records import Prediction, WordConfidence, WordTime
from speech_robust_bench.extensions.word_timing.measure import WordTiming, moved_ms, of_lines, offsets
from speech_robust_bench.scoring.score_options import ScoreOptions

SAID = [WordTime("so", 0.0, 0.3), WordTime("it's", 0.3, 0.6), WordTime("late", 0.6, 1.0)]


def line(*heard: tuple[str, float | None, float | None], clip: str = "a") -> Prediction:
    words = [WordConfidence(word, None, start, end) for word, start, end in heard]
    text = " ".join(word for word, *_ in heard)
    return Prediction(id=clip, text="so it's late", pred_text=text, words=SAID, word_confidences=words)


def timing(*lines: Prediction) -> WordTiming:
    record = of_lines(lines, ScoreOptions(replicates=0))
    assert record is not None
    return record


def test_errors_are_over_recognised_words_and_shares_over_all():
    record = timing(line(("So", 0.03, 0.32), ("its", 0.38, 0.6), ("lake", 0.6, 1.0)))
    assert (record.words, record.timed) == (3, 2)
    assert record.start_ms
    assert record.start_ms.value == pytest.approx(55)  # 30 and 80 ms
    assert record.end_ms
    assert record.end_ms.value == pytest.approx(10)  # 20 and 0 ms
    assert record.late_ms == pytest.approx(55)
    assert record.within_50_ms.value == pytest.approx(100 / 3, abs=1e-3)
    assert record.within_100_ms.value == pytest.approx(200 / 3, abs=1e-3)


def test_an_early_word_is_as_far_away_as_a_late_one():
    record = timing(line(("so", 0.0, 0.3), ("late", 0.55, 0.95)))
    assert record.start_ms
    assert record.start_ms.value == pytest.approx(25)
    assert record.late_ms == pytest.approx(-25)
    assert record.within_50_ms.value == pytest.approx(200 / 3, abs=1e-3)  # 50 ms is within


def test_leaving_words_out_never_helps_the_shares():
    whole = timing(line(("so", 0.0, 0.3), ("it's", 0.3, 0.6), ("late", 0.9, 1.3)))
    less = timing(line(("so", 0.0, 0.3), ("it's", 0.3, 0.6)))
    assert less.within_50_ms.value <= whole.within_50_ms.value


def test_words_without_times_are_not_compared():
    assert of_lines([line(("so", None, None))], ScoreOptions()) is None
    assert of_lines([line(("so", 0.0, 0.3)).replace(words=None)], ScoreOptions()) is None
    assert timing(line(("so", 0.0, 0.3), ("late", None, None))).timed == 1
    nothing = timing(line(("no", 0.0, 0.3)))
    assert (nothing.start_ms, nothing.within_100_ms.value) == (None, 0.0)


def test_a_shift_against_clean_speech_is_over_the_words_of_both():
    clean = line(("so", 0.02, 0.3), ("late", 0.6, 1.0))
    noisy = line(("so", 0.0, 0.3), ("it's", 0.5, 0.6), ("late", 0.66, 1.0))
    assert moved_ms([noisy], [clean], "srb-paper-1") == pytest.approx(40)  # 20 and 60 ms
    assert moved_ms([noisy], [], "srb-paper-1") is None


def test_a_run_with_word_timing_has_the_measure(tmp_path, monkeypatch, capsys):
    pytest.importorskip("pocketsphinx")
    monkeypatch.chdir(tmp_path)
    run = "run --model pocketsphinx?workers=1 en-demo_clean en-demo_tempo_up_sev2 --corpus en-demo --limit 2 --quiet"
    assert main([*run.split(), "--word-timing"]) in (0, None)
    folder = tmp_path / "runs" / "pocketsphinx-timed"
    predictions = [json.loads(text) for text in (folder / "en-demo_clean.jsonl").read_text().splitlines()]
    assert all(offsets(Prediction(**_typed(each))) for each in predictions)
    assert main(["score", str(folder)]) in (0, None)
    results = json.loads((folder / "results.json").read_text())["configs"]
    for config in results.values():
        measured = config["measures"]["word_timing"]
        assert measured["timed"] > 0.7 * measured["words"]
        assert measured["start_ms"]["value"] < 60  # the same acoustic model aligned the reference
    capsys.readouterr()
    assert main(["table", str(folder), "--word-timing"]) in (0, None)
    assert "tempo_up" in capsys.readouterr().out


def _typed(row: dict) -> dict:
    words = [WordTime(*word) for word in row["words"]]
    return {**row, "words": words, "word_confidences": [WordConfidence(*word) for word in row["word_confidences"]]}
