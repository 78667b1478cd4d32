"""What a recogniser makes of two people who talk at once, beside the permutation-invariant WER of both.

A recogniser that writes one text can at best have one talker right. So there is a second figure: the WER of the talker
whose words it has best (`best_wer`), chosen clip by clip. And how many predictions have two texts.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from speech_robust_bench.core.records import Prediction
from speech_robust_bench.core.result_records import RunResults, ScoreValue, TwoTalkers
from speech_robust_bench.core.rows import TALKER_CHANGE, talkers
from speech_robust_bench.scoring.bootstrap import interval, weights
from speech_robust_bench.scoring.scoring import align, error_rate


def of_lines(
    lines: Sequence[Prediction],
    normaliser: str,
    unit: str | None,
    language: str | None,
    replicates: int,
    level: float,
    seed: int,
) -> TwoTalkers | None:
    """Clips of two talkers, predictions of two texts, and the WER of the better talker; None where there is no such
    clip."""
    both = [line for line in lines if TALKER_CHANGE in (line.text or "")]
    if not both:
        return None
    said = [talkers(line.text or "") for line in both]
    written = [talkers(line.transcript) for line in both]
    pairs = [
        align([a[i] for a in said], [b[j] for b in written], normaliser=normaliser, unit=unit, language=language)
        for i in (0, 1)
        for j in (0, 1)
    ]
    best = np.argmin([pair.rates for pair in pairs], axis=0)
    clips = np.arange(len(both))
    errors = np.array([pair.errors for pair in pairs])[best, clips]
    lengths = np.array([pair.lengths for pair in pairs])[best, clips]
    bounds = None
    if replicates:
        draws = weights([line.id for line in both], None, replicates=replicates, seed=seed)
        bounds = [round(float(v), 4) for v in interval(error_rate(draws @ errors, draws @ lengths), level)]
    best_wer = ScoreValue(value=round(float(error_rate(errors.sum(), lengths.sum())), 4), interval=bounds)
    return TwoTalkers(clips=len(both), two_texts=sum(bool(second) for _, second in written), best_wer=best_wer)


HEADS = ("config", "WER of both", "WER of the better talker", "two texts", "clips")


def overlap_rows(result: RunResults) -> list[tuple[str, ...]]:
    """A line for each config of a results file with two talkers, below `HEADS`."""
    return [
        (config, _cell(entry.wer), _cell(both.best_wer), str(both.two_texts), str(both.clips))
        for config, entry in result.configs.items()
        if (both := entry.overlap)
    ]


def _cell(score: ScoreValue | None) -> str:
    if score is None:
        return ""
    shown = f"{score.value:.1f}"
    return f"{shown} ({score.interval[0]:.1f} to {score.interval[1]:.1f})" if score.interval else shown
