"""Errors by what a clip is like: its length, its speech rate, its loudness; the spread over clips; the worst speakers.

Aksenova et al., Section 3.1: percentiles and the standard deviation of the clips' own error rates say what an average
does not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from speech_robust_bench.scoring.scoring import Counts

Json = dict[str, Any]
# what -> the edges between its bins; the unit is in the name
EDGES: dict[str, tuple[float, ...]] = {
    "length_s": (2, 5, 10, 20),
    "words_per_s": (1.5, 2.0, 2.5, 3.0, 3.5),
    "loudness_dbfs": (-40, -35, -30, -25, -20),
}
PERCENTILES = (50, 90, 95, 99)


def by_bins(counts: Counts, values: np.ndarray, edges: Sequence[float]) -> list[Json]:
    """WER of the clips in each bin; empty bins and clips without a value (NaN) are left out."""
    place = np.digitize(values, edges)
    labels = [
        f"< {edges[0]:g}",
        *(f"{a:g} to {b:g}" for a, b in pairwise(edges)),
        f">= {edges[-1]:g}",
    ]
    rows = []
    for number, label in enumerate(labels):
        part = counts.take((place == number) & ~np.isnan(values))
        if len(part):
            start = edges[number - 1] if number else None
            rows.append(
                {"bin": label, "from": start, "clips": len(part), "words": int(part.lengths.sum()), "wer": part.rate}
            )
    return rows


def spread(counts: Counts) -> Json:
    """Percentiles and standard deviation of the clips' own error rates, and the share of clips without an error."""
    rates = counts.rates
    if not len(rates):
        return {}
    return {
        **{f"p{p}": float(np.percentile(rates, p)) for p in PERCENTILES},
        "sd": float(rates.std()),
        "without_error": float((counts.errors == 0).mean()),
    }


def speakers(counts: Counts, names: Sequence[str | None], minimum_clips: int = 3, most: int = 5) -> Json:
    """The speakers with the highest error rates, among those with enough clips, and the spread over speakers."""
    known = np.array([name or "" for name in names], dtype=object)
    rows: list[Json] = []
    for name in sorted(set(known) - {""}):
        part = counts.take(known == name)
        if len(part) >= minimum_clips:
            rows.append({"speaker": str(name), "clips": len(part), "wer": part.rate})
    rows.sort(key=lambda row: -row["wer"])
    rates = [row["wer"] for row in rows]
    return {
        "speakers": len(rows),
        "median": float(np.median(rates)) if rates else None,
        "p90": float(np.percentile(rates, 90)) if rates else None,
        "worst": rows[:most],
    }


def bins_of(
    counts: Counts, durations: Sequence[float | None], loudness: Sequence[float | None]
) -> Mapping[str, list[Json]]:
    """All the tables there is something for."""
    seconds, level = (np.array([np.nan if v is None else v for v in values]) for values in (durations, loudness))
    with np.errstate(divide="ignore", invalid="ignore"):
        rate = np.where(seconds > 0, counts.lengths / seconds, np.nan)
    values = {"length_s": seconds, "words_per_s": rate, "loudness_dbfs": level}
    return {what: rows for what, measured in values.items() if (rows := by_bins(counts, measured, EDGES[what]))}
