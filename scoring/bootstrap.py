"""Bootstrap intervals and paired tests over utterances, or over speakers where they are known.

A replicate draws as many clips as there are, with replacement. It is kept as a row of weights (how often each clip was
drawn), so one matrix product gives the error rates of every config of a clip set in every replicate. The weights are a
pure function of the clips' ids, the speakers and the seed: two configs of the same clips, or two models on them, are
resampled alike, which is what makes their difference paired. Bisani and Ney, "Bootstrap estimates for confidence
intervals in ASR performance evaluation", ICASSP 2004; by speaker as in Liu and Peng, "Statistical testing on ASR
performance via blockwise bootstrap", Interspeech 2020.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

from speech_robust_bench.core.errors import UserError
from speech_robust_bench.scoring.scoring import Counts, error_rate


def weights(
    ids: Sequence[str], speakers: Sequence[str | None] | None = None, *, replicates: int = 1000, seed: int = 0
) -> np.ndarray:
    """How often each clip is drawn in each replicate: an array of (replicates, clips).

    With speakers, whole speakers are drawn; a clip without one stands for itself.

    >>> weights(["a", "b", "c"], replicates=2).sum(axis=1)
    array([3., 3.])
    """
    if speakers is not None and len(speakers) != len(ids):
        raise UserError(f"{len(ids)} clips but {len(speakers)} speakers; they must pair one to one")
    if replicates < 1:
        raise UserError(f"a bootstrap needs at least 1 replicate, not {replicates}")
    blocks = [
        f"clip {i}" if s is None else f"speaker {s}" for i, s in zip(ids, speakers or [None] * len(ids), strict=True)
    ]
    names, block = np.unique(np.array(blocks, dtype=object), return_inverse=True)
    if not len(names):
        return np.zeros((replicates, 0))
    entropy = int.from_bytes(hashlib.sha256("\n".join(blocks).encode()).digest()[:16], "big")
    rng = np.random.default_rng([seed, entropy])
    drawn = rng.integers(0, len(names), size=(replicates, len(names)))
    drawn += np.arange(replicates)[:, None] * len(names)
    times = np.bincount(drawn.ravel(), minlength=replicates * len(names)).reshape(replicates, len(names))
    return times[:, block].astype(float)


def rates(draws: np.ndarray, counts: Sequence[Counts]) -> np.ndarray:
    """Error rate, in points, of each of several configs of the same clips in each replicate: (replicates, configs)."""
    errors = draws @ np.array([c.errors for c in counts], dtype=float).T
    lengths = draws @ np.array([c.lengths for c in counts], dtype=float).T
    return error_rate(errors, lengths)


def interval(values: np.ndarray, level: float = 0.95) -> tuple[float, float]:
    """The percentile interval of a replicated statistic."""
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def p_value(differences: np.ndarray) -> float:
    """Two-sided p-value of "no difference": how rarely the replicated difference is on the other side of zero.

    One replicate is added on either side, so that no p-value is below what the number of replicates can show.
    """
    n = len(differences)
    tail = min(np.count_nonzero(differences <= 0), np.count_nonzero(differences >= 0))
    return min(1.0, 2 * (tail + 1) / (n + 1))


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down correction: adjusted p-values, in the order given.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    adjusted = [0.0] * len(p_values)
    highest = 0.0
    for rank, i in enumerate(order):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[i]))
        adjusted[i] = highest
    return adjusted
