"""The system report card as records: `card.json` of `srb diagnose`, and the file beside a report (docs/formats.md)."""

from __future__ import annotations

import msgspec

from speech_robust_bench.core.records import NULL, Record, Whole
from speech_robust_bench.core.result_records import Interval, ResampledUnits


class Spread(Record, frozen=True, kw_only=True):
    """Percentiles and standard deviation of the clips' own error rates, and the share of clips without an error."""

    p50: float
    p90: float
    p95: float
    p99: float
    sd: float
    without_error: float


class Bin(Record, frozen=True, kw_only=True):
    """The clips whose length, speech rate or loudness lies between two edges."""

    bin: str
    start: float | None = msgspec.field(name="from", default_factory=type(None))
    clips: Whole
    words: Whole
    wer: float


class WordKind(Record, frozen=True, kw_only=True):
    """How many words of a kind were said, and how many of them were missed."""

    said: Whole
    missed: Whole
    rate: float | None


class InventedSpan(Record, frozen=True, kw_only=True):
    """A burst of inserted words, or a loop of `period` words, in one transcript."""

    kind: str
    config: str
    id: str
    words: Whole
    period: Whole | None = NULL
    text: str


class Hallucinations(Record, frozen=True, kw_only=True):
    """Bursts and loops, and the longest of them."""

    bursts: Whole
    burst_words: Whole
    loops: Whole
    looped_words: Whole = 0  # inserted words that are in loops
    bursts_per_hour: float | None
    loops_per_hour: float | None
    examples: list[InventedSpan]


class SpeakerRate(Record, frozen=True, kw_only=True):
    """The error rate of one speaker."""

    speaker: str
    clips: Whole
    wer: float


class SpeakerRates(Record, frozen=True, kw_only=True):
    """How error rates are spread over speakers with enough clips, and the highest of them."""

    speakers: Whole
    median: float | None
    p90: float | None
    worst: list[SpeakerRate]


class GroupErrors(Record, frozen=True, kw_only=True):
    """The error rate of one group of speakers."""

    wer: float
    utterances: Whole
    reference_length: Whole


class GroupGap(Record, frozen=True, kw_only=True):
    """How far the best and the worst group of a column are apart; null where fewer than two have enough clips."""

    groups: dict[str, GroupErrors]
    best: str | None
    worst: str | None
    gap: float | None
    log2_ratio: float | None
    unlabelled: Whole
    too_small: list[str]

    def sized(self, group: str | None) -> str:
        """A group and the number of its clips."""
        return f"{group} ({self.groups[group].utterances} clips)" if group in self.groups else "–"


class CardPart(Record, frozen=True, kw_only=True):
    """The clips of clean speech, or of all other configs with speech together."""

    clips: Whole
    words: Whole
    wer: float
    substitutions: Whole
    deletions: Whole
    insertions: Whole
    spread: Spread
    kinds: dict[str, WordKind]
    hallucination: Hallucinations
    conditions: dict[str, list[Bin]]
    speakers: SpeakerRates
    groups: dict[str, GroupGap]


class WrittenWords(Record, frozen=True, kw_only=True):
    """What was written where nobody speaks, or where nobody knows what was said."""

    clips: Whole
    clips_with_words: Whole
    words: Whole
    loops: Whole
    minutes: float
    phrases: list[tuple[str, Whole]]  # whole transcripts that were written several times
    words_per_minute: float | None


class LwerrRow(Record, frozen=True, kw_only=True):
    """LWERR of women over men for a data set and category; `severity` is null for all of them together."""

    corpus: str
    category: str
    severity: Whole | None
    configs: Whole
    female: float
    male: float
    lwerr: float | None
    interval: Interval | None
    resampled: dict[str, ResampledUnits] | None = None  # what the interval is over, by gender

    @property
    def over(self) -> str:
        """How many speakers or clips of each gender the interval is over."""
        return "; ".join(f"{gender}: {units}" for gender, units in (self.resampled or {}).items())


class CardConfigs(Record, frozen=True, kw_only=True):
    """How many configs of clean speech the card is made from, and how many with speech."""

    clean: Whole
    speech: Whole


class ReportCard(Record, frozen=True, kw_only=True):
    """One recogniser in one language: which words, clips and speakers it fails on."""

    schema: Whole
    model: str
    language: str
    unit: str
    normaliser: str
    configs: CardConfigs
    clean: CardPart | None = None
    hard: CardPart | None = None
    unknown: dict[str, str]  # kinds of words that cannot be told apart, and why
    reject: WrittenWords | None
    untranscribed: WrittenWords | None = None
    lwerr: list[LwerrRow]
    no_verdict: str | None = None  # why the recogniser is called neither better nor worse than another

    @property
    def parts(self) -> dict[str, CardPart]:
        """Clean and hard speech, those of the two that were run."""
        named = {"clean": self.clean, "hard": self.hard}
        return {name: part for name, part in named.items() if part is not None}

    def bins(self, condition: str) -> dict[str, dict[str, Bin]]:
        """The bins of a condition in their order: by name, and there by part."""
        found: dict[str, dict[str, Bin]] = {}
        for name, part in self.parts.items():
            for row in part.conditions.get(condition, []):
                found.setdefault(row.bin, {})[name] = row

        def start(label: str) -> tuple[bool, float]:
            lowest = next(iter(found[label].values())).start
            return lowest is not None, lowest or 0.0

        return {label: found[label] for label in sorted(found, key=start)}


class ComparedScore(Record, frozen=True, kw_only=True):
    """A score in one language, and its ratio to that of the best language."""

    value: float
    interval: Interval | None = None
    ratio: float | None


class LanguageComparison(Record, frozen=True, kw_only=True):
    """The scores of a recogniser in several languages, side by side."""

    languages: list[str]
    rows: dict[str, dict[str, ComparedScore]]
