"""How a live transcript came about: how late its words appeared and settled, how often it was revised, how it kept up.

Definitions, each from the end of the word in the audio, in seconds:
- appearing and settling of a word: the first hypothesis that has it in its place, and the first from which on nothing
  up to it changes again (the delays of Baumann et al. 2009, and of Shangguan et al. 2020 for end-to-end models);
- time to first word: from the beginning of the first word to the first hypothesis with any word;
- last-word latency: the settling of the last word; endpoint delay: the last final event (user-perceived latency,
  Shangguan et al. 2021); early cut-off: the recogniser declared the speaker finished before the last word had ended;
- churn: words taken back per word of the final transcript (normalised erasure, Arivazhagan et al. 2020, the unstable
  partial word ratio of Shangguan et al. 2020); flicker: the share of updates that take a word back;
- compute RTF: processing time over audio time; late chunks: the share that was done only after the next had arrived.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from rapidfuzz.distance import Levenshtein

Json = dict[str, Any]
QUANTITIES = ("appear_s", "settle_s")  # one value a word; all others are one value a clip
RATES = ("churn", "flicker", "late_chunks", "early_cutoffs", "rtf")
DELAYS = ("first_word_s", "last_word_s", "endpoint_s")


@dataclass(frozen=True)
class Update:
    """What a listener saw: when, and all the words so far. At an endpoint the recogniser ended a segment itself."""

    time_s: float
    sent_s: float
    words: tuple[str, ...]
    final: bool = False
    endpoint: bool = False


@dataclass(frozen=True)
class SpokenWord:
    """A word of the reference and where it lies in the audio."""

    text: str
    start_s: float
    end_s: float


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
    """Words as they are compared: lower case, without punctuation.

    >>> bare_words("It was, it's -- twenty-one!")
    ('it', 'was', "it's", 'twenty', 'one')
    """
    return tuple(re.findall(r"[^\W_]+(?:'[^\W_]+)*", text.lower().replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")))


def updates_of(events: Sequence[Sequence[Any]]) -> list[Update]:
    """The whole transcript at every event `[time_s, sent_s, text, kind]`; kind is partial, final or endpoint.

    >>> [update.words for update in updates_of([[1, 1, "a", "partial"], [2, 2, "b", "final"], [3, 3, "c", "partial"]])]
    [('a',), ('b',), ('b', 'c')]
    """
    finished: tuple[str, ...] = ()
    updates = []
    for time_s, sent_s, text, kind in events:
        words = finished + bare_words(text)
        updates.append(Update(time_s, sent_s, words, kind != "partial", kind == "endpoint"))
        if kind != "partial":
            finished = words
    return updates


def measure_clip(updates: Sequence[Update], spoken: Sequence[SpokenWord] = ()) -> ClipMeasures:
    """The measures of one clip; without the places of the spoken words, those that need none.

    A word said from 0.0 to 0.5 s that appears at 0.8 s, is taken back at 1.2 s and is there for good at 1.5 s:

    >>> seen = [Update(.8, .8, ("yes",)), Update(1.2, 1.2, ("less",)), Update(1.5, 1.5, ("yes",), final=True)]
    >>> clip = measure_clip(seen, [SpokenWord("yes", 0.0, 0.5)])
    >>> round(clip.appear_s[0], 3), round(clip.settle_s[0], 3), clip.erased, clip.revisions
    (0.3, 1.0, 2, 2)
    """
    measures = ClipMeasures()
    previous: tuple[str, ...] = ()
    for update in updates:
        lost = len(previous) - _shared(previous, update.words)
        measures.erased += lost
        measures.revisions += lost > 0
        measures.updates += update.words != previous
        previous = update.words
    measures.final_words = len(previous)
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
    settled = _settled(updates)
    for place, position in _hits([word.text for word in spoken], previous):
        word = spoken[place]
        measures.appear_s.append(_appeared(updates, position, previous[position]) - word.end_s)
        measures.settle_s.append(settled[position] - word.end_s)
        if place == len(spoken) - 1:
            measures.last_word_s = measures.settle_s[-1]
    return measures


def _shared(first: Sequence[str], second: Sequence[str]) -> int:
    same = 0
    for a, b in zip(first, second, strict=False):
        if a != b:
            break
        same += 1
    return same


def _appeared(updates: Sequence[Update], position: int, word: str) -> float:
    return next(u.time_s for u in updates if len(u.words) > position and u.words[position] == word)


def _settled(updates: Sequence[Update]) -> list[float]:
    """For every word of the final transcript, the time from which on nothing up to it changes."""
    if not updates:
        return []
    final = updates[-1].words
    times = [updates[-1].time_s] * len(final)
    kept = len(final)
    for update in reversed(updates):
        kept = min(kept, _shared(update.words, final))
        for position in range(kept):
            times[position] = update.time_s
    return times


def _hits(reference: Sequence[str], hypothesis: Sequence[str]) -> list[tuple[int, int]]:
    """The pairs of places (reference, hypothesis) of the words that a best alignment finds equal."""
    return [
        (op.src_start + offset, op.dest_start + offset)
        for op in Levenshtein.opcodes(list(reference), list(hypothesis))
        if op.tag == "equal"
        for offset in range(op.src_end - op.src_start)
    ]


def measure_lines(lines: Sequence[Mapping[str, Any]], replicates: int = 1000, level: float = 0.95) -> Json | None:
    """The measures of a config from its predictions, each with an interval over clips; None if it was not streamed.

    Delays are given as median and 95th percentile, pooled over words or clips. The bootstrap draws whole clips.
    """
    streamed = [line for line in lines if line.get("stream")]
    if not streamed:
        return None
    clips = [measure_clip(updates_of(line["stream"]["events"]), _spoken(line)) for line in streamed]
    durations = np.array([line["duration"] for line in streamed], dtype=float)
    ratios = {
        "churn": ([c.erased for c in clips], [c.final_words for c in clips]),
        "flicker": ([c.revisions for c in clips], [c.updates for c in clips]),
        "late_chunks": ([_of(line, "late_chunks") for line in streamed], [_of(line, "chunks") for line in streamed]),
        "early_cutoffs": ([c.early_cutoff for c in clips], [c.endpoint_s is not None for c in clips]),
        "rtf": ([_of(line, "busy_s") for line in streamed], durations),
    }
    draws = np.random.default_rng(0).integers(len(clips), size=(replicates, len(clips)))
    return {
        "clips": len(clips),
        "with_word_times": sum(bool(line.get("words")) for line in streamed),
        **{name: _rate(np.asarray(parts, dtype=float), draws, level) for name, parts in ratios.items()},
        **{name: _delay([getattr(clip, name) for clip in clips], draws, level) for name in (*QUANTITIES, *DELAYS)},
    }


def _of(line: Mapping[str, Any], key: str) -> float:
    return float(line["stream"][key])


def _spoken(line: Mapping[str, Any]) -> list[SpokenWord]:
    return [SpokenWord(text, start_s, end_s) for text, start_s, end_s in line.get("words") or ()]


def _rate(parts: np.ndarray, draws: np.ndarray, level: float) -> Json | None:
    """One sum over another, over all clips."""
    above, below = parts
    if not below.sum():
        return None
    sums = below[draws].sum(axis=1)
    values = above[draws].sum(axis=1)[sums > 0] / sums[sums > 0]
    return {"value": float(above.sum() / below.sum()), "interval": _interval(values, level)}


def _delay(per_clip: Sequence[Any], draws: np.ndarray, level: float) -> Json | None:
    """Median and 95th percentile of what a clip has one of, or one per word."""
    values = [np.atleast_1d(np.asarray([] if value is None else value, dtype=float)) for value in per_clip]
    pooled = np.concatenate(values) if values else np.empty(0)
    if not len(pooled):
        return None
    order = np.argsort(pooled)
    clip_of = np.repeat(np.arange(len(values)), [len(value) for value in values])[order]
    counts = np.stack([np.bincount(draw, minlength=len(values)) for draw in draws])[:, clip_of].cumsum(axis=1)
    ranked = pooled[order]

    def quantile(share: float) -> Json:
        drawn = counts[:, -1] > 0
        places = (counts[drawn] < share * counts[drawn, -1:]).sum(axis=1)
        return {"value": float(np.quantile(pooled, share)), "interval": _interval(ranked[places], level)}

    return {"n": len(pooled), "median": quantile(0.5), "p95": quantile(0.95)}


def _interval(values: np.ndarray, level: float) -> list[float] | None:
    if not len(values):
        return None
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
    return [float(low), float(high)]
