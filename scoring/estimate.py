"""A score with what every unit contributes to it, and the intervals and tests that follow: they hold for ten units.

A unit is a speaker, or a clip where speakers are not known (`bootstrap.Units`). WER is a ratio of sums, so a unit with
errors e of n words has the residual (e - WER n) / N; a mean of scores has the means of the residuals. All that is said
of a score follows from them:

- Interval: on each side the wider of two. Student's t with the jackknife's standard error ("CR3", MacKinnon, Nielsen
  and Webb, "Cluster-robust inference: A guide to empirical practice", 2023), and the bootstrap-t (Hall, "Theoretical
  comparison of bootstrap confidence intervals", 1988), whose quantiles are bounded by twice Student's. Percentile
  intervals are too short for few units, and Student's t for skewed errors.
- Test of a difference of two recognisers: signs flipped unit by unit (Fisher's randomisation test). Under "no
  difference" the names of the two can be exchanged for any unit, and on the same clips the difference is a sum over
  units, so the p-value is exact. Of four units no p-value is below 0.125.

benchmarks/interval_coverage.py simulates what both are worth. Below `FEWEST_UNITS` there is no interval, and none where
no unit differs from another: nothing is known then of what other units would give.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce

import numpy as np

from speech_robust_bench.scoring.bootstrap import Units

INTERVALS = "srb-interval-2"  # 1 was the percentile bootstrap over clips
FEWEST_UNITS = 5
EXACT_UNITS = 12  # up to this many, all 2^n signs are tried
MANY_UNITS = 500  # from here on Student's t alone: the bootstrap-t differs in the third digit
TWICE = 2.0  # times Student's quantile: where the bootstrap-t ends


@dataclass(frozen=True, eq=False)
class Part:
    """What the units of one set of clips contribute to a score.

    `sums` add up to the score (of several parts: to its part), `residuals` to zero, and `shares` of the words to one.
    """

    units: Units
    sums: np.ndarray
    residuals: np.ndarray
    shares: np.ndarray
    clips: np.ndarray  # of the set, whether it is in the score

    @cached_property
    def active(self) -> int:
        """How many units are in the score."""
        return int(np.count_nonzero(self.shares))

    @cached_property
    def variance(self) -> float:
        """The jackknife's: what the score would be without each unit."""
        without = self.residuals / np.maximum(1 - self.shares, 1e-12)
        return (self.active - 1) / self.active * float(without @ without)

    def scaled(self, factor: float) -> Part:
        return Part(self.units, factor * self.sums, factor * self.residuals, self.shares, self.clips)


@dataclass(frozen=True, eq=False)
class Resampled:
    """What an interval or a test rests on, for people: `40 speakers, 2620 clips`."""

    unit: str
    units: int
    clips: int

    def __str__(self) -> str:
        return f"{self.units} clips" if self.unit == "clips" else f"{self.units} {self.unit}, {self.clips} clips"


