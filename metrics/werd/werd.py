"""WERD, WER degradation, as an `evaluate` module: what a scenario costs against clean speech, in points of WER."""

from __future__ import annotations

import evaluate

from speech_robust_bench.scoring.degradation import WerdOptions, score  # From: speech-robust-bench
from speech_robust_bench.scoring.evaluate_base import TextColumns, metric_info  # From: speech-robust-bench

_DESCRIPTION = """\
WER Degradation (WERD) is the word error rate of a recogniser in a scenario minus its word error rate on clean speech,
in points (per cent). 0 means that the scenario costs nothing; a negative value, that it helps.
"""

_KWARGS_DESCRIPTION = """
Args:
    predictions (list of str): the recogniser's transcripts of the scenario.
    references (list of str): what was said.
    clean_predictions (list of str): the recogniser's transcripts of clean speech.
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
    werd, wer, clean_wer (points), paired, utterances, normaliser, unit; with replicates also werd_interval.

Examples:
    Four words were said. One is wrong in noise (25 %), none in the clean clip (0 %): WERD is 25 points.

    >>> import evaluate
    >>> werd = evaluate.load("werd")
    >>> result = werd.compute(
    ...     references=["the cat sat down"],
    ...     predictions=["the cat sat town"],
    ...     clean_predictions=["The cat sat down."],
    ... )
    >>> result["werd"], result["wer"], result["clean_wer"], result["normaliser"]
    (25.0, 25.0, 0.0, 'srb-paper-1')
"""


@evaluate.utils.file_utils.add_start_docstrings(_DESCRIPTION, _KWARGS_DESCRIPTION)
class Werd(TextColumns, evaluate.Metric):
    def _info(self):
        return metric_info(_DESCRIPTION, _KWARGS_DESCRIPTION)

    def _compute(
        self,
        predictions,
        references,
        clean_predictions,
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
        return score(
            references,
            predictions,
            clean_predictions,
            clean_references,
            ids=ids,
            clean_ids=clean_ids,
            speakers=speakers,
            options=WerdOptions(floor, normaliser, unit, language, replicates, level, seed),
        )
