"""Names and terms in transcripts, as an `evaluate` module."""

from __future__ import annotations

import evaluate

from speech_robust_bench.extensions.text_metrics.text_formatting import term_scores  # From: speech-robust-bench
from speech_robust_bench.scoring.evaluate_base import TextColumns, metric_info  # From: speech-robust-bench
from speech_robust_bench.scoring.scoring import versions  # From: speech-robust-bench

_DESCRIPTION = """\
Precision and recall of given terms (names, products, jargon), the error rates of their words and of all others, and
false alarms in utterances in which none of them is said.
"""

_KWARGS_DESCRIPTION = """
Args:
    predictions (list of str): what the recogniser wrote.
    references (list of str): what was said.
    terms (list of str, or list of lists of str): the terms, of all utterances or of each.
    capitals (bool): whether a term must have the capitals of the list (False by default): compares words as written.
    normaliser (str): 'srb-paper-1' (default: lower case, no punctuation), 'whisper-en', 'whisper-basic' or 'none'.
Returns:
    precision, recall, f1, expected, terms (the same for each), b_wer, u_wer, biased_utterances, anti_biased_utterances,
    false_alarm_rate, utterances, normaliser, unit.

Examples:
    New York is recognised once of twice; Rome is written where nobody says it.

    >>> import evaluate
    >>> terms = evaluate.load("terms")
    >>> result = terms.compute(
    ...     references=["from New York to New York", "we go home"],
    ...     predictions=["from new york to newark", "we go rome"],
    ...     terms=["New York", "Rome"],
    ... )
    >>> result["precision"], result["recall"], result["false_alarm_rate"]
    (50.0, 50.0, 100.0)
    >>> result["b_wer"], round(result["u_wer"], 1)
    (50.0, 20.0)
"""


@evaluate.utils.file_utils.add_start_docstrings(_DESCRIPTION, _KWARGS_DESCRIPTION)
class Terms(TextColumns, evaluate.Metric):
    def _info(self):
        return metric_info(_DESCRIPTION, _KWARGS_DESCRIPTION)

    def _compute(self, predictions, references, terms, capitals=False, normaliser="srb-paper-1"):
        how = versions(normaliser)
        scores = term_scores(references, predictions, terms, normaliser, capitals)
        return {**scores, "utterances": len(references), **how}
