"""TASR and UASR, how well an attack on a recogniser works, as an `evaluate` module."""

from __future__ import annotations

import evaluate

from speech_robust_bench.scoring.evaluate_base import TextColumns, metric_info  # From: speech-robust-bench
from speech_robust_bench.scoring.scoring import check_texts, versions  # From: speech-robust-bench
from speech_robust_bench.scoring.success_rates import success_rates  # From: speech-robust-bench

_DESCRIPTION = """\
Targeted and untargeted success rates of an adversarial attack, in per cent (Olivier 2023, Eq. 6.1 and 6.2), on words
and on characters: TASR = max(1 - WER(prediction, target), 0), UASR = min(WER(prediction, reference), 1).
"""

_KWARGS_DESCRIPTION = """
Args:
    predictions (list of str): the recogniser's transcripts of the attacked audio.
    references (list of str): what was said.
    targets (list of str): the transcripts that the attacker wanted. Leave out if the attack was untargeted.
    pooled (bool): put the error rate of all utterances together into the equations. By default they are applied to each
        utterance and averaged.
    normaliser (str): 'srb-paper-1' (default: lower case, no punctuation), 'srb-numbers-1' (numbers however
        written), 'whisper-en', 'whisper-basic' or 'none'.
Returns:
    uasr (words), uasr_char; with targets also tasr (words), tasr_char and exact, the share of utterances whose
    transcript is exactly their target; utterances, pooled, normaliser.

Examples:
    Of the two words "good morning" one is wrong: UASR is 50 %. The target was "good mourning", and was reached.

    >>> import evaluate
    >>> tasr = evaluate.load("tasr")
    >>> result = tasr.compute(
    ...     references=["good morning", "the cat sat down"],
    ...     predictions=["good mourning", "the cat sat down"],
    ...     targets=["good mourning", "open all the doors"],
    ... )
    >>> result["uasr"], result["tasr"], result["exact"]
    (25.0, 50.0, 50.0)
"""


@evaluate.utils.file_utils.add_start_docstrings(_DESCRIPTION, _KWARGS_DESCRIPTION)
class Tasr(TextColumns, evaluate.Metric):
    def _info(self):
        return metric_info(_DESCRIPTION, _KWARGS_DESCRIPTION)

    def _compute(self, predictions, references, targets=None, pooled=False, normaliser="srb-paper-1"):
        if targets is not None:
            check_texts(targets=targets, predictions=predictions)

        rates = success_rates(references, predictions, targets, normaliser=normaliser, pooled=pooled)
        about = {"utterances": len(predictions), "pooled": pooled, "normaliser": versions(normaliser)["normaliser"]}
        return {**rates, **about}
