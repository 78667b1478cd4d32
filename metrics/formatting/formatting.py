"""Formatting of transcripts, punctuation, capitals and semiotic classes, as an `evaluate` module."""

from __future__ import annotations

import evaluate

from speech_robust_bench.extensions.text_metrics.text_formatting import formatting_scores  # From: speech-robust-bench
from speech_robust_bench.scoring.evaluate_base import TextColumns, metric_info  # From: speech-robust-bench
from speech_robust_bench.scoring.scoring import versions  # From: speech-robust-bench

_DESCRIPTION = """\
How a transcript is written: F1 of each punctuation mark, the share of words with wrong capitals, and for numbers,
dates, times, money, telephone numbers and addresses whether class, value and form are right. From raw transcripts.
"""

_KWARGS_DESCRIPTION = """
Args:
    predictions (list of str): what the recogniser wrote, raw.
    references (list of str): what was said, as it should be written.
    normaliser (str): by which words are matched: 'srb-paper-1' (default), 'whisper-en', 'whisper-basic' or 'none'.
Returns:
    punctuation (precision, recall, f1, expected, and the same for each of its marks), case_error_rate, cased_words,
    classes (for each: expected, class, value, written, invented), utterances, normaliser, unit.

Examples:
    The full stop is there, the comma is not, one word of four has no capital; the $20 are right, but in words.

    >>> import evaluate
    >>> formatting = evaluate.load("formatting")
    >>> result = formatting.compute(
    ...     references=["Well, Mary owes Tom $20."], predictions=["Well Mary owes tom twenty dollars."]
    ... )
    >>> result["punctuation"]["marks"]["."]["f1"], result["punctuation"]["marks"][","]["recall"]
    (100.0, 0.0)
    >>> result["case_error_rate"], result["cased_words"]
    (25.0, 4)
    >>> result["classes"]["money"]
    {'expected': 1, 'class': 100.0, 'value': 100.0, 'written': 0.0, 'invented': 0}
"""


@evaluate.utils.file_utils.add_start_docstrings(_DESCRIPTION, _KWARGS_DESCRIPTION)
class Formatting(TextColumns, evaluate.Metric):
    def _info(self):
        return metric_info(_DESCRIPTION, _KWARGS_DESCRIPTION)

    def _compute(self, predictions, references, normaliser="srb-paper-1"):
        how = versions(normaliser)
        return {**formatting_scores(references, predictions, normaliser), "utterances": len(references), **how}
