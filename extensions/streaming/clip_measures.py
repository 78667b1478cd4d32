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
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from rapidfuzz.distance import Prefix

from speech_robust_bench.core.records import StreamEvent, WordTime
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
