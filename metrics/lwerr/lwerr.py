"""LWERR, the log ratio of the WER of two groups, as an `evaluate` module."""

from __future__ import annotations

import evaluate

from speech_robust_bench.scoring.evaluate_base import TextColumns, metric_info  # From: speech-robust-bench
from speech_robust_bench.scoring.groups import log2_ratio, split  # From: speech-robust-bench
from speech_robust_bench.scoring.scoring import align, versions  # From: speech-robust-bench

_DESCRIPTION = """\
Log WER Ratio (LWERR) is log2(WER of female speakers / WER of male speakers), or of any two groups. 0 means no
disparity, +1 that the first group has twice the errors, -1 that it has half.
"""

_KWARGS_DESCRIPTION = """
Args:
    predictions (list of str): the recogniser's transcripts.
    references (list of str): what was said.
    groups (list of str): group of the speaker of each clip; None where it is not known.
    numerator (str): the first group, 'female' by default.
    denominator (str): the second group, 'male' by default.
    normaliser (str): 'srb-paper-1' (default: lower case, no punctuation), 'srb-numbers-1' (numbers however
        written), 'whisper-en', 'whisper-basic' or 'none'.
    unit (str): 'word', 'char' or 'char-nospace'; by default what the language is counted in.
    language (str): 'en', 'zh', ...; languages written without spaces are counted in characters, all others in words.
Returns:
    lwerr, wer (points, of each of the two groups), utterances (of each), normaliser, unit. Both groups without an error
    give 0; one without an error gives an infinite LWERR; one without a clip gives nan, for itself and for LWERR.

Examples:
    One of the two words of the woman is wrong (50 %), one of the four words of the man (25 %): log2(50 / 25) = 1.

    >>> import evaluate
    >>> lwerr = evaluate.load("lwerr")
    >>> result = lwerr.compute(
    ...     references=["good morning", "the cat sat down"],
    ...     predictions=["good mourning", "the cat sat town"],
    ...     groups=["female", "male"],
    ... )
    >>> result["lwerr"], result["wer"]
    (1.0, {'female': 50.0, 'male': 25.0})
"""


@evaluate.utils.file_utils.add_start_docstrings(_DESCRIPTION, _KWARGS_DESCRIPTION)
class Lwerr(TextColumns, evaluate.Metric):
    def _info(self):
        return metric_info(_DESCRIPTION, _KWARGS_DESCRIPTION)

    def _compute(
        self,
        predictions,
        references,
        groups,
        numerator="female",
        denominator="male",
        normaliser="srb-paper-1",
        unit=None,
        language=None,
    ):
        counts = align(references, predictions, normaliser=normaliser, unit=unit, language=language)
        parts = split(counts, groups)
        pair = (numerator, denominator)
        wer = {group: parts[group].rate if group in parts else float("nan") for group in pair}
        return {
            "lwerr": log2_ratio(wer[numerator], wer[denominator]),
            "wer": wer,
            "utterances": {group: len(parts[group]) if group in parts else 0 for group in pair},
            **versions(normaliser, unit, language),
        }
