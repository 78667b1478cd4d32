"""How much data keeps a ranking: Spearman's rho between the ranking on everything and on a part of it.

SUPERB-SG (Tsai et al., ACL 2022, Section 5.3) shows that the ranking of models hardly changes with less data; this asks
the same of a benchmark's configs and clips. `suites` has sets of configs and clips that were chosen by it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from srb.core.errors import UserError
from srb.metrics.aggregate import ConfigCounts
from srb.metrics.runs import Run


@dataclass(frozen=True)
class Stability:
    """How well random parts of one size keep the ranking: the mean rho, and what 19 of 20 parts reach."""

    size: int
    of: int
    mean: float
    low: float
    same_order: float  # the share of parts that rank every model alike


def spearman(one: Sequence[float], other: Sequence[float]) -> float:
    """Spearman's rank correlation, ties at their mean rank; 1 where either has no order at all and both agree.

    >>> round(spearman([1, 2, 3, 4], [1, 2, 4, 3]), 6)
    0.8
    """
    from scipy.stats import rankdata

    ranks = [rankdata(values) for values in (one, other)]
    if any(np.ptp(r) == 0 for r in ranks):
        return 1.0 if all(np.ptp(r) == 0 for r in ranks) else 0.0
    return float(np.corrcoef(*ranks)[0, 1])


def of_parts(
    errors: np.ndarray, lengths: np.ndarray, sizes: Sequence[int], *, trials: int = 200, seed: int = 0
) -> list[Stability]:
    """Draw random items (columns) without replacement; a model's score is its errors over its lengths (rows).

    For configs, whose scores are averaged, the errors are the scores and every length is 1.
    """
    models, items = errors.shape
    if models < 3:
        raise UserError(f"a ranking needs three recognisers or more, not {models}")
    rng = np.random.default_rng(seed)
    everything = errors.sum(axis=1) / np.maximum(lengths.sum(axis=1), 1)
    order = np.argsort(everything, kind="stable")
    stabilities = []
    for size in sorted({min(max(int(size), 1), items) for size in sizes}):
        correlations = []
        alike = 0
        for _ in range(trials):
            drawn = rng.choice(items, size, replace=False)
            score = errors[:, drawn].sum(axis=1) / np.maximum(lengths[:, drawn].sum(axis=1), 1)
            correlations.append(spearman(score.tolist(), everything.tolist()))
            alike += bool((np.diff(score[order]) >= 0).all())
        stabilities.append(
            Stability(size, items, float(np.mean(correlations)), float(np.quantile(correlations, 0.05)), alike / trials)
        )
    return stabilities


def enough(stabilities: Sequence[Stability], rho: float = 0.95) -> int | None:
    """The smallest size from which on 19 of 20 parts reach a correlation."""
    best = None
    for one in sorted(stabilities, key=lambda s: -s.size):
        if one.low < rho:
            break
        best = one.size
    return best


def subsets(
    scores: np.ndarray, size: int, among: Sequence[int] | None = None
) -> Iterator[tuple[float, tuple[int, ...]]]:
    """Every set of columns of a size, with its correlation to the mean of all columns (models are rows).

    The correlation is the least that is left when any one model is taken away, so that no single model decides.
    """
    everything = np.nanmean(scores, axis=1)
    models = np.arange(len(scores))
    kept = [models, *(models[models != model] for model in models)]
    for columns in combinations(range(scores.shape[1]) if among is None else among, size):
        part = scores[:, columns].mean(axis=1)
        yield min(spearman(part[k].tolist(), everything[k].tolist()) for k in kept), columns


def matrix(runs: Sequence[Run]) -> tuple[list[str], np.ndarray, list[list[ConfigCounts]]]:
    """The configs that all runs have, their WER (models x configs), and the counts behind it."""
    common = [c for c in runs[0].configs if all(c in run.configs for run in runs)]
    spoken = [c for c in common if runs[0].about.get("configs", {}).get(c, {}).get("category") != "reject"]
    if not spoken:
        raise UserError("the runs have no config with speech in common; run all on the same configs")
    counts = [[run.read(config).count() for config in spoken] for run in runs]
    for one in counts[1:]:
        for mine, theirs in zip(counts[0], one, strict=True):
            if list(mine.ids) != list(theirs.ids):
                raise UserError(f"{mine.config}: the runs are not on the same clips; run all on the same clips")
    return spoken, np.array([[c.counts.rate for c in row] for row in counts]), counts


def sizes_of(items: int) -> list[int]:
    """Sizes to try: 1, 2, 5, 10, 20, ... up to all."""
    steps = [m * 10**power for power in range(7) for m in (1, 2, 5)]
    return [*(size for size in steps if size < items), items]