@dataclass(frozen=True, eq=False)
class Estimate:
    """A score and its parts. Estimates add, subtract and average; parts of the same units are paired."""

    value: float
    parts: Mapping[str, Part]
    replicates: int = 1000
    seed: int = 0
    lowest: float = -math.inf  # what the score cannot be below: an error rate is at least 0

    @cached_property
    def resampled(self) -> Resampled:
        parts = list(self.parts.values())
        kinds = sorted({part.units.kind for part in parts}, reverse=True)
        return Resampled(
            " and ".join(kinds), sum(part.active for part in parts), sum(int(part.clips.sum()) for part in parts)
        )

    @property
    def enough(self) -> bool:
        """Whether there are units enough to say how sure the score is."""
        return bool(self.parts) and all(part.active >= FEWEST_UNITS for part in self.parts.values())

    @cached_property
    def error(self) -> float:
        """The standard error."""
        return math.sqrt(sum(part.variance for part in self.parts.values()))

    @cached_property
    def freedom(self) -> float:
        """Degrees of freedom; of several parts as Satterthwaite has them."""
        parts = self.parts.values()
        return self.error**4 / sum(part.variance**2 / (part.active - 1) for part in parts)

    def interval(self, level: float = 0.95) -> tuple[float, float] | None:
        """Low and high; None where too few units, or none that differs from another, leave it open."""
        if not self.replicates or not self.enough or self.error <= 1e-12 * max(1.0, abs(self.value)):
            return None
        student = student_quantile((1 + level) / 2, self.freedom)
        low, high = -student, student
        if self.resampled.units < MANY_UNITS:
            bounds = np.quantile(
                np.clip(self._studentised, -TWICE * student, TWICE * student), [(1 - level) / 2, (1 + level) / 2]
            )
            low, high = min(low, float(bounds[0])), max(high, float(bounds[1]))
        return max(self.lowest, self.value - high * self.error), self.value - low * self.error

    @cached_property
    def _studentised(self) -> np.ndarray:
        """How many of its own standard errors each replicate is away from the score."""
        moved = [_deviations([part], self.replicates, self.seed)[0] for part in self.parts.values()]
        away, variance = (np.sum(column, axis=0) for column in zip(*moved, strict=True))
        return _studentise(away, variance, self.error)

    @cached_property
    def drawn(self) -> np.ndarray:
        """The score in every replicate."""
        return draw_together([self])[0]

    def signed(self) -> Estimate:
        """The same score of something that can be negative, such as a delay or a level in dB."""
        return replace(self, lowest=-math.inf)

    def __sub__(self, other: Estimate) -> Estimate:
        return combine([(1.0, self), (-1.0, other)])

    def __mul__(self, factor: float) -> Estimate:
        return Scaled(
            factor * self.value,
            {key: part.scaled(factor) for key, part in self.parts.items()},
            self.replicates,
            self.seed,
            factor * self.lowest if factor > 0 else -math.inf,
            unscaled=self if factor > 0 else None,
        )

    @property
    def p(self) -> float:
        """Two-sided p-value of "no difference", for a difference of two recognisers on the same clips."""
        return sign_flip(
            np.concatenate([part.sums for part in self.parts.values()]) if self.parts else np.zeros(0),
            max(self.replicates, 999),
            [self.seed, *(int(key[:8], 16) for key in sorted(self.parts))],
        )


@dataclass(frozen=True, eq=False)
class Scaled(Estimate):
    """A multiple of an estimate, which has the same studentised replicates."""

    unscaled: Estimate | None = None

    @cached_property
    def _studentised(self) -> np.ndarray:  # type: ignore[override]
        return self.unscaled._studentised if self.unscaled else super()._studentised


def ratio(
    units: Units,
    errors: np.ndarray,
    lengths: np.ndarray,
    *,
    scale: float = 100.0,
    replicates: int = 1000,
    seed: int = 0,
) -> Estimate:
    """The error rate of all clips together; a clip with neither errors nor words is not in it."""
    e, n = units.sums(errors), units.sums(lengths)
    total = max(float(n.sum()), 1.0)
    value = scale * float(e.sum()) / total
    clips = (np.asarray(errors) != 0) | (np.asarray(lengths) != 0)
    part = Part(units, scale * e / total, (scale * e - value * n) / total, n / total, clips)
    return Estimate(value, {units.set_key: part}, replicates, seed, 0.0)


def draw_together(estimates: Sequence[Estimate]) -> list[np.ndarray]:
    """Each score in every replicate, with one matrix product for all that have the same units."""
    columns: dict[str, list[tuple[int, Part]]] = {}
    for place, estimate in enumerate(estimates):
        for key, part in estimate.parts.items():
            columns.setdefault(key, []).append((place, part))
    drawn = [np.full(one.replicates if one.parts else 0, one.value) for one in estimates]
    for parts in columns.values():
        first = estimates[parts[0][0]]
        if not first.replicates:
            continue
        shares = np.array([part.shares for _, part in parts])
        shares = shares[:1] if (shares == shares[0]).all() else shares
        columns_of_units = np.vstack([shares, [part.residuals for _, part in parts]]).T
        sums = parts[0][1].units.draw(columns_of_units, first.replicates, first.seed)
        sizes, moved = sums[:, : len(shares)], sums[:, len(shares) :]
        moved = moved / np.where(sizes > 0, sizes, 1)
        for (place, _), column in zip(parts, moved.T, strict=True):
            drawn[place] = drawn[place] + column
    return drawn


