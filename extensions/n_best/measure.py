"""Oracle WER: of each n-best list the transcript with the fewest errors, as a perfect reranker would choose.

The 1-best transcript is in the list, so the oracle WER is never above the WER; the distance is what a better language
model or a reranker could gain at most. It falls with the length of the list, so lists of other lengths are not
comparable: the table has the length beside it. Asked for in Aksënova et al., "How Might We Create Better Benchmarks for
Speech Recognition?", BPPF 2021, Section 3.1.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from speech_robust_bench.core.records import Record, Whole
from speech_robust_bench.core.result_records import RunResults, ScoreValue
from speech_robust_bench.scoring.measures import ConfigClips, Measure, PageTable, TableForm
from speech_robust_bench.scoring.score_options import estimated, ratio_of
from speech_robust_bench.scoring.scoring import align
from speech_robust_bench.scoring.table1 import cell_text


class NBest(Record, frozen=True, kw_only=True):
    """The oracle WER of n-best lists, and how long the lists are."""

    clips: Whole
    listed: Whole  # clips with more than one transcript
    transcripts: float  # of a clip, on average
    longest: Whole
    oracle_wer: ScoreValue


def of_clips(clips: ConfigClips) -> NBest | None:
    """The oracle WER of the clips with a reference."""
    if clips.counts is None:
        return None
    lines = clips.predictions.transcribed.lines
    lists = [[line.transcript, *(line.alternatives or ())] for line in lines]
    sizes = np.array([len(each) for each in lists])
    counts = align(
        [line.text or "" for line, size in zip(lines, sizes, strict=True) for _ in range(size)],
        [text for each in lists for text in each],
        normaliser=clips.options.normaliser,
        unit=clips.options.unit,
        language=clips.language,
    )
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    fewest = np.minimum.reduceat(counts.errors, starts)
    return NBest(
        clips=len(lines),
        listed=int((sizes > 1).sum()),
        transcripts=round(float(sizes.mean()), 4),
        longest=int(sizes.max()),
        oracle_wer=estimated(ratio_of(clips.counts, fewest, counts.lengths[starts], clips.options), clips.options),
    )


def _rows(result: RunResults, folder: Path) -> list[tuple[str, ...]]:
    return [
        (
            config,
            cell_text(entry.wer, True),
            cell_text(lists.oracle_wer, True),
            f"{lists.transcripts:.1f}",
            str(lists.longest),
            str(lists.clips),
        )
        for config, entry in result.configs.items()
        if (lists := N_BEST.of(entry))
    ]


N_BEST = Measure(
    "n_best",
    NBest,
    of_clips,
    needs="alternatives",
    columns=lambda record: {"oracle_wer": record.oracle_wer.value},
    table=TableForm(
        "n_best",
        "print the oracle WER of n-best lists",
        ("config", "WER", "oracle WER", "transcripts\nper clip", "longest\nlist", "clips"),
        _rows,
        "these runs have no n-best lists; run a model with ?nbest=10 (docs/how-to/measure-n-best-lists.md)",
        advanced=True,
    ),
    section=PageTable(
        "N-best lists",
        "The oracle WER takes the transcript with the fewest errors from each list, as a perfect reranker would. "
        "Longer lists have a lower oracle WER, so compare lists of equal length.",
        ("WER, %", "oracle WER, %", "transcripts per clip", "longest list", "clips"),
        lambda entry, lists: (
            entry.wer,
            lists.oracle_wer,
            (lists.transcripts, 1),
            (lists.longest, 0),
            (lists.clips, 0),
        ),
    ),
)
