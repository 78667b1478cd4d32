"""The calibration of word confidences: does a recogniser know when it fails?

Expected calibration error (Guo et al., ICML 2017): words in ten bins of confidence, and the mean distance between a
bin's confidence and its share of right words, weighted by words. AUC of error detection: the chance that a wrong word
has less confidence than a right one (area under the ROC curve, ties count half). A word is right if it is a hit of the
alignment with the reference; substituted and inserted words are wrong, and deleted ones have no confidence.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.records import Prediction, Record, Whole
from speech_robust_bench.core.result_records import RunResults
from speech_robust_bench.scoring.measures import ConfigClips, Measure, TableForm
from speech_robust_bench.scoring.scoring import normalise
from speech_robust_bench.scoring.word_alignment import HIT, operations

BINS = 10


class Calibration(Record, frozen=True, kw_only=True):
    """The calibration of one config, in points."""

    words: Whole
    wrong: Whole
    confidence: float | None
    accuracy: float | None
    ece: float | None
    auc: float | None


def judged(
    reference: str, words: Sequence[tuple[str, float]], normaliser: str = "srb-paper-1", language: str | None = None
) -> list[tuple[float, bool]]:
    """The confidence of every recognised word, and whether it is right. Words that normalise to nothing are left out.

    >>> judged("the cat sat", [("The", 0.9), ("cap", 0.3), ("sat.", 0.8)])
    [(0.9, True), (0.3, False), (0.8, True)]
    """
    return judged_clips([reference], [words], normaliser, language)


def judged_clips(
    references: Sequence[str],
    words: Sequence[Sequence[tuple[str, float]]],
    normaliser: str = "srb-paper-1",
    language: str | None = None,
) -> list[tuple[float, bool]]:
    """`judged` of many clips, one after the other."""
    parts = [
        [(part, sure) for word, sure in clip for part in normalise(word, normaliser, language).split()]
        for clip in words
    ]
    said = [normalise(reference, normaliser, language).split() for reference in references]
    steps = operations(said, [[part for part, _ in clip] for clip in parts])
    return [
        (clip[step.hypothesis][1], step.kind == HIT)
        for clip, alignment in zip(parts, steps, strict=True)
        for step in alignment
        if step.hypothesis is not None
    ]


def calibration(pairs: Iterable[tuple[float, bool]]) -> Calibration:
    """ECE and AUC in points, with their counts; None without words, AUC also if all words are right or all wrong.

    >>> calibration([(0.9, True), (0.9, True), (0.9, False), (0.1, False)]).ece
    20.0
    """
    table = np.array([(sure, right) for sure, right in pairs], dtype=float).reshape(-1, 2)
    sure, right = table[:, 0], table[:, 1] > 0
    if ((sure < 0) | (sure > 1) | np.isnan(sure)).any():
        raise UserError("confidences must be from 0 to 1")
    if not len(sure):
        return Calibration(words=0, wrong=0, confidence=None, accuracy=None, ece=None, auc=None)
    return Calibration(
        words=len(sure),
        wrong=int((~right).sum()),
        confidence=round(100 * float(sure.mean()), 4),
        accuracy=round(100 * float(right.mean()), 4),
        ece=round(_ece(sure, right), 4),
        auc=_auc(sure, right),
    )


def _ece(sure: np.ndarray, right: np.ndarray) -> float:
    bins = np.minimum((sure * BINS).astype(int), BINS - 1)
    gaps = np.bincount(bins, sure - right, BINS)
    return 100 * float(np.abs(gaps).sum()) / len(sure)


def _auc(sure: np.ndarray, right: np.ndarray) -> float | None:
    """By ranks (Mann and Whitney), equal confidences sharing theirs."""
    wrong = int((~right).sum())
    if not wrong or wrong == len(right):
        return None
    _, place, count = np.unique(sure, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(count) - (count - 1) / 2)[place]
    above = ranks[right].sum() - (len(right) - wrong) * (len(right) - wrong + 1) / 2
    return round(100 * float(above) / (wrong * (len(right) - wrong)), 4)


def calibration_of(lines: Iterable[Prediction], language: str | None = None) -> Calibration | None:
    """The calibration of one config's predictions; None if they have no confidences."""
    known = [(line.text or "", sure_words(line)) for line in lines if line.word_confidences]
    if not any(words for _, words in known):
        return None
    return calibration(judged_clips([text for text, _ in known], [words for _, words in known], language=language))


def sure_words(line: Prediction) -> list[tuple[str, float]]:
    """The words of a line whose confidence is told; a recogniser may know their times alone."""
    told = line.word_confidences or ()
    return [(word.word, word.confidence) for word in told if word.confidence is not None]


def _rows(result: RunResults, folder: Path) -> list[tuple[str, ...]]:
    return [
        (config, str(c.words), str(c.wrong), *map(_cell, (c.confidence, c.accuracy, c.ece, c.auc)))
        for config, entry in result.configs.items()
        if (c := CONFIDENCE.of(entry))
    ]


def _cell(value: float | None) -> str:
    return "" if value is None else f"{value:.1f}"


def _of_config(clips: ConfigClips) -> Calibration | None:
    return calibration_of(clips.predictions.lines, clips.language) if clips.counts else None


CONFIDENCE = Measure(
    "confidence",
    Calibration,
    _of_config,
    needs="word_confidences",
    columns=lambda record: {"ece": record.ece, "auc": record.auc},
    table=TableForm(
        "confidence",
        "print the calibration of word confidences: ECE and AUC per config",
        ("config", "words", "wrong", "confidence", "right %", "ECE", "AUC"),
        _rows,
        "no predictions of these runs have word confidences (docs/how-to/add-a-recogniser.md)",
    ),
)
