"""Bursts and loops: words that a recogniser inserted in a row, and phrases that it wrote over and over.

A burst is a run of at least four inserted words. A loop is a phrase of up to eight words written four times in a row (a
single word) or three times (a longer phrase) where the reference does not repeat it: recognisers that write text from
left to right fall into such loops on noise and silence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from speech_robust_bench.scoring.word_errors import Alignment, Coded

BURST = 4
LONGEST_PHRASE = 8
REPEATS = 3
REPEATS_OF_A_WORD = 4


@dataclass(frozen=True)
class Span:
    """A stretch of one transcript: which one, from which of its words, how many words; the period of a loop."""

    clip: int
    start: int
    length: int
    period: int = 0


def bursts(alignment: Alignment, least: int = BURST) -> list[Span]:
    """Runs of inserted words."""
    hypothesis = alignment.hypothesis
    return [
        Span(clip, start - int(hypothesis.starts[clip]), length)
        for clip, start, length in _runs(alignment.inserted, hypothesis.owner)
        if length >= least
    ]


def loops(hypothesis: Coded) -> list[Span]:
    """Repeated phrases, the shortest period first; what lies within a loop that was found is not found again."""
    words, owner = hypothesis.words, hypothesis.owner
    taken = np.zeros(len(words), dtype=bool)
    spans = []
    for period in range(1, min(LONGEST_PHRASE, max(len(words) - 1, 0)) + 1):
        same = np.zeros(len(words), dtype=bool)
        same[period:] = (words[period:] == words[:-period]) & (owner[period:] == owner[:-period])
        repeats = REPEATS_OF_A_WORD if period == 1 else REPEATS
        if np.count_nonzero(same) < (repeats - 1) * period:
            continue
        for clip, start, length in _runs(same, owner):
            first, total = start - period, length + period
            if total >= repeats * period and not taken[first : first + total].all():
                taken[first : first + total] = True
                spans.append(Span(clip, first - int(hypothesis.starts[clip]), total, period))
    return sorted(spans, key=lambda span: (span.clip, span.start))


def invented_loops(alignment: Alignment) -> list[Span]:
    """The loops of transcripts whose reference has none of the same period."""
    hypothesis = loops(alignment.hypothesis)
    said = {(span.clip, span.period) for span in loops(alignment.reference)} if hypothesis else set()
    return [span for span in hypothesis if (span.clip, span.period) not in said]


def _runs(mask: np.ndarray, owner: np.ndarray) -> list[tuple[int, int, int]]:
    """Stretches of True within one transcript: (transcript, first place, length)."""
    if not mask.any():
        return []
    change = np.flatnonzero((mask[1:] != mask[:-1]) | (owner[1:] != owner[:-1])) + 1
    starts = np.concatenate([[0], change])
    lengths = np.diff(np.concatenate([starts, [len(mask)]]))
    kept = mask[starts]
    return list(zip(owner[starts[kept]].tolist(), starts[kept].tolist(), lengths[kept].tolist(), strict=True))


def looped_insertions(alignment: Alignment, spans: Sequence[Span] | None = None) -> np.ndarray:
    """How many of each clip's inserted words are in its loops."""
    hypothesis = alignment.hypothesis
    looped = np.zeros(len(hypothesis.words), dtype=bool)
    for span in invented_loops(alignment) if spans is None else spans:
        first = int(hypothesis.starts[span.clip]) + span.start
        looped[first : first + span.length] = True
    return np.bincount(hypothesis.owner[looped & alignment.inserted], minlength=len(hypothesis))


def fold(words: Sequence[str]) -> list[tuple[str, int]]:
    """A transcript in pieces, each with the number of times it is written in a row: loops once, all else as it is.

    >>> fold("no more more more more more please".split())
    [('no', 1), ('more', 5), ('please', 1)]
    >>> fold("thank you thank you thank you".split())
    [('thank you', 3)]
    """
    numbers = {word: number for number, word in enumerate(dict.fromkeys(words))}
    coded = Coded(np.array([numbers[word] for word in words], dtype=np.int64), np.array([0, len(words)]))
    pieces, at = [], 0
    for span in loops(coded):
        times, rest = divmod(span.length, span.period)
        if span.start < at:  # within a longer loop
            continue
        pieces += [
            (" ".join(words[at : span.start]), 1),
            (" ".join(words[span.start : span.start + span.period]), times),
        ]
        at = span.start + span.length - rest
    pieces.append((" ".join(words[at:]), 1))
    return [(text, times) for text, times in pieces if text]


def folded(words: Sequence[str]) -> str:
    """A transcript for people: “more” × 441 in place of 441 words.

    >>> folded("and more more more more".split())
    'and “more” × 4'
    """
    return " ".join(piece if times == 1 else f"“{piece}” × {times}" for piece, times in fold(words))
