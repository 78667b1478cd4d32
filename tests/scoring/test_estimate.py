"""Intervals and tests of few units: values worked out by hand, and what they must refuse."""

import itertools

import numpy as np
import pytest

from speech_robust_bench.core.errors import UserError
from speech_robust_bench.scoring.bootstrap import Units
from speech_robust_bench.scoring.estimate import mean, ratio, sign_flip

IDS = [f"c{i}" for i in range(10)]
ERRORS = np.array([1, 2, 0, 4, 1, 3, 2, 5, 0, 2])
WORDS = np.array([10, 12, 8, 20, 9, 15, 11, 18, 7, 10])


def test_speakers_are_drawn_where_nearly_all_clips_name_one():
    named = [str(i // 20) for i in range(100)]
    assert str(Units.of(range(100), named)) == "5 speakers"
    assert str(Units.of(range(100), [None] * 5 + named[5:])) == "10 speakers"  # a clip without one stands for itself
    assert str(Units.of(range(100), [None] * 6 + named[6:])) == "100 clips"
    assert str(Units.of(range(100), named, "clips")) == "100 clips"
    assert str(Units.of(range(100))) == "100 clips"
    with pytest.raises(UserError, match="'words' cannot be resampled; choose one of auto, speakers, clips"):
        Units.of(range(100), named, "words")


def test_the_standard_error_is_the_jackknifes():
    """Leave each clip out, and take the spread of what remains (Quenouille and Tukey)."""
    rate = ratio(Units.of(IDS), ERRORS, WORDS)
    total = 100 * ERRORS.sum() / WORDS.sum()
    without = np.array([100 * np.delete(ERRORS, i).sum() / np.delete(WORDS, i).sum() for i in range(10)])
    assert rate.value == pytest.approx(total)
    assert rate.error == pytest.approx(np.sqrt(9 / 10 * ((without - total) ** 2).sum()))
    low, high = rate.interval()
    assert low <= total - 2.2621 * rate.error  # Student's t with nine degrees of freedom, from any table
    assert high >= total + 2.2621 * rate.error


def test_the_interval_of_an_error_rate_stops_at_zero():
    """A rate, its multiple and a mean of rates cannot be negative; a difference can, and so can a delay."""
    few = np.array([0, 0, 0, 0, 0, 0, 0, 0, 1, 3])
    rate, other = ratio(Units.of(IDS), few, WORDS), ratio(Units.of(IDS), few[::-1], WORDS)
    assert rate.interval()[0] == (rate * 2).interval()[0] == mean([rate, other]).interval()[0] == 0
    assert (rate - other).interval()[0] < 0
    assert rate.signed().interval()[0] < 0


def test_the_replicates_are_the_rates_of_the_drawn_clips():
    units = Units.of(IDS, ["a", "a", "b", "b", "c", "c", "d", "d", "e", "e"])
    draws = units.weights(50, 3)[:, units.place]
    drawn = ratio(units, ERRORS, WORDS, replicates=50, seed=3).drawn
    assert drawn == pytest.approx(100 * (draws @ ERRORS) / (draws @ WORDS))


def test_the_sign_flip_test_is_fishers():
    """Every way to swap the names of the two recognisers, counted out."""
    sums = np.array([0.4, -0.1, 0.7, 0.3, 0.2, -0.05])
    ways = [abs(np.dot(signs, sums)) for signs in itertools.product((1, -1), repeat=6)]
    assert sign_flip(sums) == pytest.approx(np.mean(np.array(ways) >= abs(sums.sum()) - 1e-12))


@pytest.mark.parametrize("pairs", [1, 2, 3, 4, 8, 12])
def test_few_pairs_cannot_give_a_small_p_value(pairs):
    assert sign_flip(np.arange(1.0, pairs + 1)) == 2.0 ** (1 - pairs)


def test_sampled_sign_flips_are_close_to_the_normal():
    sums = np.random.default_rng(0).normal(0.2, 1, 200)
    from scipy.stats import norm

    assert sign_flip(sums, 20_000) == pytest.approx(2 * norm.sf(abs(sums.sum()) / np.sqrt((sums**2).sum())), abs=0.01)


@pytest.mark.parametrize("clips", [1, 2, 4])
def test_too_few_units_have_no_interval(clips):
    assert ratio(Units.of(IDS[:clips]), ERRORS[:clips], WORDS[:clips]).interval() is None
    assert ratio(Units.of(IDS, ["ann"] * 10), ERRORS, WORDS).interval() is None  # other speakers are unknown


def test_clips_that_are_all_alike_have_no_interval():
    assert ratio(Units.of(IDS), np.zeros(10), WORDS).interval() is None


def coverage(units, runs=400, **how):
    """How often the interval of WER has the truth, 12 %; clips of very unequal length and difficulty."""
    rng = np.random.default_rng(5)
    inside = 0
    for _ in range(runs):
        speakers = [str(i % units) for i in range(100)] if how else None
        effects = rng.gamma(4, 0.25, units)[np.arange(100) % units] if how else 1.0
        clips = 100 if how else units
        words = np.clip(rng.lognormal(2.8, 0.6, clips).round(), 2, 60)
        errors = rng.poisson(words * 0.12 * effects * rng.gamma(1, 1, clips))
        found = Units.of([str(i) for i in range(clips)], speakers, how.get("resample", "auto"))
        low, high = ratio(found, errors, words, replicates=300).interval() or (0, 0)
        inside += low <= 12 <= high
    return inside / runs


def test_intervals_cover_the_truth_with_ten_units():
    """Percentile intervals over clips: 86 % with ten clips, and 66 % where speakers differ."""
    assert coverage(10) > 0.92
    assert coverage(10, resample="auto") > 0.92
    assert coverage(10, resample="clips") < 0.88
