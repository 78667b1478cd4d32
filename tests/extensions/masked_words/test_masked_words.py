"""How often masked words are written all the same: counted by hand, scored, tabled, and refused where it is no list."""

import json
from contextlib import nullcontext

import pytest
from support.run_folders import write_run

from speech_robust_bench.cli.main import main
from speech_robust_bench.core.records import Prediction, SubmittedPrediction, convert
from speech_robust_bench.extensions.masked_words.measure import MASKED, guess, masked_rate, written


def line(clip: str, text: str, transcript: str, masked: str) -> Prediction:
    return Prediction(id=clip, text=text, pred_text=transcript, masked=masked, language="en")


def test_a_word_counts_only_at_its_place():
    said = "the man saw the old dog and the man left"
    assert written(line("a", said, "the man saw the old dog and the left", "1 8")) == [True, False]
    assert written(line("a", said, "", "1")) == [False]
    assert written(line("a", "Well -- seven, or eight!", "well SEVEN or nine", "2 4")) == [True, False]
    assert written(line("a", "seven or eight", "7 or 9", "0 2"), "srb-numbers-1") == [True, False]


@pytest.mark.parametrize("normaliser", ["srb-paper-1", "srb-numbers-1", "open-asr-1", "whisper-en"])
@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("in nineteen forty five it ended", "1 2 3"),
        ("he was twenty one", "2 3"),
        ("the seventy-five men", "1"),
        ("the dog's well-known name", "1 2"),
        ("Dr. Smith can't pay $5.50 -- not now", "0 2 4"),
    ],
)
def test_of_a_perfect_transcript_every_masked_word_is_written(text, masked, normaliser):
    hits = written(line("a", text, text, masked), normaliser)
    assert len(hits) == len(masked.split())
    assert all(hits)
    assert not any(written(line("a", text, "", masked), normaliser))


def test_words_that_are_one_token_count_together():
    said = line("a", "he was twenty one or so", "he was twenty two or so", "2 3")
    assert written(said, "whisper-en") == [False, False]  # 21 and 22
    assert written(said, "srb-numbers-1") == [True, False]  # 2 1 and 2 2


def test_a_word_that_normalises_to_nothing_does_not_count():
    assert written(line("a", "so -- be it", "so be it", "1 2")) == [True]


def test_with_few_words_written_the_interval_is_not_too_narrow():
    """One of six clips has one of its four words: Wilson for 1/24 of six clips by hand, 0.2 to 43.9 %."""
    lines = [line(f"c{n}", "one two three four", "one" if n == 0 else "", "0 1 2 3") for n in range(6)]
    low, high = masked_rate(lines, "srb-paper-1", 1000, 0.95, 0).rate.interval
    assert low == 0
    assert high >= 43.87


def test_the_share_is_over_words_and_its_interval_over_clips():
    lines = [
        line(f"c{n}", "one two three four", "one two three" if n % 2 else "one three four", "1 3") for n in range(40)
    ]
    rate = masked_rate(lines, "srb-paper-1", 1000, 0.95, 0)
    assert rate is not None
    assert (rate.words, rate.written, rate.rate.value) == (80, 40, 50.0)
    assert rate.rate.interval == [50.0, 50.0]  # every clip has one of its two
    halves = [line(f"c{n}", "one two", "one two" if n % 2 else "one", "1") for n in range(100)]
    low, high = masked_rate(halves, "srb-paper-1", 1000, 0.95, 0).rate.interval
    assert (low, high) == pytest.approx((40, 60), abs=3)  # binomial: 50 +- 1.96 x 5
    never = masked_rate([line(f"c{n}", "one two", "one", "1") for n in range(10)], "srb-paper-1", 1000, 0.95, 0)
    assert never.rate.interval == pytest.approx([0, 27.75], abs=0.01)  # Wilson, 0 of 10
    assert masked_rate([Prediction(id="a", text="b", pred_text="b")], "srb-paper-1", 10, 0.95, 0) is None


def test_a_trigram_model_knows_what_everybody_knows():
    pytest.importorskip("pocketsphinx")
    assert guess(("the", "united"), ("of", "america")) == "states"
    assert guess(("new", "york"), ("council",)) == "city"


def test_the_table_has_the_language_model_and_clean_speech(tmp_path, capsys):
    run = write_run(tmp_path / "m", "m", {"clean": ["the quick brown fox", "jumps over the lazy dog", "", ""]})
    lines = [json.loads(text) for text in (run / "en-tiny_clean.jsonl").read_text().splitlines()]
    masked = [{**each, "masked": place} for each, place in zip(lines, ("3", "4", "1", ""), strict=True)]
    masked[1]["pred_text"] = "jumps over the lazy"
    (run / "en-tiny_masked_sev1.jsonl").write_text("".join(json.dumps(each) + "\n" for each in masked))
    about = json.loads((run / "run.json").read_text())
    entry = {**about["configs"]["en-tiny_clean"], "scenario": "masked", "category": "masked", "severity": 1}
    about["configs"]["en-tiny_masked_sev1"] = {**entry, "source": "en-tiny_clean"}
    (run / "run.json").write_text(json.dumps(about))
    assert main(["table", "--masked", str(run)]) == 0
    row = next(text for text in capsys.readouterr().out.splitlines() if "masked_sev1" in text).split()
    assert row[:3] == ["en-tiny_masked_sev1", "3", "33.3"]  # fox, but neither dog nor runs
    assert "66.7" in row  # fox and dog where they can be heard
    assert main(["report", str(run), "--out", str(tmp_path / "page.html")]) == 0
    assert "Masked words" in (tmp_path / "page.html").read_text()
    other = write_run(tmp_path / "n", "n", {"clean": ["", "", "", ""]})
    assert main(["table", "--masked", str(other)]) == 2
    assert main(["report", str(other), "--out", str(tmp_path / "page.html")]) == 0
    assert "Masked words" not in (tmp_path / "page.html").read_text()
    assert "run it on 'en_masked_*'" in capsys.readouterr().err


@pytest.mark.parametrize(("value", "fine"), [("", True), ("3 14", True), ("3,14", False), ("3 ", False), ([3], False)])
def test_a_submission_can_only_hold_places(value, fine):
    row = {"id": "x", "audio_filepath": "x", "duration": 1.0, "time": 0.5, "text": "a b", "pred_text": "a b"}
    with nullcontext() if fine else pytest.raises(ValueError, match="masked"):
        convert({**row, "masked": value}, SubmittedPrediction)


def test_no_number_is_cut_at_80_columns(monkeypatch, capsys):
    from speech_robust_bench.cli.rendering import print_measure
    from speech_robust_bench.reporting import MeasureTable

    monkeypatch.setenv("COLUMNS", "80")
    cells = ["en-demo_masked_noise_sev1", "128", "100.0", "10.0 to 100.0", "99.0", "98.0", "140.0"]
    print_measure(MeasureTable("m", MASKED.table.heads, [cells]))
    row = next(text for text in capsys.readouterr().out.splitlines() if "128" in text).split()
    assert row[1:] == ["128", "100.0", "10.0", "to", "100.0", "99.0", "98.0", "140.0"]
