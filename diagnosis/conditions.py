"""Errors by what a clip is like: its length, its speech rate, its loudness; the spread over clips; the worst speakers.

Aksenova et al., Section 3.1: percentiles and the standard deviation of the clips' own error rates say what an average
does not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from srb.metrics.scoring import Counts

Json = dict[str, Any]
# what -> the edges between its bins; the unit is in the name
EDGES: dict[str, tuple[float, ...]] = {
    "length_s": (2, 5, 10, 20),
    "words_per_s": (1.5, 2.0, 2.5, 3.0, 3.5),
    "loudness_dbfs": (-40, -35, -30, -25, -20),
}
PERCENTILES = (50, 90, 95, 99)


def by_bins(counts: Counts, values: Sequence[float], edges: Sequence[float]) -> list[Json]:
    """WER of the clips in each bin; empty bins and clips without a value are left out."""
    known = np.asarray(values, dtype=float)
    place = np.digitize(known, edges)
    labels = [
        f"< {edges[0]:g}",
        *(f"{a:g} to {b:g}" for a, b in pairwise(edges)),
        f">= {edges[-1]:g}",
    ]
    made = []
    for number, label in enumerate(labels):
        part = counts.take((place == number) & ~np.isnan(known))
        if len(part):
            start = edges[number - 1] if number else None
            made.append(
                {"bin": label, "from": start, "clips": len(part), "words": int(part.lengths.sum()), "wer": part.rate}
            )
    return made


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


def loudness_dbfs(data: str | Path, config: str) -> dict[str, float]:
    """The RMS level of each clip of a built config, in dB below full scale; digital silence has none."""
    from srb.models.data import open_data

    found = open_data(str(data)).config(config)
    made = {}
    for window in found.windows({row.position for row in found.rows}):
        for row in window.rows:
            power = float(np.mean(np.square(window.decode(row), dtype=np.float64)))
            if power > 0:
                made[row.id] = 10 * np.log10(power)
    return made


def bins_of(
    counts: Counts, durations: Sequence[float | None], loudness: Sequence[float | None] | None = None
) -> Mapping[str, list[Json]]:
    """All the tables there is something for."""
    seconds = np.array([np.nan if value is None else value for value in durations], dtype=float)
    with np.errstate(divide="ignore", invalid="ignore"):
        values = {"length_s": seconds, "words_per_s": np.where(seconds > 0, counts.lengths / seconds, np.nan)}
    if loudness is not None:
        values["loudness_dbfs"] = np.array([np.nan if v is None else v for v in loudness], dtype=float)
    return {what: by_bins(counts, found.tolist(), EDGES[what]) for what, found in values.items()}
