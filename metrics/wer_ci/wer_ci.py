"""WER with its uncertainty and its spread over utterances, as an `evaluate` module."""

from __future__ import annotations

import evaluate
import numpy as np

from speech_robust_bench.scoring.bootstrap import Units  # From: speech-robust-bench
from speech_robust_bench.scoring.estimate import ratio  # From: speech-robust-bench
from speech_robust_bench.scoring.evaluate_base import TextColumns, metric_info  # From: speech-robust-bench
from speech_robust_bench.scoring.scoring import align, versions  # From: speech-robust-bench

_DESCRIPTION = """\
Word error rate, in points (per cent), with an interval, and how it is spread over utterances: standard
deviation and percentiles of the utterances' own rates.
"""

_KWARGS_DESCRIPTION = """
Args:
    predictions (list of str): the recogniser's transcripts.
    references (list of str): what was said.
    speakers (list of str): speakers of the clips; the interval is then over speakers.
    percentiles (list of float): which percentiles of the utterances' rates; 50, 90, 95 and 99 by default.
    normaliser (str): 'srb-paper-1' (default: lower case, no punctuation), 'srb-numbers-1' (numbers however
        written), 'whisper-en', 'whisper-basic' or 'none'.
    unit (str): 'word', 'char' or 'char-nospace'; by default what the language is counted in.
    language (str): 'en', 'zh', ...; languages written without spaces are counted in characters, all others in words.
    replicates (int): bootstrap replicates for an interval; 1000 by default.
    level (float): level of the interval, 0.95 by default.
    seed (int): seed of the bootstrap.
Returns:
    wer, interval (None for fewer than 5 speakers or clips), resampled, level, replicates, seed, std, percentiles, hits,
    substitutions, deletions, insertions, utterances, normaliser, unit.

Examples:
    Two of eight words are wrong: 25 %. The utterances' own rates are 0, 0, 50 and 50 %.

    >>> import evaluate
    >>> wer_ci = evaluate.load("wer_ci")
    >>> result = wer_ci.compute(
    ...     references=["good morning", "the cat", "sat down", "all day"],
    ...     predictions=["good morning", "the cat", "sat town", "all they"],
    ... )
    >>> result["wer"], result["interval"], round(result["std"], 2)  # four clips are too few for an interval
    (25.0, None, 28.87)
    >>> result["percentiles"]["50"], result["substitutions"]
    (25.0, 2)
"""


@evaluate.utils.file_utils.add_start_docstrings(_DESCRIPTION, _KWARGS_DESCRIPTION)
class WerCi(TextColumns, evaluate.Metric):
    def _info(self):
        return metric_info(_DESCRIPTION, _KWARGS_DESCRIPTION)

    def _compute(
        self,
        predictions,
        references,
        speakers=None,
        percentiles=(50, 90, 95, 99),
        normaliser="srb-paper-1",
        unit=None,
        language=None,
        replicates=1000,
        level=0.95,
        seed=0,
    ):
        counts = align(references, predictions, normaliser=normaliser, unit=unit, language=language)
        ids = [str(i) for i in range(len(counts))]
        units = Units.of(ids, speakers)
        rate = ratio(units, counts.errors, counts.lengths, replicates=replicates, seed=seed)
        span = rate.interval(level)
        own = counts.rates
        return {
            "wer": counts.rate,
            "interval": list(span) if span else None,
            "resampled": str(rate.resampled),
            "level": level,
            "replicates": replicates,
            "seed": seed,
            "std": float(own.std(ddof=1)) if len(own) > 1 else 0.0,
            "percentiles": {f"{p:g}": float(np.percentile(own, p)) if len(own) else 0.0 for p in percentiles},
            **counts.totals(),
            "utterances": len(counts),
            **versions(normaliser, unit, language),
        }
