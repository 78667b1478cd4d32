"""NWERD, WER degradation over difficulty, as an `evaluate` module."""

from __future__ import annotations

import evaluate

from speech_robust_bench.scoring.degradation import WerdOptions, score  # From: speech-robust-bench
from speech_robust_bench.scoring.difficulty import resolve  # From: speech-robust-bench
from speech_robust_bench.scoring.evaluate_base import TextColumns, metric_info  # From: speech-robust-bench

_DESCRIPTION = """\
Normalised WER Degradation (NWERD) is 100 x WERD / difficulty, where WERD is the word error rate in a scenario minus
that on clean speech, and difficulty comes from the speech quality of the scenario (DNSMOS and PESQ; 50 on average). It
gives more weight to errors in scenarios that are easy to understand.
"""

_KWARGS_DESCRIPTION = """
Args:
    predictions (list of str): the recogniser's transcripts of the scenario.
    references (list of str): what was said.
    clean_predictions (list of str): the recogniser's transcripts of clean speech.
    difficulty (float or str): the difficulty, or the scenario to look up: 'noise_sev3', 'en_noise_sev3', 'es_accent'.
        Adversarial scenarios are refused: they have none.
    table (str): difficulty table: 'paper-table3' (default), 'srb-1', or the path of a CSV file of `srb difficulty`.
    clean_references (list of str): what was said there. Leave out if they are the same clips in the same order.
    ids, clean_ids (lists of str): ids of the clips, if they are the same clips in another order, or only some of them.
    speakers (list of str): speakers of the clips; the interval is then over speakers.
    floor (bool): replace a negative WERD by 0, as the authors' code does.
    normaliser (str): 'srb-paper-1' (default: lower case, no punctuation), 'srb-numbers-1' (numbers however
        written), 'whisper-en', 'whisper-basic' or 'none'.
    unit (str): 'word', 'char' or 'char-nospace'; by default what the language is counted in.
    language (str): 'en', 'zh', ...; languages written without spaces are counted in characters, all others in words.
    replicates (int): bootstrap replicates for an interval; 0 (default) for none.
    level (float): level of the interval, 0.95 by default.
    seed (int): seed of the bootstrap.
Returns:
    nwerd, werd, wer, clean_wer, difficulty, difficulty_table, paired, utterances, normaliser, unit; with replicates
    also nwerd_interval and werd_interval.

Examples:
    WERD is 25 points; environmental noise at severity 3 has difficulty 77.0; 100 x 25 / 77.0 = 32.5.

    >>> import evaluate
    >>> nwerd = evaluate.load("nwerd")
    >>> result = nwerd.compute(
    ...     references=["the cat sat down"],
    ...     predictions=["the cat sat town"],
    ...     clean_predictions=["The cat sat down."],
    ...     difficulty="en_noise_sev3",
    ... )
    >>> round(result["nwerd"], 1), result["werd"], result["difficulty"], result["difficulty_table"]
    (32.5, 25.0, 77.0, 'paper-table3')
"""


@evaluate.utils.file_utils.add_start_docstrings(_DESCRIPTION, _KWARGS_DESCRIPTION)
class Nwerd(TextColumns, evaluate.Metric):
    def _info(self):
        return metric_info(_DESCRIPTION, _KWARGS_DESCRIPTION)

    def _compute(
        self,
        predictions,
        references,
        clean_predictions,
        difficulty,
        table="paper-table3",
        clean_references=None,
        ids=None,
        clean_ids=None,
        speakers=None,
        floor=False,
        normaliser="srb-paper-1",
        unit=None,
        language=None,
        replicates=0,
        level=0.95,
        seed=0,
    ):
        value, source = resolve(difficulty, table)
        result = score(
            references,
            predictions,
            clean_predictions,
            clean_references,
            ids=ids,
            clean_ids=clean_ids,
            speakers=speakers,
            options=WerdOptions(floor, normaliser, unit, language, replicates, level, seed),
        )
        scale = 100 / value
        if "werd_interval" in result:
            span = result["werd_interval"]
            result["nwerd_interval"] = span and [scale * end for end in span]
        return {"nwerd": scale * result["werd"], "difficulty": value, "difficulty_table": source, **result}
