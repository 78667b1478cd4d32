"""The measure `who_spoke`: cpWER and diarization error rate of recognisers that label speakers, by whatever labels.

cpWER (Watanabe et al., "CHiME-6 Challenge", 2020): everything that one speaker says is one text, in time; the texts of
the reference and of the recogniser are paired so that the errors are fewest. Errors of pairs add up, so the pairing is
an assignment problem; a speaker without a partner has all words deleted, or inserted.

Diarization error rate (NIST's RT evaluations): missed speech, false alarms and speech of the wrong speaker, over the
seconds of speech of the reference; overlapped speech counts for each speaker. Speakers are paired so that they share
the most time.

The speakers of the reference are the turns of a long recording (AMI and CHiME-6, `en-amilong`, `en-chimelong`), or the
two talkers of an `overlap` clip. Without the labels of a recogniser (`pred_turns`) a config has no such measure: a
single text is scored by the WER.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np

from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.records import Prediction, Record, SpeakerTurn, Whole
from speech_robust_bench.core.result_records import RunResults, ScoreValue
from speech_robust_bench.core.rows import TALKER_CHANGE
from speech_robust_bench.scoring.measures import ConfigClips, Measure, PageTable, Setting, TableForm
from speech_robust_bench.scoring.score_options import ScoreOptions, estimated, ratio_of
from speech_robust_bench.scoring.scoring import default_unit, normalise
from speech_robust_bench.scoring.table1 import cell_text
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


class WhoSpoke(Record, frozen=True, kw_only=True):
    """How well words and time are given to their speakers."""

    clips: Whole
    speakers: Whole  # of the references, summed over clips
    pred_speakers: Whole  # of the recogniser
    cpwer: ScoreValue
    der: ScoreValue | None  # None where times are not known
    missed: float | None  # the parts of the DER
    false_alarm: float | None
    confusion: float | None
    timed_clips: Whole  # clips of which both sides have times
    collar_s: float


def speakers_of(turns: Sequence[SpeakerTurn] | None, text: str) -> list[str]:
    """What each speaker says: by the turns, else by the marks between talkers.

    >>> speakers_of(None, "good morning <sc> is it you")
    ['good morning', 'is it you']
    """
    parts = list(texts_of(turns).values()) if turns else text.split(TALKER_CHANGE)
    return [part.strip() for part in parts]


def words_of(texts: Sequence[str], options: ScoreOptions, language: str) -> list[list[str]]:
    """The words of each speaker, or the characters in languages that are scored so."""
    plain = [normalise(text, options.normaliser, language) for text in texts]
    unit = options.unit or default_unit(language)
    split = [text.split() if unit == "word" else list(text.replace(" ", "")) for text in plain]
    return [words for words in split if words]


def times_of(turns: Sequence[SpeakerTurn] | None) -> Times | None:
    """When each speaker speaks; None where that is not known of every turn."""
    if turns is None:
        return None
    times: dict[str, list[tuple[float, float]]] = {}
    for turn in turns:
        if turn.start_s is None or turn.end_s is None:
            return None
        times.setdefault(turn.speaker, []).append((turn.start_s, max(turn.start_s, turn.end_s)))
    return times


def diarization(lines: Sequence[Prediction], collar_s: float) -> list[DiarizationErrors | None] | None:
    """The diarization errors of each clip whose reference has times; a clip without turns is missed whole.

    None where the recogniser tells no times: leaving out some clips must not help.
    """
    pairs = [(times_of(line.turns), times_of(line.pred_turns or [])) for line in lines]
    if any(written is None for _, written in pairs):
        return None
    return [None if said is None else diarization_errors(said, written or {}, collar_s) for said, written in pairs]


def of_clips(clips: ConfigClips) -> WhoSpoke | None:
    """The measure of one config; None where the recogniser labels no speakers, or the references have but one."""
    lines, options = clips.predictions.transcribed.lines, clips.options
    several = any(line.turns or TALKER_CHANGE in (line.text or "") for line in lines)
    if clips.counts is None or not several or not any(line.pred_turns for line in lines):
        return None
    collar_s = _collar(options)
    said = [words_of(speakers_of(line.turns, line.text or ""), options, clips.language) for line in lines]
    written = [words_of(speakers_of(line.pred_turns, line.transcript), options, clips.language) for line in lines]
    errors = np.array([cp_errors(*pair) for pair in zip(said, written, strict=True)], float)
    lengths = np.array([sum(map(len, speakers)) for speakers in said], float)
    timed = diarization(lines, collar_s) or [None] * len(lines)
    seconds = np.array([each or DiarizationErrors(0, 0, 0, 0) for each in timed], float)
    known, speech_s = sum(each is not None for each in timed), float(seconds[:, 3].sum())
    parts = [round(100 * float(part) / speech_s, 4) if speech_s else None for part in seconds[:, :3].sum(axis=0)]
    der = ratio_of(clips.counts, seconds[:, :3].sum(axis=1), seconds[:, 3], options) if speech_s else None
    return WhoSpoke(
        clips=len(lines),
        speakers=sum(map(len, said)),
        pred_speakers=sum(map(len, written)),
        cpwer=estimated(ratio_of(clips.counts, errors, lengths, options), options),
        der=estimated(der, options) if der else None,
        missed=parts[0],
        false_alarm=parts[1],
        confusion=parts[2],
        timed_clips=known,
        collar_s=collar_s,
    )


def _collar(options: ScoreOptions) -> float:
    given = (options.settings or {}).get("der_collar", "0")
    try:
        collar_s = float(given)
    except ValueError:
        collar_s = -1.0
    if not 0 <= collar_s <= 10:
        raise UserError(f"--der-collar {given}: a number of seconds from 0 to 10")
    return collar_s


def _rows(result: RunResults, folder: Path) -> list[tuple[str, ...]]:
    rows = []
    for config, entry in result.configs.items():
        if who := WHO_SPOKE.of(entry):
            parts = ("" if part is None else f"{part:.1f}" for part in (who.missed, who.false_alarm, who.confusion))
            speakers = f"{who.pred_speakers}/{who.speakers}"
            row = (config, cell_text(who.cpwer, True), cell_text(who.der, True) if who.der else "", *parts)
            rows.append((*row, speakers, f"{who.clips} ({who.timed_clips})"))
    return rows


WHO_SPOKE = Measure(
    "who_spoke",
    WhoSpoke,
    of_clips,
    needs="pred_turns",
    settings={"der_collar": Setting("seconds around speaker changes that the DER leaves out (default: 0)", "S")},
    columns=lambda record: {"cpwer": record.cpwer.value, "der": record.der and record.der.value},
    table=TableForm(
        "who_spoke",
        "print cpWER and diarization error rate of recognisers that label speakers",
        ("config", "cpWER", "DER", "missed", "false\nalarm", "wrong\nspeaker", "speakers", "clips\n(timed)"),
        _rows,
        "none of these recognisers labelled speakers on clips with several (docs/how-to/test-who-spoke.md)",
        legend="speakers: that the recogniser found / of the references, summed over clips.",
        advanced=True,
    ),
    section=PageTable(
        "Who spoke",
        "cpWER compares what each speaker said with what the recogniser gave to one speaker, paired for the fewest "
        "errors. DER, the diarization error rate, is the share of speech that was missed, invented or given to the "
        "wrong speaker.",
        ("cpWER, %", "DER, %", "missed, %", "false alarm, %", "wrong speaker, %", "clips"),
        lambda entry, who: (
            who.cpwer,
            who.der,
            *(None if part is None else (part, 1) for part in (who.missed, who.false_alarm, who.confusion)),
            (who.clips, 0),
        ),
    ),
)
