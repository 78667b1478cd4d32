"""Numbers as a results file holds them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

Json = dict[str, Any]


def json_number(value: float | None) -> float | None:
    """Rounded far below what a bootstrap can tell; null for what JSON cannot hold."""
    return None if value is None or not math.isfinite(value) else round(float(value), 4)


def json_ratio(part: float, whole: float) -> float | None:
    return round(part / whole, 6) if whole else None


def json_score(value: float | None, interval: Sequence[float] | None) -> Json:
    """A score and its interval."""
    return {"value": json_number(value), "interval": None if interval is None else [json_number(v) for v in interval]}
