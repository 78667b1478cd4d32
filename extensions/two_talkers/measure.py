"""The measure `overlap` of two talkers at once, beside the permutation-invariant WER of both.

A recogniser that writes one text can at best have one talker right. `best_wer` is the WER of the talker with the fewer
errors, chosen clip by clip, and `two_texts` the number of predictions with two texts.
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
from speech_robust_bench.scoring.score_options import ScoreOptions
from speech_robust_bench.scoring.scoring import align
from speech_robust_bench.scoring.table1 import cell_text


class TwoTalkers(Record, frozen=True, kw_only=True):
    """The better transcribed of two talkers."""

    clips: Whole
    two_texts: Whole
    best_wer: ScoreValue


def two_talkers(lines: Sequence[Prediction], options: ScoreOptions, language: str | None = None) -> TwoTalkers | None:
    """The measure of some predictions; None where no clip has two talkers."""
    both = [line for line in lines if TALKER_CHANGE in (line.text or "")]
    if not both:
        return None
    said = [talkers(line.text or "") for line in both]
    written = [talkers(line.transcript) for line in both]
    pairs = [
        align(
            [a[i] for a in said],
            [b[j] for b in written],
            normaliser=options.normaliser,
            unit=options.unit,
            language=language,
        )
        for i in (0, 1)
        for j in (0, 1)
    ]
    best = np.argmin([pair.rates for pair in pairs], axis=0)
    clips = np.arange(len(both))
    errors = np.array([pair.errors for pair in pairs])[best, clips]
    lengths = np.array([pair.lengths for pair in pairs])[best, clips]
    units = Units.of([line.id for line in both], [line.speaker for line in both], options.resample)
    rate = ratio(units, errors, lengths, replicates=options.replicates, seed=options.seed)
    span = rate.interval(options.level)
    best_wer = ScoreValue(value=round(rate.value, 4), interval=span and [round(bound, 4) for bound in span])
    return TwoTalkers(clips=len(both), two_texts=sum(bool(second) for _, second in written), best_wer=best_wer)


def _rows(result: RunResults, folder: Path) -> list[tuple[str, ...]]:
    return [
        (config, cell_text(entry.wer, True), cell_text(both.best_wer, True), str(both.two_texts), str(both.clips))
        for config, entry in result.configs.items()
        if (both := OVERLAP.of(entry))
    ]


def _of_config(clips: ConfigClips) -> TwoTalkers | None:
    return two_talkers(clips.predictions.lines, clips.options, clips.language) if clips.counts else None


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
        "Two people talk at once, and the words of both count. Each talker is compared with one text of the "
        "recogniser, in the order with fewer errors. A recogniser that writes a single text misses one talker. A "
        "separator as a front end gives two texts.",
        ("WER of both, %", "WER of the better talker, %", "two texts, % of clips", "clips"),
        lambda entry, both: (entry.wer, both.best_wer, (100 * both.two_texts / both.clips, 0), (both.clips, 0)),
    ),
)
