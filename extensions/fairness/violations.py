"""AequeVox's fairness test (Algorithm 1): does a transformation of the sound hurt one group more than another?

The degradation of a group is its error at a level less its error on clean speech, as a share (0.05 is five points of
WER). A level violates fairness for a base group B against a group k where D_B - D_k > tau. Counts are laid out as in
the paper's Table 4. Beyond the paper, every difference has an interval over speakers, or over clips where
speakers are not known, and one that reaches down to zero is within noise: other speakers may well not show it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path

import numpy as np

from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.names import parse
from speech_robust_bench.core.untrusted_files import csv_rows, read_text
from speech_robust_bench.scoring.bootstrap import CLIPS, Units
from speech_robust_bench.scoring.clip_sets import ErrorMatrix
from speech_robust_bench.scoring.estimate import Estimate, ratio

TAUS = (0.01, 0.05, 0.1, 0.15)  # the paper's
LEFT_OUT = frozenset({("aeq_scale", 4), ("aeq_scale", 5)})  # of Table 4: "the two most destructive Scale" levels (RQ1)
COMPREHENSIBLE = 7.0  # of 10: the threshold for ratings of one's own, where none is given
BLOCKS = 2000  # of clips; above that many, a bootstrap draws blocks of clips


@dataclass(frozen=True)
class GroupComparison:
    """A base group against another at one level of a transformation."""

    recogniser: str
    form: str
    config: str
    base: str
    other: str
    base_degradation: float
    other_degradation: float
    interval: tuple[float, float] | None  # of the difference; None without replicates or with too few units
    resampled: str = ""  # what the interval is over

    @property
    def difference(self) -> float:
        """How much more the base group has lost than the other one."""
        return self.base_degradation - self.other_degradation

    @property
    def transformation(self) -> str:
        """The name of the scenario that the clips are under."""
        return parse(self.config).scenario

    @property
    def within_noise(self) -> bool | None:
        """Whether the interval reaches down to no difference at all."""
        return None if self.interval is None else self.interval[0] <= 0

    def violates(self, tau: float) -> bool:
        """Whether the base group has lost more by over tau (line 15 of Algorithm 1)."""
        return self.difference > tau


@dataclass(frozen=True)
class Degradation:
    """How much worse a group is at a level than on clean speech, as a share."""

    recogniser: str
    form: str
    config: str
    group: str
    clean: float
    transformed: float
    clips: int

    @property
    def value(self) -> float:
        """By how much the error has risen: D in the paper's Algorithm 1."""
        return self.transformed - self.clean


Ratings = Mapping[tuple[str, int], float]  # scenario, severity -> how well people understood it, of 10


@cache
def comprehensibility() -> Ratings:
    """The paper's Table 10: how well 200 people understood each level, 10 being as well as the original."""
    return read_ratings(
        Path(str(resources.files("speech_robust_bench.extensions.fairness").joinpath("data/comprehensibility.csv")))
    )


def read_ratings(path: str | Path) -> Ratings:
    """Ratings by listeners: a CSV file with the columns scenario and sev1, sev2, ...; an empty cell is not rated."""
    rows = csv_rows(read_text(path), ("scenario",), path)
    severities = [column for column in (rows[0][1] if rows else {}) if re.fullmatch(r"sev[1-9]", column)]
    if not severities:
        raise UserError(f"{path}: its columns are scenario, sev1, sev2, ... with a rating of 1 to 10 in each")
    ratings = {}
    for line, row in rows:
        for column in severities:
            if not (text := row[column].strip()):
                continue
            try:
                rating = float(text)
            except ValueError:
                rating = math.nan
            if not 1 <= rating <= 10:
                raise UserError(f"{path}, line {line}: '{text}' is not a rating from 1 to 10")
            ratings[row["scenario"], int(column[3:])] = rating
    return ratings


def comprehensible(config: str, threshold: float | None = None, ratings: Ratings | None = None) -> bool:
    """Whether a level is tested: without a threshold the levels of the paper's Table 4, else those rated at least this.

    Levels that were never rated are kept. Your own ratings have a threshold in any case.

    >>> comprehensible("en_aeq_scale_sev5"), comprehensible("en_aeq_noise_sev5"), comprehensible("en_aeq_noise_sev5", 7)
    (False, True, False)
    """
    name = parse(config)
    level = (name.scenario, name.severity)
    if threshold is None and ratings is None:
        return level not in LEFT_OUT
    return (ratings or comprehensibility()).get(level, math.inf) >= (COMPREHENSIBLE if threshold is None else threshold)


def rated(config: str, ratings: Ratings | None = None) -> bool:
    """Whether people rated a level."""
    name = parse(config)
    return (name.scenario, name.severity) in (ratings or comprehensibility())


def group_clips(
    labels: Sequence[str | None], what: str, base: str | None = None, minimum: int = 1
) -> dict[str, np.ndarray]:
    """The clips of each group that has enough of them; one clear line if there is nothing to compare."""
    named = np.array([label or "" for label in labels], dtype=object)
    sizes = {str(group): int((named == group).sum()) for group in sorted(set(named) - {""})}
    if not sizes:
        raise UserError(
            f"no clip says its {what}; choose another column, or guess groups from the voices with "
            "--groups pitch --data DIR"
        )
    if base is not None and base not in sizes:
        raise UserError(f"the group '{base}' has no clips; {what} has {_listed(sizes)}")
    large = [group for group, size in sizes.items() if size >= minimum]
    if base is not None and base not in large:
        raise UserError(f"the group '{base}' has {sizes[base]} clips, fewer than --minimum {minimum}")
    if len(large) < 2:
        few = f" with at least {minimum} clips" if minimum > 1 and len(sizes) > 1 else ""
        raise UserError(f"{what} has one group only{few} ({_listed(sizes)}); a comparison needs two")
    return {group: np.flatnonzero(named == group) for group in large}


