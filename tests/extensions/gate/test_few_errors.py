"""The rise from a baseline with hardly any errors: its interval has no upper end, and agrees with the verdict."""

import math

import numpy as np
import pytest
from scipy.stats import norm

from speech_robust_bench.extensions.gate.result import span
from speech_robust_bench.extensions.gate.units import ratio, score

BOUND = float(norm.isf(0.05))
UNITS = 40
OLD = np.array([1.0, *[0.0] * (UNITS - 1)])


def ruled_out(old, new, at):
    return abs(score(old, new, at)) > BOUND


@pytest.mark.parametrize("errors", [3, 8])
def test_what_the_test_rules_out_is_below_the_interval(errors):
    new = np.arange(UNITS) % 3 + errors
    found = ratio(OLD, new, BOUND)
    assert math.isinf(found.high)
    assert 1 < found.low < found.value
    assert ruled_out(OLD, new, 0.99 * found.low)
    assert not ruled_out(OLD, new, 1.01 * found.low)


def test_nothing_is_said_where_both_have_hardly_errors():
    found = ratio(OLD, np.roll(OLD, 5), BOUND)
    assert (found.low, found.high) == (0.0, math.inf)


def test_a_baseline_without_errors_has_no_finite_rise():
    found = ratio(np.zeros(UNITS), np.arange(UNITS) % 3 + 3.0, BOUND)
    assert found.low == found.high == math.inf
    assert span(found.low, found.high) == "unbounded"
    assert span(2.5, math.inf) == "+250.0 % to unbounded"
