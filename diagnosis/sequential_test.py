"""A one-sided test on paired counts that may look at its data several times and stop at the first clear answer.

Looking again and again with an ordinary test raises false alarms whenever chance will have it. A group-sequential test
spends its error level over the looks: Lan and DeMets, "Discrete sequential boundaries for clinical trials", Biometrika
1983; here by the power family alpha * t^rho of Kim and DeMets (Biometrika 1987), t being the share of clips so far.
The boundaries come from the recursion of Armitage, McPherson and Rowe (JRSS A 1969). Statistics of few clips are
Student's t, taken to the normal scale by their p-value; the intervals are repeated confidence intervals (Jennison and
Turnbull, JRSS B 1989) of a ratio of means by Fieller's theorem, so they hold at every look together.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

RHO = 2  # 1 spends evenly, as Pocock's bounds do; 3 keeps nearly all for the end, as O'Brien and Fleming's
GRID = 801  # points of the recursion's integral; 201 give the same three decimals
FARTHEST = 8.0  # standard deviations that the integral reaches down to


@dataclass(frozen=True)
class Ratio:
    """How many times as many errors the second of two recognisers makes, with the bounds that hold at this look."""

    value: float
    low: float
    high: float


def spending(times: Sequence[float], alpha: float, rho: float = RHO) -> tuple[float, ...]:
    """The error level spent up to each look, a share of the whole in (0, 1].

    >>> spending([0.5, 1.0], 0.05)
    (0.0125, 0.05)
    """
    return tuple(alpha * time**rho for time in times)


@lru_cache(maxsize=64)
def boundaries(times: tuple[float, ...], spent: tuple[float, ...]) -> tuple[float, ...]:
    """The normal score that the statistic must pass at each look, given what is spent up to it.

    Without a look before, it is the normal quantile:

    >>> [round(bound, 3) for bound in boundaries((1.0,), (0.05,))]
    [1.645]
    """
    from scipy.optimize import brentq
    from scipy.stats import norm

    bounds = [float(norm.isf(spent[0]))]
    points = _grid(times[0], bounds[0])
    density = norm.pdf(points / math.sqrt(times[0])) / math.sqrt(times[0])
    for earlier, time, increment in zip(times, times[1:], np.diff(spent), strict=False):
        sd = math.sqrt(time - earlier)

        def excess(bound: float, sd: float = sd, increment: float = increment) -> float:
            return float(np.trapezoid(density * norm.sf((bound - points) / sd), points)) - increment  # noqa: B023

        score = float(brentq(excess, -FARTHEST * math.sqrt(time), 2 * FARTHEST * math.sqrt(time)))
        bounds.append(score / math.sqrt(time))
        following = _grid(time, bounds[-1])
        steps = norm.pdf((following[:, None] - points) / sd) / sd
        points, density = following, np.trapezoid(density * steps, points, axis=1)
    return tuple(bounds)


def _grid(time: float, bound: float) -> np.ndarray:
    """The scores at which a test that has not stopped may stand."""
    return np.linspace(-FARTHEST * math.sqrt(time), bound * math.sqrt(time), GRID)


def score(old: np.ndarray, new: np.ndarray, ratio: float = 1.0) -> float:
    """The normal score of "new is more than ratio times old": counts of independent units, in pairs.

    Where every unit has the same difference there is no variance to judge it by, and the score is 0.
    """
    from scipy.stats import norm, t

    differences = new - ratio * old
    error = differences.std(ddof=1) / math.sqrt(len(differences))
    if not error:
        return 0.0
    statistic = float(differences.mean() / error)
    tail = float(norm.isf(t.sf(abs(statistic), len(differences) - 1)))
    return math.copysign(tail, statistic)


def ratio(old: np.ndarray, new: np.ndarray, bound: float) -> Ratio:
    """The ratio of the means, and the ratios that a score within `bound` does not rule out (Fieller's theorem)."""
    from scipy.stats import norm, t

    units = len(old)
    means = float(old.mean()), float(new.mean())
    value = means[1] / means[0] if means[0] else (math.inf if means[1] else 1.0)
    quantile = float(t.isf(norm.sf(bound), units - 1))
    (old_var, both), (_, new_var) = np.cov(old, new) * quantile**2 / units
    # (new - r old)^2 <= variance of (new - r old), a quadratic in r
    a, b, c = means[0] ** 2 - old_var, means[0] * means[1] - both, means[1] ** 2 - new_var
    if a <= 0:  # too few errors to say that the first makes any
        return Ratio(value, 0.0, math.inf)
    root = math.sqrt(max(b**2 - a * c, 0.0))
    return Ratio(value, max((b - root) / a, 0.0), (b + root) / a)


def units_needed(old: np.ndarray, new: np.ndarray, rise: float, alpha: float, beta: float) -> int | None:
    """How many units like these find a rise of the mean with power 1 - beta, in one look; None without any errors."""
    from scipy.stats import norm

    least = rise * float(old.mean())
    sd = float((new - old).std(ddof=1))
    if not least or not sd:
        return None
    return math.ceil(((norm.isf(alpha) + norm.isf(beta)) * sd / least) ** 2)
