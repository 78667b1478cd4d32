"""One streamed clip for the report: the one in which the recognisers took most words back, and what was shown of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from speech_robust_bench.builders.configs import ConfigSource
from speech_robust_bench.core.names import parse
from speech_robust_bench.core.records import Prediction, StreamEvent, WordTime
from speech_robust_bench.scoring.runs import Run
from speech_robust_bench.scoring.stream_measures import Update, measure_clip, segments_of, updates_of

LONGEST_S = 15.0  # of a clip that is drawn
ENVELOPE = 300  # points of the drawn waveform
Lines = dict[str, Prediction]  # clip -> its line of the predictions


@dataclass(frozen=True)
class Stay:
    """A word in its place on the screen: from when to when, and whether it was taken back then."""

    row: int
    word: str
    from_s: float
    to_s: float
    erased: bool


@dataclass(frozen=True)
class StreamClip:
    """A clip, where its words lie, and what each model showed of it (by the model's place in the report)."""

    config: str
    id: str
    text: str
    duration_s: float
    words: Sequence[WordTime]
    events: Mapping[int, Sequence[StreamEvent]]
    envelope: Sequence[float] = field(default_factory=tuple)

    @property
    def end_s(self) -> float:
        """When the last word of anybody was there."""
        return max([self.duration_s, *(event.time_s for events in self.events.values() for event in events[-1:])])


def stays(updates: Sequence[Update], end_s: float) -> tuple[list[Stay], int]:
    """Every word that was shown, row by row in the order of the transcript, and the number of rows.

    >>> seen = [Update(1, 1, ("a", "c")), Update(2, 2, ("a", "b"), final=True)]
    >>> [(s.word, s.from_s, s.to_s, s.erased) for s in stays(seen, 3.0)[0]]
    [('a', 1, 3.0, False), ('c', 1, 2, True), ('b', 2, 3.0, False)]
    """
    shown: list[Stay] = []
    base = 0
    for segment in segments_of(updates):
        rows = max((len(update.words) for update in segment), default=0)
        for row in range(rows):
            word, since = None, 0.0
            for update in segment:
                now = update.words[row] if row < len(update.words) else None
                if now != word:
                    if word is not None:
                        shown.append(Stay(base + row, word, since, update.time_s, True))
                    word, since = now, update.time_s
            if word is not None:
                shown.append(Stay(base + row, word, since, end_s, False))
        base += rows
    return shown, base


def choose(runs: Mapping[int, Run], language: str) -> StreamClip | None:
    """The clip of the hard config, shared by all streamed runs, in which most words were taken back."""
    shared = set.intersection(*(set(run.configs) for run in runs.values())) if runs else set()
    hard = [config for config in sorted(shared) if parse(config).language == language]
    hard = [config for config in hard if parse(config).scenario != "clean"] or hard
    best: tuple[int, StreamClip] | None = None
    for config in hard:
        lines = {index: _streamed(run, config) for index, run in runs.items()}
        for clip in sorted(set.intersection(*(set(own) for own in lines.values()))):
            candidate = _clip(config, clip, {index: own[clip] for index, own in lines.items()})
            erased = sum(measure_clip(updates_of(events)).erased for events in candidate.events.values())
            if best is None or erased > best[0]:
                best = erased, candidate
    return best[1] if best else None


def _streamed(run: Run, config: str) -> Lines:
    """The lines of a config that can be drawn."""
    return {
        line.id: line
        for line in run.read(config).lines
        if line.stream and line.word_times and line.seconds <= LONGEST_S
    }


def _clip(config: str, clip: str, lines: Mapping[int, Prediction]) -> StreamClip:
    first = next(iter(lines.values()))
    events = {index: line.stream.events for index, line in lines.items() if line.stream}
    return StreamClip(config, clip, first.text or "", first.seconds, first.word_times, events)


def envelope(data: ConfigSource, config: str, clip: str) -> list[float]:
    """The waveform as the highest level of each of many short stretches, from 0 to 1; empty where there is no audio."""
    if config not in data.names():
        return []
    opened = data.config(config)
    wanted = {row.position for row in opened.rows if row.id == clip}
    for window in opened.windows(wanted):
        for row in window.rows:
            levels = [float(np.abs(part).max(initial=0.0)) for part in np.array_split(window.decode(row), ENVELOPE)]
            loudest = max(levels) or 1.0
            return [round(level / loudest, 3) for level in levels]
    return []
