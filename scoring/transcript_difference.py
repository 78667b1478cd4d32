"""How far two transcripts of the same clips are apart, which needs no reference: of two recognisers, or of one
recogniser on a clip under a scenario and on the clean clip.

The measure is that of AequeVox without transcripts (Rajan, Udeshi and Chattopadhyay, FASE 2022): word Levenshtein
distances over the lengths of the longer transcripts, pooled over the clips. 0 is the same words, 100 nothing alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypedDict

import numpy as np

from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.names import parse
from speech_robust_bench.scoring.bootstrap import Units
from speech_robust_bench.scoring.estimate import ratio
from speech_robust_bench.scoring.runs import Predictions, Run
from speech_robust_bench.scoring.scoring import align


class DifferenceRow(TypedDict):
    """How far two recognisers are apart on a config: words that differ, per cent of the longer transcript."""

    config: str
    clips: int
    difference: float
    interval: tuple[float, float] | None


@dataclass(frozen=True)
class Difference:
    """Of each clip that both have: its id, the words that differ, and the words of the longer transcript."""

    ids: Sequence[str]
    speakers: Sequence[str | None]
    edits: np.ndarray
    lengths: np.ndarray

    @property
    def value(self) -> float:
        """Per cent; nan where neither wrote a word."""
        total = self.lengths.sum()
        return 100 * float(self.edits.sum()) / float(total) if total else float("nan")

    def interval(
        self, replicates: int, level: float = 0.95, seed: int = 0, resample: str = "auto"
    ) -> tuple[float, float] | None:
        """An interval over the speakers, or the clips where those are not known; None where it cannot be told."""
        units = Units.of(list(self.ids), list(self.speakers), resample)
        return ratio(units, self.edits, self.lengths, replicates=replicates, seed=seed).interval(level)


def difference(
    one: Predictions, other: Predictions, normaliser: str = "srb-paper-1", unit: str | None = None
) -> Difference:
    """Of two sets of predictions, over the clips that both have; a failed clip counts as an empty transcript."""
    theirs = {line.id: line.transcript for line in other.lines}
    shared = [line for line in one.lines if line.id in theirs]
    counts = align(
        [line.transcript for line in shared],
        [theirs[line.id] for line in shared],
        normaliser=normaliser,
        unit=unit,
        language=parse(one.config).language,
    )
    written = counts.hits + counts.substitutions + counts.insertions
    return Difference(
        [line.id for line in shared],
        [line.speaker for line in shared],
        counts.errors,
        np.maximum(counts.lengths, written),
    )


def between(
    a: Run, b: Run, normaliser: str = "srb-paper-1", replicates: int = 1000, seed: int = 0, resample: str = "auto"
) -> list[DifferenceRow]:
    """How far two recognisers are apart on each config that both were run on; references are not looked at."""
    rows = []
    for config in (config for config in a.configs if config in b.configs):
        apart = difference(a.read(config), b.read(config), normaliser)
        if np.isfinite(apart.value):
            span = apart.interval(replicates, seed=seed, resample=resample)
            clips = len(apart.ids)
            rows.append(DifferenceRow(config=config, clips=clips, difference=apart.value, interval=span))
    if not rows:
        raise UserError("the two runs have no config with words in common; run both on the same configs")
    return rows
