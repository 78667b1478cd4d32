"""Numbers as a results file holds them."""

from __future__ import annotations

import math
from collections.abc import Sequence

from speech_robust_bench.core.result_records import ScoreValue


def json_number(value: float | None) -> float | None:
    """Rounded far below what a bootstrap can tell; null for what JSON cannot hold."""
    return None if value is None or not math.isfinite(value) else round(float(value), 4)


def json_ratio(part: float, whole: float) -> float | None:
    return round(part / whole, 6) if whole else None


def score_value(value: float | None, interval: Sequence[float] | None) -> ScoreValue | None:
    """A score and its interval; None for NaN and infinity."""
    rounded = json_number(value)
    if rounded is None:
        return None
    return ScoreValue(value=rounded, interval=None if interval is None else [round(float(v), 4) for v in interval])
