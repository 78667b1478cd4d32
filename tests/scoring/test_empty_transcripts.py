"""What happens where nothing was said, or nothing was recognised; and above 100 %."""

import jiwer
import pytest

from speech_robust_bench.scoring.degradation import WerdOptions, score
from speech_robust_bench.scoring.scoring import align


@pytest.mark.parametrize(
    ("references", "predictions", "wer"),
    [
        (["a b"], [""], 100.0),  # all deleted
        ([""], ["a b"], 200.0),  # no word to divide by: the denominator is one
        ([""], [""], 0.0),
        (["", ""], ["a", ""], 100.0),
        (["", "a b"], ["x", "a b"], 50.0),  # the insertion counts, the empty reference adds no length
        (["a"], ["a b c d"], 300.0),  # never clipped
        (["..."], ["a"], 100.0),  # empty once it is normalised
    ],
)
def test_defined_as_in_jiwer(references, predictions, wer):
    counts = align(references, predictions)
    assert counts.rate == wer
    clean = [text.replace("...", "") for text in references]
    assert counts.rate == pytest.approx(100 * jiwer.wer(clean, predictions))


def test_no_utterance_at_all_is_no_error():
    counts = align([], [])
    assert len(counts) == 0
    assert counts.rate == 0.0
    assert score([], [], [], options=WerdOptions(replicates=10))["werd"] == 0.0


def test_per_utterance_rates():
    assert align(["", "a b", ""], ["x y", "a", ""]).rates.tolist() == [200.0, 50.0, 0.0]


def test_empty_predictions_in_both_conditions_cost_nothing():
    assert score(["a b"], [""], [""])["werd"] == 0.0
