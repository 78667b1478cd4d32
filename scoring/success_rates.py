"""TASR and UASR: targeted and untargeted success rates of an attack (Olivier 2023, Eq. 6.1 and 6.2).

Apart from `attack_success`, because the `tasr` module takes it along wherever it is loaded.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from speech_robust_bench.scoring.scoring import align


def success_rates(
    references: Sequence[str],
    predictions: Sequence[str],
    targets: Sequence[str] | None = None,
    *,
    normaliser: str = "srb-paper-1",
    pooled: bool = False,
) -> dict[str, float]:
    """`uasr` and `uasr_char` in per cent; with targets also `tasr`, `tasr_char` and `exact` (exact hits)."""

    def rates(texts: Sequence[str], unit: str) -> np.ndarray:
        counts = align(texts, predictions, normaliser=normaliser, unit=unit)
        return np.array([counts.rate]) if pooled else counts.rates

    scores = {}
    for suffix, unit in (("", "word"), ("_char", "char")):
        if targets is not None:
            scores[f"tasr{suffix}"] = _mean(np.maximum(100 - rates(targets, unit), 0))
        scores[f"uasr{suffix}"] = _mean(np.minimum(rates(references, unit), 100))
    if targets is not None:
        scores["exact"] = _mean(100.0 * (align(targets, predictions, normaliser=normaliser).errors == 0))
    return scores


def _mean(values: np.ndarray) -> float:
    return float(values.mean()) if len(values) else 0.0
