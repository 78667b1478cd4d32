"""When a recogniser gets no verdict: the one rule of every command and page that compares recognisers.

A recogniser that writes nothing, or that fails, on clean speech has nothing to lose in noise, so by any difference it
is "robust". And clips that failed say that an endpoint was down, not how robust a recogniser is. Where too much of
either happened, numbers are shown with the reason, and nobody is called better, worse, fair or first.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.names import parse
from speech_robust_bench.scoring.aggregate import ConfigCounts
from speech_robust_bench.scoring.runs import Run
from speech_robust_bench.scoring.scoring import Counts

CLEAN_CEILING = 50.0  # points of WER on clean speech; the worst recogniser of the paper's Table 1 has 25.7
EMPTY_CEILING = 0.05  # of the clean clips: failed, or without a word
FAILED_CEILING = 0.05  # of all clips


def refusal(clean_wer: float | None, clean_empty: float = 0.0, failed: float = 0.0) -> str:
    """Why there is no verdict on a recogniser, empty if there may be one.

    `clean_empty` is the share of clean clips without a word, `failed` that of all clips that failed.

    >>> refusal(100.0, 1.0)
    'WER on clean speech is 100.0, above 50'
    >>> refusal(8.0, 0.25), refusal(8.0)
    ('25% of the clean clips have no word, more than 5%', '')
    """
    if clean_wer is not None and clean_wer > CLEAN_CEILING:
        return f"WER on clean speech is {clean_wer:.1f}, above {CLEAN_CEILING:g}"
    if failed > FAILED_CEILING:
        return f"{failed:.0%} of the clips failed, more than {FAILED_CEILING:.0%}"
    if clean_empty > EMPTY_CEILING:
        return f"{clean_empty:.0%} of the clean clips have no word, more than {EMPTY_CEILING:.0%}"
    return ""


def refusal_of_counts(configs: Iterable[ConfigCounts]) -> str:
    """Why there is no verdict on a recogniser, from what it did on the configs that are compared, clean speech too."""
    configs = list(configs)
    clean = [config.counts for config in configs if parse(config.config).scenario == "clean"]
    words = [counts for counts in clean if len(counts)]
    clips = sum(map(len, clean))
    everything = sum(len(config.ids) for config in configs)
    return refusal(
        float(np.mean([counts.rate for counts in words])) if words else None,
        sum(map(empty_clips, clean)) / clips if clips else 0.0,
        sum(config.failed for config in configs) / everything if everything else 0.0,
    )


def refusal_of_run(run: Run, normaliser: str = "srb-paper-1") -> str:
    """Why there is no verdict on a run, from its clean speech and from all of its clips that failed."""
    read = [run.read(config) for config in run.configs]
    clean = [own.count(normaliser) for predictions in read if (own := predictions.transcribed).lines and own.clean]
    clips = sum(len(predictions.lines) for predictions in read)
    failed = sum(predictions.failed for predictions in read)
    return refusal_of_counts(clean) or refusal(None, 0.0, failed / clips if clips else 0.0)


def refuse_ranking(name: object, configs: Iterable[ConfigCounts]) -> None:
    """Refuse a recogniser among others that are ranked together, where there is no verdict on it."""
    if why := refusal_of_counts(configs):
        raise UserError(f"{name} cannot be ranked: {why}; leave it out")


def empty_clips(counts: Counts) -> int:
    """Clips of which no word was recognised, failed ones too, though words were said: all deletions, nothing else."""
    return int(((counts.lengths > 0) & (counts.deletions == counts.lengths) & (counts.insertions == 0)).sum())
