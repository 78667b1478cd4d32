"""Calibration of a recogniser's confidence in its words, as an `evaluate` module."""

from __future__ import annotations

import evaluate

from speech_robust_bench.core.errors import UserError  # From: speech-robust-bench
from speech_robust_bench.extensions.text_metrics.calibration import (  # From: speech-robust-bench
    calibration,
    judged_clips,
)
from speech_robust_bench.scoring.evaluate_base import TextColumns, metric_info  # From: speech-robust-bench
from speech_robust_bench.scoring.scoring import versions  # From: speech-robust-bench

_DESCRIPTION = """\
Does a recogniser know when it fails? Expected calibration error of its confidence in each word, and the area under the
ROC curve of finding wrong words by it.
"""

_KWARGS_DESCRIPTION = """
Args:
    predictions (list of str): what the recogniser wrote.
    references (list of str): what was said.
    confidences (list of lists of float): of each prediction, a number from 0 to 1 for each of its words; or the numbers
        as one text, "0.9 0.3".
    normaliser (str): 'srb-paper-1' (default: lower case, no punctuation), 'whisper-en', 'whisper-basic' or 'none'.
Returns:
    ece, auc, confidence, accuracy (points, None where there is none), words, wrong, utterances, normaliser, unit.

Examples:
    Three words are right, at 0.9; one is wrong, at 0.3: it is found, and the confidences are off by 15 points.

    >>> import evaluate
    >>> confidence = evaluate.load("confidence")
    >>> result = confidence.compute(
    ...     references=["the cat sat down"],
    ...     predictions=["the cat sat town"],
    ...     confidences=[[0.9, 0.9, 0.9, 0.3]],
    ... )
    >>> result["ece"], result["auc"]
    (15.0, 100.0)
"""


def numbers(given) -> list[float]:
    """Numbers, given as such or as text."""
    try:
        return [float(number) for number in (given.split() if isinstance(given, str) else given)]
    except (TypeError, ValueError):
        raise UserError(f"confidences are numbers, not {given!r}") from None


@evaluate.utils.file_utils.add_start_docstrings(_DESCRIPTION, _KWARGS_DESCRIPTION)
class Confidence(TextColumns, evaluate.Metric):
    def _info(self):
        return metric_info(_DESCRIPTION, _KWARGS_DESCRIPTION)

    def _compute(self, predictions, references, confidences, normaliser="srb-paper-1"):
        how = versions(normaliser)
        if len(confidences) != len(predictions):
            raise UserError(
                f"{len(predictions)} predictions but {len(confidences)} confidences; they must pair one to one"
            )
        clips = []
        for number, (text, sure) in enumerate(zip(predictions, confidences, strict=True)):
            words, sure = text.split(), numbers(sure)
            if len(words) != len(sure):
                raise UserError(f"predictions[{number}] has {len(words)} words and {len(sure)} confidences")
            clips.append(list(zip(words, sure, strict=True)))
        return {
            **calibration(judged_clips(references, clips, normaliser)).as_json(),
            "utterances": len(references),
            **how,
        }