def _deviations(parts: Sequence[Part], replicates: int, seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Of parts of the same units: how far each replicate is from the score, and the variance it estimates by itself."""
    z, n = np.array([part.residuals for part in parts]), np.array([part.shares for part in parts])
    n = n[:1] if (n == n[0]).all() else n
    columns = (n, z, z * z, z * n, n * n)
    sums = parts[0].units.draw(np.vstack(columns).T, replicates, seed)
    size, away, zz, zn, nn = np.split(sums, np.cumsum([len(column) for column in columns])[:-1], axis=1)
    size = np.where(size > 0, size, 1)
    away = away / size
    variance = (zz - 2 * away * zn + away**2 * nn) / size**2
    factors = [part.active / max(part.active - 1, 1) for part in parts]
    return list(zip(away.T, (np.maximum(variance, 0) * factors).T, strict=True))


def _studentise(away: np.ndarray, variance: np.ndarray, error: float) -> np.ndarray:
    known = variance > (1e-9 * error) ** 2
    alone = np.where(np.abs(away) > 1e-9 * error, np.copysign(np.inf, away), 0.0)
    return np.where(known, away / np.sqrt(np.where(known, variance, 1)), alone)


def studentise_together(estimates: Sequence[Estimate]) -> None:
    """Make the studentised replicates of many estimates at once: one by one it takes several times as long."""
    alike: dict[str, list[tuple[Estimate, Part]]] = {}
    for estimate in estimates:
        (part, *others) = estimate.parts.values()
        if estimate.replicates and not others and FEWEST_UNITS <= part.active < MANY_UNITS:
            alike.setdefault(part.units.key, []).append((estimate, part))
    for found in alike.values():
        first = found[0][0]
        deviations = _deviations([part for _, part in found], first.replicates, first.seed)
        for (estimate, _), (away, variance) in zip(found, deviations, strict=True):
            estimate.__dict__["_studentised"] = _studentise(away, variance, estimate.error)  # where it is cached


def combine(terms: Sequence[tuple[float, Estimate]]) -> Estimate:
    """The sum of some estimates, each times a factor."""
    parts: dict[str, list[tuple[float, Part]]] = {}
    for factor, estimate in terms:
        for key, part in estimate.parts.items():
            parts.setdefault(key, []).append((factor, part))
    value = sum(factor * estimate.value for factor, estimate in terms)
    first = terms[0][1]
    return Estimate(value, {key: _sum(found) for key, found in parts.items()}, first.replicates, first.seed)


def _sum(parts: Sequence[tuple[float, Part]]) -> Part:
    weight = sum(abs(factor) for factor, _ in parts) or 1.0
    return Part(
        parts[0][1].units,
        sum((f * p.sums for f, p in parts), np.zeros(1)),
        sum((f * p.residuals for f, p in parts), np.zeros(1)),
        sum((abs(f) * p.shares for f, p in parts), np.zeros(1)) / weight,
        reduce(np.logical_or, (p.clips for _, p in parts)),
    )


def mean(estimates: Sequence[Estimate]) -> Estimate:
    """The unweighted mean."""
    if len(estimates) == 1:
        return estimates[0]
    together = combine([(1 / len(estimates), one) for one in estimates])
    return replace(together, lowest=min(one.lowest for one in estimates))


def sign_flip(sums: np.ndarray, replicates: int = 999, seed: int | Sequence[int] = 0) -> float:
    """The p-value of "the units' differences may as well have the other sign", exact for `EXACT_UNITS` or fewer.

    >>> sign_flip(np.array([1.0, 2.0, 1.0, 3.0])), sign_flip(np.zeros(4))
    (0.125, 1.0)
    """
    sums = sums[sums != 0]
    if not len(sums):
        return 1.0
    observed = abs(float(sums.sum())) * (1 - 1e-9)
    if len(sums) <= EXACT_UNITS:
        every = 1 - 2 * (np.arange(2 ** (len(sums) - 1))[:, None] >> np.arange(len(sums)) & 1)
        return float(np.mean(np.abs(every @ sums) >= observed))
    rng = np.random.default_rng(seed)
    signs = rng.integers(0, 2, size=(replicates, len(sums)), dtype=np.int8) * 2.0 - 1
    return float((np.count_nonzero(np.abs(signs @ sums) >= observed) + 1) / (replicates + 1))


def student_quantile(share: float, freedom: float) -> float:
    """The quantile of Student's t."""
    from scipy.special import stdtrit

    return float(stdtrit(freedom, share))
