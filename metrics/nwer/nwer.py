"""NWER, WER over difficulty, as an `evaluate` module."""

from __future__ import annotations

import evaluate

from speech_robust_bench.scoring.difficulty import resolve  # From: speech-robust-bench
from speech_robust_bench.scoring.evaluate_base import TextColumns, metric_info  # From: speech-robust-bench
from speech_robust_bench.scoring.scoring import align, versions  # From: speech-robust-bench

_DESCRIPTION = """\
Normalised WER (NWER) is 100 x WER / difficulty: the word error rate in a scenario over how hard the scenario is, by the
quality of its speech (DNSMOS and PESQ; 50 on average).
"""

_KWARGS_DESCRIPTION = """
Args:
    predictions (list of str): the recogniser's transcripts.
    references (list of str): what was said.
    difficulty (float or str): the difficulty, or the scenario to look up: 'noise_sev3', 'en_noise_sev3', 'es_accent'.
        Adversarial scenarios are refused: they have none.
    table (str): difficulty table: 'paper-table3' (default), 'srb-1', or the path of a CSV file of `srb difficulty`.
    normaliser (str): 'srb-paper-1' (default: lower case, no punctuation), 'srb-numbers-1' (numbers however
        written), 'whisper-en', 'whisper-basic' or 'none'.
    unit (str): 'word', 'char' or 'char-nospace'; by default what the language is counted in.
    language (str): 'en', 'zh', ...; languages written without spaces are counted in characters, all others in words.
Returns:
    nwer, wer, difficulty, difficulty_table, utterances, normaliser, unit.

Examples:
    One word of four is wrong, WER is 25; the difficulty is 50; 100 x 25 / 50 = 50.

    >>> import evaluate
    >>> nwer = evaluate.load("nwer")
    >>> result = nwer.compute(references=["the cat sat down"], predictions=["the cat sat town"], difficulty=50)
    >>> result["nwer"], result["wer"], result["difficulty_table"]
    (50.0, 25.0, 'given')
"""


@evaluate.utils.file_utils.add_start_docstrings(_DESCRIPTION, _KWARGS_DESCRIPTION)
class Nwer(TextColumns, evaluate.Metric):
    def _info(self):
        return metric_info(_DESCRIPTION, _KWARGS_DESCRIPTION)

    def _compute(
        self,
        predictions,
        references,
        difficulty,
        table="paper-table3",
        normaliser="srb-paper-1",
        unit=None,
        language=None,
    ):
        value, source = resolve(difficulty, table)
        counts = align(references, predictions, normaliser=normaliser, unit=unit, language=language)
        return {
            "nwer": 100 * counts.rate / value,
            "wer": counts.rate,
            "difficulty": value,
            "difficulty_table": source,
            "utterances": len(counts),
            **versions(normaliser, unit, language),
        }
