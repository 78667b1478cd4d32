"""Does a recogniser know when it fails: ECE and AUC by hand, by definition, and through the files."""

import itertools
import json

import numpy as np
import pytest

from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.records import Prediction, SubmittedPrediction, convert
from speech_robust_bench.extensions.text_metrics.calibration import calibration, calibration_of, judged


def test_by_hand():
    """Bins at 0.9 (three words, two right) and 0.2 (two words, none right)."""
    found = calibration([(0.9, True), (0.9, True), (0.9, False), (0.2, False), (0.2, False)])
    assert found.ece == pytest.approx(100 * (3 / 5 * abs(0.9 - 2 / 3) + 2 / 5 * 0.2), abs=1e-3)
    assert found.auc == pytest.approx(100 * (2 * 2 + 2 * 0.5) / 6, abs=1e-3)  # six pairs, two of them tied
    assert (found.words, found.wrong, found.accuracy) == (5, 3, 40.0)


def test_auc_is_the_share_of_ordered_pairs():
    rng = np.random.default_rng(0)
    pairs = [(round(float(s), 1), bool(r)) for s, r in zip(rng.random(60), rng.random(60) < 0.6, strict=True)]
    right, wrong = ([s for s, r in pairs if r is kind] for kind in (True, False))
    by_pairs = np.mean([(a > b) + 0.5 * (a == b) for a, b in itertools.product(right, wrong)])
    assert calibration(pairs).auc == pytest.approx(100 * by_pairs, abs=1e-3)


def test_a_calibrated_recogniser_has_no_error():
    pairs = [(0.75, i % 4 > 0) for i in range(400)]
    assert calibration(pairs).ece == 0


@pytest.mark.parametrize(("pairs", "auc"), [([], None), ([(0.5, True)], None), ([(0.5, False)], None)])
def test_without_a_wrong_or_a_right_word_there_is_no_auc(pairs, auc):
    assert calibration(pairs).auc is auc


@pytest.mark.parametrize("bad", [-0.1, 1.1, float("nan")])
def test_a_confidence_is_between_0_and_1(bad):
    with pytest.raises(UserError, match="from 0 to 1"):
        calibration([(bad, True)])


def test_words_are_judged_by_the_alignment():
    assert judged("a b c", [("a", 0.9), ("x", 0.1), ("b", 0.8), ("d", 0.2)]) == [
        *((0.9, True), (0.1, False), (0.8, True), (0.2, False)),
    ]
    assert judged("well known", [("Well-known", 0.5)]) == [(0.5, False)]  # one word by srb-paper-1
    assert judged("a", [("...", 0.5), ("a", 0.6)]) == [(0.6, True)]
    assert calibration_of([Prediction(id="a", text="a", pred_text="a")]) is None


def test_a_line_carries_them_from_recogniser_to_parquet(tmp_path):
    from speech_robust_bench.models.interface import with_confidences
    from speech_robust_bench.models.transcriber import transcription_of
    from speech_robust_bench.push.submitted_files import lines, pack

    details = transcription_of(
        with_confidences("a b", [("a", 1.2, 0.0, 0.51234), ("b", 0.33337, None, None)]), 0.1
    ).details
    words = [["a", 1.0, 0.0, 0.512], ["b", 0.3334, None, None]]
    assert details == {"word_confidences": words}
    row = {"id": "x", "audio_filepath": "x", "duration": 1.0, "time": 0.5, "text": "a b", "pred_text": "a b"}
    assert convert({**row, "word_confidences": words}, SubmittedPrediction).word_confidences[1].confidence == 0.3334
    for bad in ({}, [["a"]], [["a", 2, 0, 1]], [[1, 0.5, 0, 1]], [["a", 0.5, 0, "x"]], [["a", True, 0, 1]]):
        with pytest.raises(ValueError, match="word_confidences"):
            convert({**row, "word_confidences": bad}, SubmittedPrediction)
    rows = [{"id": "x", "audio_filepath": "x", "duration": 1.0, "time": 0.5, "text": "a b", "pred_text": "a b"}] * 2
    rows = [{**rows[0], "word_confidences": words}, rows[1]]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (tmp_path / "en_clean.jsonl").write_text(text)
    packed = pack(tmp_path / "en_clean.jsonl")
    assert b"".join(lines(packed, 2)).decode() == text
