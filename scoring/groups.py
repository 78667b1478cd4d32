"""Error rates of groups of speakers, and how far they are apart.

LWERR is the paper's Eq. 5. The population-weighted rate, the gap between the worst and the best group and
intersections of columns follow Aksenova et al., "How Might We Create Better Benchmarks for Speech Recognition?",
Section 4.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from speech_robust_bench.core.errors import UserError
from speech_robust_bench.scoring.scoring import Counts

Labels = Sequence[str | None]


def split(counts: Counts, labels: Labels) -> dict[str, Counts]:
    """The counts of each group, in alphabetical order; utterances without a label belong to none."""
    if len(labels) != len(counts):
        raise UserError(f"{len(counts)} utterances but {len(labels)} group labels; they must pair one to one")
    named = np.array([label or "" for label in labels], dtype=object)
    return {str(group): counts.take(named == group) for group in sorted(set(named) - {""})}


def log2_ratio(rate: float, base: float) -> float:
    """log2(rate / base) of two error rates: 0 where both are zero, infinite where one is, nan where one is missing.

    >>> log2_ratio(20.0, 10.0), log2_ratio(0.0, 0.0), log2_ratio(5.0, 0.0), log2_ratio(0.0, 5.0)
    (1.0, 0.0, inf, -inf)
    """
    if math.isnan(rate) or math.isnan(base):
        return math.nan
    if rate == 0 or base == 0:
        return 0.0 if rate == base else math.copysign(math.inf, rate - base)
    return math.log2(rate / base)


def with_intersections(columns: Mapping[str, Labels] | Labels, crossed: Sequence[Sequence[str]]) -> dict[str, Labels]:
    """The columns and, for each list of their names, a column of their combinations; None where a part has no label.

    >>> columns = {"gender": ["female", "male"], "accent": ["india", None]}
    >>> with_intersections(columns, [["gender", "accent"]])["gender & accent"]
    ['female & india', None]
    """
    if not isinstance(columns, Mapping):  # one column without a name
        columns = {"group": columns}
    result = dict(columns)
    for names in crossed:
        unknown = [name for name in names if name not in columns]
        if unknown:
            raise UserError(f"there is no column '{unknown[0]}' to intersect; there are {', '.join(columns)}")
        rows = zip(*(columns[name] for name in names), strict=True)
        result[" & ".join(names)] = [" & ".join(map(str, row)) if all(row) else None for row in rows]
    return result


def disparity(
    counts: Counts, labels: Labels, weights: Mapping[str, float] | None = None, minimum: int = 1
) -> dict[str, Any]:
    """Rate of each group, gap (points) and log2 ratio of the worst to the best, and the population-weighted rate.

    Groups of fewer than `minimum` utterances are listed and left out of gap and ratio. Weights are shares of the
    population, of any sum, one for every group there is.
    """
    parts = split(counts, labels)
    rates = {group: part.rate for group, part in parts.items() if len(part) >= minimum}
    best, worst = (min(rates, key=rates.__getitem__), max(rates, key=rates.__getitem__)) if rates else (None, None)
    result: dict[str, Any] = {
        "groups": {
            group: {"wer": part.rate, "utterances": len(part), "reference_length": int(part.lengths.sum())}
            for group, part in parts.items()
        },
        "best": best,
        "worst": worst,
        "gap": rates[worst] - rates[best] if best and worst else math.nan,
        "log2_ratio": log2_ratio(rates[worst], rates[best]) if best and worst else math.nan,
        "unlabelled": len(counts) - sum(map(len, parts.values())),
    }
    if weights is not None:
        if set(weights) != set(parts):
            wrong = sorted(set(weights) ^ set(parts))
            raise UserError(
                f"weights must name the groups that have utterances, one each; '{', '.join(wrong)}' is only in "
                f"{'the weights' if wrong[0] in weights else 'the data'}"
            )
        if min(weights.values()) < 0 or not sum(weights.values()) > 0:
            raise UserError("weights are shares of the population: none negative, and not all zero")
        total = sum(weights.values())
        result["weighted_wer"] = sum(weights[group] * part.rate for group, part in parts.items()) / total
    return result
