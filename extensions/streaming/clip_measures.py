"""Latency and stability of one streamed transcript.

Definitions, each from the end of the word in the audio, in seconds:
- appearing and settling of a word: the first hypothesis that has it in its place, and the first from which on nothing
  up to it changes again (the delays of Baumann et al. 2009, and of Shangguan et al. 2020 for end-to-end models);
- time to first word: from the beginning of the first word to the first hypothesis with any word;
- last-word latency: the settling of the last word; endpoint delay: the last final event (user-perceived latency,
  Shangguan et al. 2021); early cut-off: the recogniser declared the speaker finished before the last word had ended;
- churn: words taken back per word of the final transcript (normalised erasure, Arivazhagan et al. 2020, the unstable
  partial word ratio of Shangguan et al. 2020); flicker: the share of updates that take a word back;
- invented words: every word shown, for however short a time, in clips without speech, per minute;
- compute RTF: processing time over audio time; late chunks: the share that was done only after the next had arrived.

Submitted streams are checked: every measure follows from the events, the time of each call and the word times. The
transcript must be that of the events; an event comes when its chunk was done; the calls of a clip take no longer than
the clip did. Words must be those of the reference, at the same times in every config as in the clean one and, where the
clean audio is available, in a forced alignment. The time of a call cannot be checked from files.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from msgspec import UNSET
from rapidfuzz.distance import Prefix

from speech_robust_bench.builders.forced_alignment import align, spoken_words
from speech_robust_bench.builders.scenarios import SCENARIOS
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.names import parse
from speech_robust_bench.core.records import Prediction, Settings, StreamEvent, WordTime
from speech_robust_bench.core.untrusted_files import Refused
from speech_robust_bench.extensions.streaming.streams import calls_of, check_stream, check_words, transcript
from speech_robust_bench.scoring.word_alignment import HIT, align_words


@dataclass(frozen=True)
class Update:
    """The words of the current segment from a time on. At an endpoint the recogniser ended the segment itself."""

    time_s: float
    sent_s: float
    words: tuple[str, ...]
    final: bool = False
    endpoint: bool = False


@dataclass(frozen=True)
class ShownWord:
    """A word of the final transcript: the update that first had it in its place, and the time it settled."""

    text: str
    first: Update
    settled_s: float


@dataclass
class ClipMeasures:
    """The measures of one clip: values where they are defined."""

    appear_s: list[float] = field(default_factory=list)
    settle_s: list[float] = field(default_factory=list)
    first_word_s: float | None = None
    last_word_s: float | None = None
    endpoint_s: float | None = None
    early_cutoff: bool = False
    erased: int = 0
    final_words: int = 0
    updates: int = 0
    revisions: int = 0


def bare_words(text: str) -> tuple[str, ...]:
    """The words for comparison: lower case, without punctuation.

    >>> bare_words("It was, it's -- twenty-one!")
    ('it', 'was', "it's", 'twenty', 'one')
    """
    return tuple(re.findall(r"[^\W_]+(?:'[^\W_]+)*", text.lower().replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")))


def updates_of(events: Sequence[StreamEvent]) -> list[Update]:
    """The words shown at every event.

    >>> events = [StreamEvent(1, 1, "It", "partial"), StreamEvent(2, 2, "It was.", "final")]
    >>> [update.words for update in updates_of(events)]
    [('it',), ('it', 'was')]
    """
    return [
        Update(time_s, sent_s, bare_words(text), kind != "partial", kind == "endpoint")
        for time_s, sent_s, text, kind in events
    ]


def segments_of(updates: Sequence[Update]) -> list[list[Update]]:
    """The updates of each segment; a final one ends it, and later ones change nothing before it.

    >>> a, b, c = Update(1, 1, ("a",)), Update(2, 2, ("b",), final=True), Update(3, 3, ("c",))
    >>> segments_of([a, b, c]) == [[a, b], [c]]
    True
    """
    segments: list[list[Update]] = [[]]
    for update in updates:
        segments[-1].append(update)
        if update.final:
            segments.append([])
    return [segment for segment in segments if segment]


def shown_words(segment: Sequence[Update]) -> list[ShownWord]:
    """The words at the end of a segment."""
    final = segment[-1].words
    first: list[Update] = [segment[-1]] * len(final)
    for update in reversed(segment):
        for position, (word, last) in enumerate(zip(update.words, final, strict=False)):
            if word == last:
                first[position] = update
    settled_s = [segment[-1].time_s] * len(final)
    kept = len(final)
    for update in reversed(segment):
        kept = min(kept, Prefix.similarity(update.words, final))
        settled_s[:kept] = [update.time_s] * kept
    return [ShownWord(*word) for word in zip(final, first, settled_s, strict=True)]


def measure_clip(updates: Sequence[Update], spoken: Sequence[WordTime] = ()) -> ClipMeasures:
    """The measures of one clip; without the times of the spoken words, only those that need none.

    A word said from 0.0 to 0.5 s that appears at 0.8 s, is taken back at 1.2 s and is there for good at 1.5 s:

    >>> seen = [Update(.8, .8, ("yes",)), Update(1.2, 1.2, ("less",)), Update(1.5, 1.5, ("yes",), final=True)]
    >>> clip = measure_clip(seen, [WordTime("yes", 0.0, 0.5)])
    >>> round(clip.appear_s[0], 3), round(clip.settle_s[0], 3), clip.erased, clip.revisions
    (0.3, 1.0, 2, 2)

    "one two", the second word said from 0.5 to 0.9 s; "to" is shown before "two", and at 1.3 s the recogniser, sent
    1.2 s of audio, finds that the speaker has finished: 1 word for 2 was taken back (churn) in 1 of 3 updates (flicker)

    >>> seen = [Update(.6, .5, ("one",)), Update(1.0, .9, ("one", "to")), Update(1.3, 1.2, ("one", "two"), True, True)]
    >>> clip = measure_clip(seen, [WordTime("one", 0.1, 0.4), WordTime("two", 0.5, 0.9)])
    >>> [round(delay, 3) for delay in (*clip.appear_s, clip.first_word_s, clip.last_word_s, clip.endpoint_s)]
    [0.2, 0.4, 0.5, 0.4, 0.4]
    >>> clip.erased, clip.final_words, clip.revisions, clip.updates, clip.early_cutoff
    (1, 2, 1, 3, False)
    """
    measures = ClipMeasures()
    shown: list[ShownWord] = []
    for segment in segments_of(updates):
        previous: tuple[str, ...] = ()
        for update in segment:
            lost = len(previous) - Prefix.similarity(previous, update.words)
            measures.erased += lost
            measures.revisions += lost > 0
            measures.updates += update.words != previous
            previous = update.words
        shown += shown_words(segment)
    measures.final_words = len(shown)
    if not spoken:
        return measures
    first = next((update.time_s for update in updates if update.words), None)
    if first is not None:
        measures.first_word_s = first - spoken[0].start_s
    end_s = spoken[-1].end_s
    finals = [update.time_s for update in updates if update.final]
    if finals:
        measures.endpoint_s = finals[-1] - end_s
    measures.early_cutoff = any(update.endpoint and update.sent_s < end_s for update in updates)
    for place, position in word_hits(spoken, shown):
        word = shown[position]
        measures.appear_s.append(word.first.time_s - spoken[place].end_s)
        measures.settle_s.append(word.settled_s - spoken[place].end_s)
        if place == len(spoken) - 1:
            measures.last_word_s = measures.settle_s[-1]
    return measures


def early_words(updates: Sequence[Update], spoken: Sequence[WordTime]) -> tuple[int, int]:
    """The number of recognised words that were shown before any of their audio was sent, and the number of all.

    >>> early_words([Update(.2, .1, ("one", "two"))], [WordTime("one", 0.0, 0.4), WordTime("two", 0.5, 0.9)])
    (1, 2)
    """
    shown = [word for segment in segments_of(updates) for word in shown_words(segment)]
    hits = word_hits(spoken, shown)
    return sum(shown[position].first.sent_s < spoken[place].start_s for place, position in hits), len(hits)


def word_hits(spoken: Sequence[WordTime], shown: Sequence[ShownWord]) -> list[tuple[int, int]]:
    """The pairs of places (spoken, shown) of the words that a best alignment finds equal."""
    return [
        (place, position)
        for kind, place, position in align_words([word.text for word in spoken], [word.text for word in shown])
        if kind == HIT and place is not None and position is not None
    ]


SAMPLE = 8  # clips of a clean config that are aligned again
SAME_S = 0.05  # between two alignments of a clip by one aligner
MOST_EARLY = 0.1  # of the words, shown before their audio was sent: a language model guesses some, a cheat all
FEWEST_WORDS = 20
Placed = dict[str, tuple[float, list[WordTime]]]  # clip -> its duration, and its words with their times


@dataclass
class StreamedLines:
    """The streams of each config while a submission is read."""

    options: Settings  # of run.json
    words: dict[str, Placed] = field(default_factory=dict)  # by config
    streamed: dict[str, bool] = field(default_factory=dict)
    early: dict[str, tuple[int, int]] = field(default_factory=dict)  # config -> words shown too early, words shown

    def add(self, config: str, lines: Sequence[Prediction]) -> None:
        """Check and remember the lines of one config."""
        if not any(line.stream or line.words is not UNSET for line in lines):
            self.streamed[config] = False
            return
        self.streamed[config] = True
        early = shown = 0
        for number, line in enumerate(lines, 1):
            try:
                self._check(line)
            except ValueError as problem:
                raise Refused(f"line {number}: {problem}") from None
        for line in lines:
            if line.stream:
                one_early, one_shown = early_words(updates_of(line.stream.events), line.word_times)
                early, shown = early + one_early, shown + one_shown
        self.early[config] = (early, shown)
        self.words[config] = {line.id: (line.seconds, line.word_times) for line in lines}

    def _check(self, line: Prediction) -> None:
        check_words(line.word_times, line.seconds)
        if line.word_times and [word.text for word in line.word_times] != spoken_words(line.text or ""):
            raise ValueError("'words' are not those of the reference")
        stream = line.stream
        if line.pred_text is None:
            if stream:
                raise ValueError("a clip that failed has a 'stream'")
            return
        if not stream:
            raise ValueError("lacks 'stream', which other clips have")
        check_stream(stream, line.seconds)
        for key in ("chunk_ms", "speed", "realtime"):
            if getattr(stream, key) != self.options.get(key):
                raise ValueError(f"'{key}' of 'stream' is not that of run.json")
        if stream.speed != 1:
            raise ValueError("'speed' of 'stream' is not 1: a simulated machine cannot be submitted")
        if stream.processor_time:
            raise ValueError("'stream' has processor time instead of wall-clock time; run it without")
        if transcript(stream.events).strip() != line.pred_text:
            raise ValueError("'pred_text' is not the transcript that the events of 'stream' give")
        calls = calls_of(stream, line.seconds)
        least_s = calls.done_s[-1] if stream.realtime else calls.busy_s
        if (line.time or 0) < least_s * 0.999 - 0.002:
            raise ValueError("the calls of 'stream' took longer than the whole clip")

    def problems(self, sources: Mapping[str, str | None], places: Sequence[str]) -> list[str]:
        """The problems of the configs together; `sources`: config -> the clean config that it was made from."""
        if len(set(self.streamed.values())) > 1:
            odd = next(config for config, streamed in self.streamed.items() if not streamed)
            return [f"{odd}.jsonl: was not streamed, but other configs were; submit two runs"]
        lines = []
        for config, clips in self.words.items():
            source = sources.get(config) or config
            if reason := _differ_from_clean(config, clips, self.words.get(source, {})):
                lines.append(f"{config}.jsonl: {reason}")
        for source in sorted({sources.get(config) or config for config in self.words}):
            if reason := _differ_from_audio(source, self.words.get(source, {}), places):
                lines.append(f"{source}.jsonl: {reason}")
        return lines

    def flags(self) -> list[str]:
        """One line for each config with words that were shown before their audio was sent."""
        return [
            f"{config}: {early} of {shown} words were shown before their audio was sent"
            for config, (early, shown) in self.early.items()
            if shown >= FEWEST_WORDS and early > MOST_EARLY * shown
        ]


def _differ_from_clean(config: str, clips: Placed, clean: Placed) -> str | None:
    """The first clip whose word times differ from those of its clean clip."""
    scenario = SCENARIOS.get(parse(config).scenario)
    for clip, (duration, words) in clips.items():
        if clip not in clean or not words:
            continue
        clean_duration, expected = clean[clip]
        factor = duration / clean_duration if scenario and scenario.stretches and clean_duration else 1.0
        if len(expected) != len(words):
            return f"the words of '{clip[:60]}' have times, but not in its clean config"
        starts = [(word.start_s, before.start_s) for word, before in zip(words, expected, strict=True)]
        ends = [(word.end_s, before.end_s) for word, before in zip(words, expected, strict=True)]
        if any(abs(now - before * factor) > 0.002 for now, before in starts + ends):
            return f"the words of '{clip[:60]}' lie elsewhere than in its clean config"
    return None


def _differ_from_audio(config: str, clips: Placed, places: Sequence[str]) -> str | None:
    """The first clip whose word times differ from a forced alignment, of a sample of the clean clips."""
    from speech_robust_bench.builders.config_sources import open_data

    named = sorted(clip for clip, (_, words) in clips.items() if words)
    named.sort(key=lambda clip: hashlib.sha256(f"{config} {clip} {clips[clip][1]}".encode()).digest())
    folder = next((place for place in places if (Path(place) / config).is_dir()), None)
    if not folder or not named:
        return None
    data = open_data(folder).config(config)
    wanted = {row.position for row in data.rows if row.id in named[:SAMPLE]}
    try:
        windows = data.windows(wanted)
        aligned = {row.id: _word_ends(window.decode(row), row.text or "") for window in windows for row in window.rows}
    except UserError:  # without the aligner: as submitted
        return None
    for clip, aligned_ends in aligned.items():
        ends = [word.end_s for word in clips[clip][1]]
        if len(aligned_ends) != len(ends) or any(abs(a - b) > SAME_S for a, b in zip(aligned_ends, ends, strict=True)):
            return f"the words of '{clip[:60]}' are not where a forced alignment of the clip finds them"
    return None


def _word_ends(clip: Any, text: str) -> list[float]:
    return [end_s for _, _, end_s in align(clip, text) or ()]
