"""The sequential test: its bounds against published ones, its error level by simulation, its parts against scipy."""

import math

import numpy as np
import pytest
from scipy import stats

from speech_robust_bench.extensions.gate.units import boundaries, ratio, score, spending, units_needed

FIFTHS = (0.2, 0.4, 0.6, 0.8, 1.0)


def test_boundaries_are_gsdesigns_for_obrien_and_fleming():
    """R's gsDesign, sfLDOF with alpha 0.025 and five looks."""
    spent = tuple(2 * stats.norm.sf(stats.norm.isf(0.0125) / math.sqrt(time)) for time in FIFTHS)
    assert boundaries(FIFTHS, spent) == pytest.approx([4.877, 3.357, 2.680, 2.290, 2.031], abs=6e-4)


def test_boundaries_are_gsdesigns_for_pocock():
    """R's gsDesign, sfLDPocock with alpha 0.025 and five looks."""
    spent = tuple(0.025 * math.log(1 + (math.e - 1) * time) for time in FIFTHS)
    assert boundaries(FIFTHS, spent) == pytest.approx([2.438, 2.427, 2.410, 2.397, 2.386], abs=6e-4)


def test_many_looks_together_have_the_level_of_one():
    times = (0.1, 0.2, 0.35, 0.5, 0.75, 1.0)
    bounds = boundaries(times, spending(times, 0.05))
    steps = np.random.default_rng(1).normal(size=(200_000, 6)) * np.sqrt(np.diff([0, *times]))
    scores = steps.cumsum(axis=1) / np.sqrt(times)
    assert (scores > bounds).any(axis=1).mean() == pytest.approx(0.05, abs=0.002)
    assert (scores > stats.norm.isf(0.05)).any(axis=1).mean() > 0.12  # looking as often with an ordinary test


def test_the_score_is_that_of_a_paired_t_test():
    rng = np.random.default_rng(2)
    old, new = rng.poisson(2, 25).astype(float), rng.poisson(3, 25).astype(float)
    expected = stats.ttest_rel(new, 1.1 * old, alternative="greater").pvalue
    assert stats.norm.sf(score(old, new, 1.1)) == pytest.approx(expected, rel=1e-9)
    assert score(new, old) < 0 < score(old, new)


def test_equal_counts_say_nothing():
    counts = np.array([1.0, 2.0, 5.0])
    assert score(counts, counts) == 0
    assert ratio(counts, counts, 1.645).value == 1


@pytest.mark.parametrize("bound", [1.645, 3.3])
def test_the_interval_inverts_the_score(bound):
    rng = np.random.default_rng(3)
    old, new = rng.poisson(3, 60).astype(float), rng.poisson(4, 60).astype(float)
    found = ratio(old, new, bound)
    assert found.value == pytest.approx(new.mean() / old.mean())
    assert score(old, new, found.low) == pytest.approx(bound, rel=1e-6)
    assert score(old, new, found.high) == pytest.approx(-bound, rel=1e-6)


def test_without_errors_to_compare_with_no_ratio_is_ruled_out():
    nothing, one = np.zeros(10), np.eye(10)[0]
    assert ratio(nothing, one, 1.645).value == math.inf
    assert ratio(nothing, nothing, 1.645).value == 1
    assert ratio(one, one, 1.645).high == math.inf


def test_the_clips_needed_are_those_of_the_textbook():
    """n = ((z_alpha + z_beta) sd / difference)^2, with an sd of 1 and a difference of a tenth of 2: 270.6."""
    old = np.full(4, 2.0)
    new = old + np.array([1, -1, 1, -1]) * math.sqrt(3) / 2  # sd 1
    assert units_needed(old, new, 0.1, 0.05, 0.05) == 271
    assert units_needed(old, old, 0.1, 0.05, 0.05) is None
