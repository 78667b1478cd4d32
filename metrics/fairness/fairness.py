"""Error rates of groups of speakers and how far they are apart, as an `evaluate` module."""

from __future__ import annotations

import evaluate

from speech_robust_bench.core.errors import UserError  # From: speech-robust-bench
from speech_robust_bench.scoring.evaluate_base import TextColumns, metric_info  # From: speech-robust-bench
from speech_robust_bench.scoring.groups import disparity, with_intersections  # From: speech-robust-bench
from speech_robust_bench.scoring.scoring import align, versions  # From: speech-robust-bench

_DESCRIPTION = """\
Word error rate of any number of groups of speakers, the gap and the log2 ratio between the worst and the best group,
and the error rate of a population in which the groups have other shares than in the data (Aksenova et al. 2021).
"""

_KWARGS_DESCRIPTION = """
Args:
    predictions (list of str): the recogniser's transcripts.
    references (list of str): what was said.
    groups (dict of str to list): columns of labels, {'gender': ['female', ...], 'accent': [...]}; None where unknown.
    intersections (list of lists): columns to cross, [['gender', 'accent']]; the result is named 'gender & accent'.
    weights (dict of str to dict): shares of the population, {'gender': {'female': 0.5, 'male': 0.5}}, for any columns.
    minimum (int): groups with fewer utterances are listed, but left out of gap and ratio. 1 by default.
    normaliser (str): 'srb-paper-1' (default: lower case, no punctuation), 'srb-numbers-1' (numbers however
        written), 'whisper-en', 'whisper-basic' or 'none'.
    unit (str): 'word', 'char' or 'char-nospace'; by default what the language is counted in.
    language (str): 'en', 'zh', ...; languages written without spaces are counted in characters, all others in words.
Returns:
    wer, columns (of each column: groups with wer, utterances and reference_length; best, worst, gap in points,
    log2_ratio, unlabelled; weighted_wer if there are weights), utterances, normaliser, unit.

Examples:
    One of two words of group A is wrong (50 %), one of four of group B (25 %), none of C. The gap is 50 points. If A
    is a tenth of the population, B three tenths and C the rest, their WER is 0.1 x 50 + 0.3 x 25 = 12.5.

    >>> import evaluate
    >>> fairness = evaluate.load("fairness")
    >>> result = fairness.compute(
    ...     references=["good morning", "the cat sat down", "all day"],
    ...     predictions=["good mourning", "the cat sat town", "all day"],
    ...     groups={"region": ["A", "B", "C"]},
    ...     weights={"region": {"A": 0.1, "B": 0.3, "C": 0.6}},
    ... )
    >>> region = result["columns"]["region"]
    >>> region["gap"], region["worst"], region["best"], round(region["weighted_wer"], 6), result["wer"]
    (50.0, 'A', 'C', 12.5, 25.0)
"""


@evaluate.utils.file_utils.add_start_docstrings(_DESCRIPTION, _KWARGS_DESCRIPTION)
class Fairness(TextColumns, evaluate.Metric):
    def _info(self):
        return metric_info(_DESCRIPTION, _KWARGS_DESCRIPTION)

    def _compute(
        self,
        predictions,
        references,
        groups,
        intersections=(),
        weights=None,
        minimum=1,
        normaliser="srb-paper-1",
        unit=None,
        language=None,
    ):
        counts = align(references, predictions, normaliser=normaliser, unit=unit, language=language)
        columns = with_intersections(groups, intersections)
        weights = weights or {}
        unknown = sorted(set(weights) - set(columns))
        if unknown:
            raise UserError(f"there are weights for '{unknown[0]}' but no such column; there are {', '.join(columns)}")
        return {
            "wer": counts.rate,
            "columns": {c: disparity(counts, labels, weights.get(c), minimum) for c, labels in columns.items()},
            "utterances": len(counts),
            **versions(normaliser, unit, language),
        }
