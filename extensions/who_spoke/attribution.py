"""cpWER and the diarization error rate: exact, for whatever labels a recogniser gives its speakers.

cpWER (Watanabe et al., "CHiME-6 Challenge", 2020): everything that one speaker says is one text, in time; the texts of
the reference and of the recogniser are paired so that the errors are fewest. Errors of pairs add up, so the pairing is
an assignment problem; a speaker without a partner has all words deleted, or inserted.

Diarization error rate (NIST's RT evaluations): missed speech, false alarms and speech of the wrong speaker, over the
seconds of speech of the reference; overlapped speech counts for each speaker. Speakers are paired so that they share
the most time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from speech_robust_bench.core.records import SpeakerTurn
from speech_robust_bench.scoring.word_alignment import count_edits

Times = Mapping[str, Sequence[tuple[float, float]]]  # speaker -> start and end of each turn


def texts_of(turns: Iterable[SpeakerTurn]) -> dict[str, str]:
    """What each speaker says: in time, or in the order of the turns if some have no time.

    >>> texts_of([SpeakerTurn("ann", 2, 3, "late"), SpeakerTurn("bob", 0, 9, "on"), SpeakerTurn("ann", 0, 1, "so")])
    {'bob': 'on', 'ann': 'so late'}
    """
    turns = list(turns)
    starts = [turn.start_s for turn in turns if turn.start_s is not None]
    if len(starts) == len(turns):
        turns = [turns[place] for place in np.argsort(starts, kind="stable")]
    texts: dict[str, list[str]] = {}
    for turn in turns:
        texts.setdefault(turn.speaker, []).append(turn.text)
    return {speaker: " ".join(parts) for speaker, parts in texts.items()}


def cp_errors(reference: Sequence[Sequence[str]], hypothesis: Sequence[Sequence[str]]) -> int:
    """The errors of the best pairing of speakers, whose words are given.

    >>> cp_errors([["a", "b"], ["c"]], [["c"], ["a", "x"], ["z"]])
    2
    """
    from scipy.optimize import linear_sum_assignment

    size = max(len(reference), len(hypothesis))
    said, written = ([*texts, *([[]] * (size - len(texts)))] for texts in (reference, hypothesis))
    edits = count_edits([a for a in said for _ in written], [b for _ in said for b in written]).sum(axis=0)
    costs = edits.reshape(size, size)
    return int(costs[linear_sum_assignment(costs)].sum())


class DiarizationErrors(NamedTuple):
    """Seconds of each kind of error, and of the speech that is scored."""

    missed_s: float
    false_alarm_s: float
    confusion_s: float
    speech_s: float

    @property
    def errors_s(self) -> float:
        return self.missed_s + self.false_alarm_s + self.confusion_s


def diarization_errors(reference: Times, hypothesis: Times, collar_s: float = 0.0) -> DiarizationErrors:
    """The errors of one recording; `collar_s` on either side of each boundary of the reference is not scored.

    >>> diarization_errors({"ann": [(0, 4)], "bob": [(4, 6)]}, {"x": [(0, 3)], "y": [(3, 7)]})
    DiarizationErrors(missed_s=0.0, false_alarm_s=1.0, confusion_s=1.0, speech_s=6.0)
    """
    from scipy.optimize import linear_sum_assignment

    seconds, speaking, labelled = _intervals(_merged(reference), _merged(hypothesis), collar_s)
    together = (speaking * seconds) @ labelled.T
    correct = float(together[linear_sum_assignment(together, maximize=True)].sum())
    there, heard = speaking.sum(axis=0), labelled.sum(axis=0)
    return DiarizationErrors(
        missed_s=float(seconds @ np.maximum(there - heard, 0)),
        false_alarm_s=float(seconds @ np.maximum(heard - there, 0)),
        confusion_s=float(seconds @ np.minimum(there, heard)) - correct,
        speech_s=float(seconds @ there),
    )


def _merged(times: Times) -> Times:
    """The same with the turns of a speaker that touch or overlap as one: there is no boundary between them."""
    merged: dict[str, list[tuple[float, float]]] = {}
    for speaker, turns in times.items():
        spans = merged.setdefault(speaker, [])
        for start, end in sorted(turns):
            if spans and start <= spans[-1][1]:
                spans[-1] = spans[-1][0], max(spans[-1][1], end)
            else:
                spans.append((start, end))
    return merged


def _intervals(reference: Times, hypothesis: Times, collar_s: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The stretches between all boundaries: their scored seconds, and who speaks in each (speakers, stretches)."""
    turns = [turn for times in (*reference.values(), *hypothesis.values()) for turn in times]
    collars = [(bound - collar_s, bound + collar_s) for times in reference.values() for turn in times for bound in turn]
    bounds = sorted({bound for pair in (*turns, *(collars if collar_s else ())) for bound in pair})
    middles = np.array([(start + end) / 2 for start, end in pairwise(bounds)])
    seconds = np.diff(bounds) if bounds else np.zeros(0)
    if collar_s:
        seconds = np.where(_inside(collars, middles), 0.0, seconds)
    speaking, labelled = (
        np.array([_inside(times, middles) for times in each.values()], dtype=float).reshape(len(each), len(middles))
        for each in (reference, hypothesis)
    )
    return seconds, speaking, labelled


def _inside(spans: Sequence[tuple[float, float]], moments: np.ndarray) -> np.ndarray:
    """Of each moment, whether it lies in one of the spans."""
    inside = np.zeros(len(moments), dtype=bool)
    for start, end in spans:
        inside[np.searchsorted(moments, start) : np.searchsorted(moments, end)] = True
    return inside
