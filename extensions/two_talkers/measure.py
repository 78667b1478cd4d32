"""What a recogniser makes of two people who talk at once, beside the permutation-invariant WER of both.

A recogniser that writes one text can at best have one talker right. So there is a second figure: the WER of the talker
whose words it has best (`best_wer`), chosen clip by clip. And how many predictions have two texts.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from speech_robust_bench.core.records import Prediction, Record, Whole
from speech_robust_bench.core.result_records import RunResults, ScoreValue
from speech_robust_bench.core.rows import TALKER_CHANGE, talkers
from speech_robust_bench.scoring.bootstrap import Units
from speech_robust_bench.scoring.estimate import ratio
from speech_robust_bench.scoring.measures import ConfigClips, Measure, PageTable, TableForm
from speech_robust_bench.scoring.scoring import align
from speech_robust_bench.scoring.table1 import cell_text


class TwoTalkers(Record, frozen=True, kw_only=True):
    """How well one of two talkers is transcribed."""

    clips: Whole
    two_texts: Whole
    best_wer: ScoreValue


def of_lines(
    lines: Sequence[Prediction],
    normaliser: str,
    unit: str | None,
    language: str | None,
    replicates: int,
    level: float,
    seed: int,
    resample: str = "auto",
) -> TwoTalkers | None:
    """Clips of two talkers, predictions of two texts, and the WER of the better talker; None where there is no such
    clip."""
    both = [line for line in lines if TALKER_CHANGE in (line.text or "")]
    if not both:
        return None
    said = [talkers(line.text or "") for line in both]
    written = [talkers(line.transcript) for line in both]
    pairs = [
        align([a[i] for a in said], [b[j] for b in written], normaliser=normaliser, unit=unit, language=language)
        for i in (0, 1)
        for j in (0, 1)
    ]
    best = np.argmin([pair.rates for pair in pairs], axis=0)
    clips = np.arange(len(both))
    errors = np.array([pair.errors for pair in pairs])[best, clips]
    lengths = np.array([pair.lengths for pair in pairs])[best, clips]
    units = Units.of([line.id for line in both], [line.speaker for line in both], resample)
    rate = ratio(units, errors, lengths, replicates=replicates, seed=seed)
    span = rate.interval(level)
    best_wer = ScoreValue(value=round(rate.value, 4), interval=span and [round(bound, 4) for bound in span])
    return TwoTalkers(clips=len(both), two_texts=sum(bool(second) for _, second in written), best_wer=best_wer)


def _rows(result: RunResults, folder: Path) -> list[tuple[str, ...]]:
    return [
        (config, cell_text(entry.wer, True), cell_text(both.best_wer, True), str(both.two_texts), str(both.clips))
        for config, entry in result.configs.items()
        if (both := OVERLAP.of(entry))
    ]


def _of_config(clips: ConfigClips) -> TwoTalkers | None:
    if not clips.counts:
        return None
    options, lines = clips.options, clips.predictions.lines
    intervals = (options.replicates, options.level, options.seed, options.resample)
    return of_lines(lines, options.normaliser, options.unit, clips.language, *intervals)


OVERLAP = Measure(
    "overlap",
    TwoTalkers,
    _of_config,
    table=TableForm(
        "overlap",
        "print the WER of two talkers, and of the better one",
        ("config", "WER of both", "WER of the better talker", "two texts", "clips"),
        _rows,
        "these runs have no config of two talkers; run them on 'en_overlap_*'",
    ),
    section=PageTable(
        "Two talkers at once",
        "Two people talk at once, and the words of both count: each talker is compared with one of the texts that a "
        "recogniser wrote, whichever way has fewer errors. One that writes a single text deletes one talker; how well "
        "it has the other is the WER of the better talker. A separator as a front end gives two texts.",
        ("WER of both", "WER of the better talker", "two texts %"),
        lambda entry, both: (entry.wer, both.best_wer, (100 * both.two_texts / both.clips, 0)),
    ),
)