def _listed(sizes: Mapping[str, int]) -> str:
    return ", ".join(f"{group}: {size}" for group, size in sizes.items())


def compare_groups(
    measured: ErrorMatrix,
    groups: Mapping[str, np.ndarray],
    *,
    base: str | None = None,
    resample: str = "auto",
    replicates: int = 1000,
    level: float = 0.95,
    seed: int = 0,
) -> tuple[list[Degradation], list[GroupComparison]]:
    """Algorithm 1 for every level, with each group as the base group unless one is named."""
    values, lost = {}, {}
    levels = range(len(measured.clips.levels))
    for group, clips in groups.items():
        errors, lengths = measured.errors[:, clips], measured.lengths[:, clips]
        values[group] = _rates(errors.sum(axis=1), lengths.sum(axis=1))
        units = _units(measured, clips, resample, seed)
        lost[group] = [_degradation(measured, clips, units, place, replicates, seed) for place in levels]
    how = measured.name, measured.form
    degradations = [
        Degradation(*how, config, group, rates[0], rates[place + 1], len(groups[group]))
        for place, config in enumerate(measured.clips.levels)
        for group, rates in values.items()
    ]
    comparisons = [
        GroupComparison(
            *how,
            config,
            one,
            other,
            float(values[one][place + 1] - values[one][0]),
            float(values[other][place + 1] - values[other][0]),
            difference.interval(level),
            str(difference.resampled),
        )
        for place, config in enumerate(measured.clips.levels)
        for one in ([base] if base else groups)
        for other in groups
        if other != one
        for difference in [lost[one][place] - lost[other][place]]
    ]
    return degradations, comparisons


def _rates(errors: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    return errors / np.maximum(lengths, 1)


def _units(measured: ErrorMatrix, clips: np.ndarray, resample: str, seed: int) -> Units:
    """What a replicate draws as one, for each clip of a group: its speaker, the clip, or one of `BLOCKS` blocks.

    Of very many clips, random ones are put together to blocks: the interval stays the same up to its own sampling
    error, and the work no longer grows with the clips.
    """
    set_ = measured.clips
    units = Units.of([set_.ids[i] for i in clips], [set_.speakers[i] for i in clips], resample)
    if units.kind == CLIPS and len(clips) > BLOCKS:
        order = np.random.default_rng([seed, len(clips)]).permutation(len(clips))
        return Units.of([f"block {place % BLOCKS}" for place in order], None, CLIPS)
    return units


def _degradation(
    measured: ErrorMatrix, clips: np.ndarray, units: Units, place: int, replicates: int, seed: int
) -> Estimate:
    """The degradation of a group at a level, as a share."""
    errors, lengths = measured.errors[:, clips], measured.lengths[:, clips]
    how = {"scale": 1.0, "replicates": replicates, "seed": seed}
    rates = [ratio(units, errors[row], lengths[row], **how) for row in (place + 1, 0)]  # type: ignore[arg-type]
    return rates[0] - rates[1]


# --- Table 4 ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Table4:
    """Violations for each base group: in all, and by tau, by recogniser (or pair) and by transformation.

    Each part sums to the total.
    """

    groups: tuple[str, ...]
    total: Mapping[str, int]
    by_tau: Mapping[float, Mapping[str, int]]
    by_recogniser: Mapping[str, Mapping[str, int]]
    by_transformation: Mapping[str, Mapping[str, int]]

    def parts(self) -> list[tuple[str, Mapping[str, Mapping[str, int]]]]:
        """The rows of the printed table, under its headings."""
        return [
            ("tau sensitivity", {f"{tau:g}": row for tau, row in self.by_tau.items()}),
            ("ASR sensitivity", self.by_recogniser),
            ("transformation sensitivity", self.by_transformation),
        ]


def table4(
    comparisons: Iterable[GroupComparison], taus: Sequence[float] = TAUS, *, beyond_noise: bool = False
) -> Table4:
    """Count violations, each once per tau; with `beyond_noise` only those whose interval stays above zero.

    Where there are too few speakers for an interval, none is beyond noise.
    """
    comparisons = list(comparisons)
    groups = tuple(dict.fromkeys(c.base for c in comparisons))
    counted = [c for c in comparisons if not beyond_noise or c.within_noise is False]
    violations = [(tau, c) for c in counted for tau in taus if c.violates(tau)]

    def rows(keys, of) -> dict:
        counts = {key: dict.fromkeys(groups, 0) for key in dict.fromkeys(keys)}
        for tau, c in violations:
            counts[of(tau, c)][c.base] += 1
        return counts

    total = rows(["total"], lambda tau, c: "total")["total"]
    return Table4(
        groups,
        total,
        rows(taus, lambda tau, c: tau),
        rows((c.recogniser for c in comparisons), lambda tau, c: c.recogniser),
        rows((c.transformation for c in comparisons), lambda tau, c: c.transformation),
    )


def excess_percent(total: Mapping[str, float], reference: str) -> float:
    """How many more violations the other groups have on average than the reference group, in per cent.

    The paper's Table 4, RAVDESS: 28 for male and 176 for female speakers.

    >>> round(excess_percent({"male": 28, "female": 176}, "male"), 1)
    528.6
    """
    others = [count for group, count in total.items() if group != reference]
    if not others or not total[reference]:
        return math.nan
    return 100 * (sum(others) / len(others) / total[reference] - 1)
