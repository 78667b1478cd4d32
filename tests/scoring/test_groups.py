"""Groups of speakers: rates, gap, ratio, population weights, intersections; LWERR; attack success."""

import math

import numpy as np
import pytest

from speech_robust_bench.core.errors import UserError
from speech_robust_bench.scoring.groups import disparity, log2_ratio, split, with_intersections
from speech_robust_bench.scoring.scoring import Counts


def counts(errors, lengths):
    errors, zero = np.array(errors), np.zeros(len(errors), dtype=np.int64)
    return Counts(np.array(lengths) - errors, errors, zero, zero)


@pytest.mark.parametrize(("wers", "gap"), [((65, 139, 193), 12.8), ((89, 114, 124), 3.5)])
def test_figure_1_of_aksenova(wers, gap):
    """Groups of 60, 30 and 10 % of the population; both systems have a weighted WER of 10 %."""
    result = disparity(counts(wers, [1000] * 3), ["A", "B", "C"], weights={"A": 60, "B": 30, "C": 10})
    assert result["weighted_wer"] == pytest.approx(10, abs=0.05)
    assert result["gap"] == pytest.approx(gap)
    assert (result["best"], result["worst"]) == ("A", "C")
    assert result["log2_ratio"] == pytest.approx(math.log2(wers[2] / wers[0]))


def test_groups_are_pooled_over_words():
    result = disparity(counts([1, 0, 3], [2, 8, 3]), ["a", "a", None])
    assert result["groups"] == {"a": {"wer": 10.0, "utterances": 2, "reference_length": 10}}
    assert result["unlabelled"] == 1
    assert result["gap"] == 0.0


def test_small_groups_are_listed_but_not_compared():
    result = disparity(counts([0, 0, 2, 2], [2, 2, 2, 2]), ["a", "a", "b", "c"], minimum=2)
    assert set(result["groups"]) == {"a", "b", "c"}
    assert (result["best"], result["worst"], result["gap"]) == ("a", "a", 0.0)


def test_nobody_is_labelled():
    result = disparity(counts([1], [2]), [None])
    assert (result["groups"], result["best"]) == ({}, None)
    assert math.isnan(result["gap"])


def test_intersections():
    columns = with_intersections({"g": ["f", "m", "f"], "a": ["x", "x", None]}, [["g", "a"]])
    assert columns["g & a"] == ["f & x", "m & x", None]
    with pytest.raises(UserError, match="no column 'age' to intersect; there are g"):
        with_intersections({"g": ["f"]}, [["g", "age"]])


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ({"a": 1.0}, "'b' is only in the data"),
        ({"a": 1.0, "b": 1.0, "c": 1.0}, "'c' is only in the weights"),
        ({"a": -1.0, "b": 2.0}, "none negative"),
        ({"a": 0.0, "b": 0.0}, "not all zero"),
    ],
)
def test_weights_must_fit(weights, message):
    with pytest.raises(UserError, match=message):
        disparity(counts([1, 1], [2, 2]), ["a", "b"], weights=weights)


def test_labels_must_pair():
    with pytest.raises(UserError, match="2 utterances but 1 group labels"):
        split(counts([1, 1], [2, 2]), ["a"])


def test_ratio_at_the_edges():
    assert log2_ratio(30.0, 15.0) == 1.0
    assert log2_ratio(15.0, 30.0) == -1.0
    assert log2_ratio(0.0, 0.0) == 0.0
    assert log2_ratio(1.0, 0.0) == math.inf
    assert log2_ratio(0.0, 1.0) == -math.inf
    assert math.isnan(log2_ratio(math.nan, 1.0))
