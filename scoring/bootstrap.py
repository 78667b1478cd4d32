"""What is resampled, and how: speakers where they are known, else clips.

Clips of one speaker are alike, so where speakers are known, whole speakers are drawn: with strong speaker effects an
interval that draws clips covers the truth in half of the cases (benchmarks/interval_coverage.py). A replicate draws as
many units as there are, with replacement, and is kept as a row of weights (how often each was drawn). The weights are a
pure function of the clips' ids, the speakers and the seed: two configs of the same clips, or two models on them, are
resampled alike, which is what makes their difference paired. Intervals and tests: `scoring.estimate`.

Bisani and Ney, "Bootstrap estimates for confidence intervals in ASR performance evaluation", ICASSP 2004; by speaker as
in Liu and Peng, "Statistical testing on ASR performance via blockwise bootstrap", Interspeech 2020.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.options import RESAMPLE
from speech_robust_bench.scoring.scoring import Counts, error_rate

SPEAKERS, CLIPS = "speakers", "clips"
KEPT = 3_000_000  # weights that are kept, 24 MB; of more there are never so many at a time
KNOWN = 0.95  # of the clips must name a speaker for speakers to be drawn without being asked for


@dataclass(frozen=True, eq=False)
class Units:
    """The units that are drawn: the speakers of some clips, or the clips themselves."""

    kind: str
    blocks: tuple[str, ...]  # the unit of each clip
    ids: tuple[str, ...] = ()

    @classmethod
    def of(cls, ids: Sequence[str], speakers: Sequence[str | None] | None = None, resample: str = "auto") -> Units:
        """Speakers where (nearly) all clips name one, else clips; either can be asked for.

        A clip without a speaker stands for itself.

        >>> Units.of(["a", "b", "c"], ["ann", "ann", "bob"]), len(Units.of(["a", "b", "c"]))
        (2 speakers, 3)
        """
        if speakers is not None and len(speakers) != len(ids):
            raise UserError(f"{len(ids)} clips but {len(speakers)} speakers; they must pair one to one")
        if resample not in RESAMPLE:
            raise UserError(f"'{resample}' cannot be resampled; choose one of {', '.join(RESAMPLE)}")
        named = [s or None for s in speakers or [None] * len(ids)]
        share = sum(s is not None for s in named) / max(len(named), 1)
        by_speaker = share >= KNOWN if resample == "auto" else resample == SPEAKERS and share > 0
        if not by_speaker or not ids:
            return cls(CLIPS, tuple(f"clip {i}" for i in ids), tuple(map(str, ids)))
        return cls(
            SPEAKERS,
            tuple(f"clip {i}" if s is None else f"speaker {s}" for i, s in zip(ids, named, strict=True)),
            tuple(map(str, ids)),
        )

    @cached_property
    def _unique(self) -> tuple[np.ndarray, np.ndarray]:
        names, place = np.unique(np.array(self.blocks, dtype=object), return_inverse=True)
        return names, place

    @property
    def place(self) -> np.ndarray:
        """Which unit each clip belongs to."""
        return self._unique[1]

    def __len__(self) -> int:
        return len(self._unique[0])

    def __repr__(self) -> str:
        return f"{len(self)} {self.kind}"

    @cached_property
    def key(self) -> str:
        """The same for the same clips and speakers."""
        return hashlib.sha256("\n".join(self.blocks).encode()).hexdigest()

    @cached_property
    def set_key(self) -> str:
        """The same for the same clips alone: the speakers of two corpora may bear the same names."""
        return hashlib.sha256("\n".join((*self.blocks, *self.ids)).encode()).hexdigest()

    def sums(self, per_clip: np.ndarray) -> np.ndarray:
        """The sum over the clips of each unit."""
        return np.bincount(self.place, np.asarray(per_clip, dtype=float), minlength=len(self))

    def weights(self, replicates: int, seed: int = 0) -> np.ndarray:
        """How often each unit is drawn in each replicate: an array of (replicates, units)."""
        return np.concatenate(list(self.weights_in_blocks(replicates, seed)))

    def weights_in_blocks(self, replicates: int, seed: int = 0) -> Iterator[np.ndarray]:
        """The weights, some replicates at a time, so that memory does not grow with the clips."""
        if replicates < 1:
            raise UserError(f"a bootstrap needs at least 1 replicate, not {replicates}")
        if replicates * len(self) <= KEPT:
            return iter((_weights_kept(self.key, len(self), replicates, seed),))
        return _weights(self.key, len(self), replicates, seed)

    def draw(self, values: np.ndarray, replicates: int, seed: int = 0) -> np.ndarray:
        """The sums of some columns of values, a row for each unit, in every replicate: (replicates, columns)."""
        return np.concatenate([draws @ values for draws in self.weights_in_blocks(replicates, seed)])


def _weights(key: str, size: int, replicates: int, seed: int) -> Iterator[np.ndarray]:
    rng = np.random.default_rng([seed, int(key[:32], 16)])
    most = max(KEPT // max(size, 1), 1)
    for start in range(0, replicates, most):
        rows = min(most, replicates - start)
        drawn = rng.integers(0, size, size=(rows, size)) if size else np.zeros((rows, 0), dtype=int)
        drawn += np.arange(rows)[:, None] * size
        yield np.bincount(drawn.ravel(), minlength=rows * size).reshape(rows, size).astype(float)


@lru_cache(maxsize=4)  # every config and every mean of a clip set asks for the same
def _weights_kept(key: str, size: int, replicates: int, seed: int) -> np.ndarray:
    return next(_weights(key, size, replicates, seed))


def weights(
    ids: Sequence[str], speakers: Sequence[str | None] | None = None, *, replicates: int = 1000, seed: int = 0
) -> np.ndarray:
    """How often each clip is drawn in each replicate: an array of (replicates, clips).

    With speakers, whole speakers are drawn; a clip without one stands for itself.

    >>> weights(["a", "b", "c"], replicates=2).sum(axis=1)
    array([3., 3.])
    """
    units = Units.of(ids, speakers, CLIPS if speakers is None else SPEAKERS)
    return units.weights(replicates, seed)[:, units.place]


def rates(draws: np.ndarray, counts: Sequence[Counts]) -> np.ndarray:
    """Error rate, in points, of each of several configs of the same clips in each replicate: (replicates, configs)."""
    errors = draws @ np.array([c.errors for c in counts], dtype=float).T
    lengths = draws @ np.array([c.lengths for c in counts], dtype=float).T
    return error_rate(errors, lengths)


def interval(values: np.ndarray, level: float = 0.95, units: int | None = None) -> tuple[float, float]:
    """The percentile interval of a replicated statistic; with the number of units it is made wide enough for few."""
    level = level if units is None else expanded(level, units)
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def expanded(level: float, units: int) -> float:
    """The level to ask of a percentile interval so that it covers as it says when it rests on few units.

    Percentile intervals of small samples are too narrow; this is the "expanded percentile interval" of Hesterberg,
    "What Teachers Should Know About the Bootstrap", The American Statistician 69 (2015).

    >>> round(expanded(0.95, 10), 4), round(expanded(0.95, 10_000), 4)
    (0.9829, 0.95)
    """
    from scipy.special import ndtr, stdtrit

    if units < 2:
        return level
    return float(1 - 2 * ndtr(math.sqrt(units / (units - 1)) * stdtrit(units - 1, (1 - level) / 2)))


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
