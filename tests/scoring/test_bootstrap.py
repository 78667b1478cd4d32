"""The bootstrap: reproducible, paired, right in width; Holm's correction."""

import numpy as np
import pytest

from speech_robust_bench.core.errors import UserError
from speech_robust_bench.scoring.bootstrap import holm, interval, p_value, rates, weights
from speech_robust_bench.scoring.scoring import Counts


def counts(errors, length=10):
    errors = np.asarray(errors)
    zero = np.zeros_like(errors)
    return Counts(length - errors, errors, zero, zero)


def test_weights_are_a_function_of_ids_and_seed():
    ids = [f"c{i}" for i in range(30)]
    one = weights(ids, replicates=50, seed=1)
    assert (one == weights(ids, replicates=50, seed=1)).all()
    assert (one != weights(ids, replicates=50, seed=2)).any()
    assert (one != weights([*ids[:-1], "other"], replicates=50, seed=1)).any()
    assert (one.sum(axis=1) == 30).all()
    assert one[:20].tolist() == weights(ids, replicates=20, seed=1).tolist()  # more replicates only add to them


def test_speakers_are_drawn_whole():
    draws = weights(list("abcdef"), ["x", "x", "x", "y", None, None], replicates=200)
    assert (draws[:, 0] == draws[:, 1]).all()
    assert (draws[:, 0] == draws[:, 2]).all()
    assert (draws[:, 4] != draws[:, 5]).any()


def test_spread_is_the_standard_error():
    """For utterances of one length WER is a mean, whose standard error is known."""
    rng = np.random.default_rng(0)
    errors = rng.binomial(10, 0.2, size=400)
    values = rates(weights([str(i) for i in range(400)], replicates=4000), [counts(errors)])[:, 0]
    assert values.std() == pytest.approx(10 * errors.std() / np.sqrt(400), rel=0.06)
    assert values.mean() == pytest.approx(errors.mean() * 10, abs=0.1)


def test_clusters_make_the_interval_wider():
    errors = np.repeat([0, 4], 50)
    ids = [str(i) for i in range(100)]
    by_clip = interval(rates(weights(ids), [counts(errors)])[:, 0])
    by_speaker = interval(rates(weights(ids, [str(i // 10) for i in range(100)]), [counts(errors)])[:, 0])
    assert by_speaker[1] - by_speaker[0] > 2 * (by_clip[1] - by_clip[0])


def test_interval_covers_the_truth():
    rng = np.random.default_rng(1)
    ids = [str(i) for i in range(60)]
    draws = weights(ids, replicates=400)
    covered = 0
    for _ in range(400):
        low, high = interval(rates(draws, [counts(rng.binomial(10, 0.3, size=60))])[:, 0])
        covered += low <= 30 <= high
    assert 0.90 < covered / 400 < 0.98


def test_p_value():
    assert p_value(np.full(999, -1.0)) == pytest.approx(2 / 1000)
    assert p_value(np.zeros(100)) == 1.0
    assert p_value(np.array([-1.0] * 10 + [1.0] * 989)) == pytest.approx(0.022)


def test_holm_as_in_r():
    """p.adjust(c(0.01, 0.02, 0.03, 0.04, 0.05), "holm") is 0.05 0.08 0.09 0.09 0.09."""
    assert holm([0.01, 0.02, 0.03, 0.04, 0.05]) == pytest.approx([0.05, 0.08, 0.09, 0.09, 0.09])
    assert holm([0.9, 0.001]) == pytest.approx([0.9, 0.002])
    assert holm([]) == []


def test_bad_input():
    with pytest.raises(UserError, match="2 clips but 1 speakers"):
        weights(["a", "b"], ["x"])
    with pytest.raises(UserError, match="at least 1 replicate"):
        weights(["a"], replicates=0)
