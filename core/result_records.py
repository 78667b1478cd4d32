"""`results.json` and the verified files of the leaderboard as records: how they are read, checked and written.

The keys are those of docs/concepts/files.md. A measure of an extension has no field of its own: its record stands in
`measures` of a config's entry, under the measure's name, and is decoded by the extension that registered the measure.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta

from speech_robust_bench.core.records import NULL, Origin, Record, Settings, Whole, convert
from speech_robust_bench.core.seeding import FIRST_VERSION

MEASURES = ("wer", "nwer", "werd", "nwerd")
Interval = Annotated[list[float], Meta(min_length=2, max_length=2)]
T = TypeVar("T")


def always(value: T) -> T:
    """A default that is written too."""
    return msgspec.field(default_factory=lambda: value)


def measured(measures: Mapping[str, Any] | None, name: str, kind: type[T]) -> T | None:
    """The record of an extension's measure; None where a config has none. A ValueError says what is odd."""
    content = (measures or {}).get(name)
    return content if content is None or isinstance(content, kind) else convert(content, kind)


def digest(content: Mapping[str, Any]) -> str:
    """The hash of a JSON file's content, without the hash itself."""
    kept = {key: value for key, value in content.items() if key != "sha256"}
    return hashlib.sha256(json.dumps(kept, sort_keys=True, ensure_ascii=True).encode()).hexdigest()


# --- the parts of a result -------------------------------------------------------------------------------------------


class ScoreValue(Record, frozen=True, kw_only=True):
    """A number and its interval; null without replicates, and where there are too few speakers or clips."""

    value: float
    interval: Interval | None = NULL


class Ratio(Record, frozen=True, kw_only=True):
    """A logarithm of a ratio and its interval; null where it is infinite."""

    value: float | None
    interval: Interval | None = NULL


class Scores(Record, frozen=True, kw_only=True):
    """The measures; null where there is none."""

    wer: ScoreValue | None
    nwer: ScoreValue | None
    werd: ScoreValue | None
    nwerd: ScoreValue | None

    def score(self, measure: str) -> ScoreValue | None:
        """The score by a measure's name."""
        return getattr(self, measure) if measure in MEASURES else None


class ResampledUnits(Record, frozen=True, kw_only=True):
    """What the intervals are over: how many speakers, or clips where speakers are not known, and of how many clips."""

    unit: str
    units: Whole
    clips: Whole


class MeanRow(Scores, frozen=True, kw_only=True):
    """The mean over some configs or categories, and why others are not in it."""

    members: list[str]
    missing: dict[str, str]
    resampled: ResampledUnits | None = None


class GroupRate(Record, frozen=True, kw_only=True):
    """The error rate of one group of clips."""

    wer: float | None
    utterances: Whole
    words: Whole
    speakers: Whole


class Slices(Record, frozen=True, kw_only=True):
    """Groups of speakers, and of clips by the columns that a corpus adds."""

    configs: Whole | None = None  # that were pooled
    speakers: Whole
    gender: dict[str, GroupRate] | None = None
    accent: dict[str, GroupRate] | None = None
    age: dict[str, GroupRate] | None = None
    columns: dict[str, dict[str, GroupRate]] | None = None
    lwerr: Ratio | None = None  # log2 WER ratio of female to male speakers

    @property
    def groups(self) -> dict[str, dict[str, GroupRate]]:
        """Every column that has groups."""
        named = {"gender": self.gender, "accent": self.accent, "age": self.age, **(self.columns or {})}
        return {column: groups for column, groups in named.items() if groups}


class InventedWords(Record, frozen=True, kw_only=True):
    """What was written for clips in which nobody speaks, or of which nobody knows what was said."""

    clips: Whole
    clips_with_words: Whole
    words: Whole
    minutes: float
    words_per_minute: float | None


class Hallucination(Record, frozen=True, kw_only=True):
    """Words that nobody said: insertions where there is speech, every word where there is none."""

    insertions_per_word: float | None
    reject: InventedWords | None


class LanguageResults(Record, frozen=True, kw_only=True):
    """The tables of one language."""

    clean: dict[str, MeanRow]
    categories: dict[str, MeanRow]
    scenarios: dict[str, MeanRow]
    severities: dict[str, MeanRow]
    corpora: dict[str, MeanRow]
    overall: MeanRow
    median: MeanRow
    adversarial: MeanRow
    missing: dict[str, list[str]]
    slices: dict[str, dict[str, Slices]]
    hallucination: Hallucination


# --- the entry of a config -------------------------------------------------------------------------------------------


class ScoredConfig(Origin, frozen=True, kw_only=True):
    """What every entry says of its config: what it is, and the predictions that were scored."""

    language: str
    corpus: str
    scenario: str
    severity: Whole
    category: str
    rows: Whole
    of: Whole | None
    failed: Whole
    failed_ids: list[str]
    rtf: float | None
    rtf_quantiles: dict[str, float] | None
    content_sha256: str | None
    rows_sha256: str | None
    predictions_sha256: str
    measures: dict[str, Any] | None = None  # of extensions, by name


class ConfigResults(ScoredConfig, frozen=True, kw_only=True):
    """A config with references: its scores, and what went into them."""

    wer: ScoreValue | None
    nwer: ScoreValue | None
    werd: ScoreValue | None
    nwerd: ScoreValue | None
    why: dict[str, str]  # why a measure is null
    clean_wer: float | None
    difficulty: float | None
    unit: str
    resampled: ResampledUnits | None = None
    utterances: Whole
    hits: Whole
    substitutions: Whole
    deletions: Whole
    insertions: Whole
    insertions_per_word: float | None
    empty: Whole  # clips of which no word was recognised
    slices: Slices
    attack: dict[str, float] | None = None

    def score(self, measure: str) -> ScoreValue | None:
        """The score by a measure's name."""
        return getattr(self, measure) if measure in MEASURES else None


class RejectResults(ScoredConfig, frozen=True, kw_only=True):
    """A config without speech."""

    clips: Whole
    clips_with_words: Whole
    words: Whole
    minutes: float
    words_per_minute: float | None


class UntranscribedResults(RejectResults, frozen=True, kw_only=True):
    """A config without references: how far its transcripts are from those of the clean clips."""

    difference: ScoreValue | None


# --- results.json ----------------------------------------------------------------------------------------------------


class ScoringOptions(Record, frozen=True, kw_only=True):
    """How to score. Results are comparable if these options are the same."""

    normaliser: str = always("srb-paper-1")
    unit: str | None = NULL
    difficulty: str = always("paper-table3")
    floor: bool = always(False)
    resample: str = always("auto")
    replicates: Whole = always(1000)
    level: float = always(0.95)
    seed: Whole = always(0)
    settings: dict[str, str] | None = None  # of measures, by the names that they give them


class ScoredRun(Record, frozen=True, kw_only=True):
    """What results.json keeps of run.json."""

    spec: str | None
    adapter: str | None
    target: str | None
    asked: Settings | None
    revision: str | None
    options: Settings | None
    data: str | None
    versions: Settings | None
    machine: Settings | None
    updated: str | None


class DifficultyUsed(Record, frozen=True, kw_only=True):
    """The table of difficulties that NWERD was divided by."""

    name: str
    sha256: str


class ScoringVersions(Record, frozen=True, kw_only=True):
    """The versions of everything that decides a score."""

    normaliser: str
    difficulty: DifficultyUsed
    measures: dict[str, Settings] | None = None  # by measure
    intervals: str | None = None  # none: percentiles over clips, before there were versions


class Speed(Record, frozen=True, kw_only=True):
    """Seconds of audio, seconds of recognition, and their ratio."""

    audio_s: float
    seconds: float
    rtf: float | None


class RunResults(Record, frozen=True, kw_only=True):
    """`results.json`."""

    schema: Whole
    model: str
    run: ScoredRun
    software: dict[str, str]
    options: ScoringOptions
    scoring: ScoringVersions
    suite: str | None
    failed: Whole
    unfinished: list[str]
    speed: Speed
    languages: dict[str, LanguageResults]
    configs: dict[str, ConfigResults]
    reject: dict[str, RejectResults]
    untranscribed: dict[str, UntranscribedResults] | None = None
    sha256: str | None = None

    def entries(self) -> Iterator[tuple[str, ScoredConfig]]:
        """Every config: with references, without speech, and without references where it has no others."""
        yield from self.configs.items()
        yield from self.reject.items()
        known = {*self.configs, *self.reject}
        yield from ((name, entry) for name, entry in (self.untranscribed or {}).items() if name not in known)


# --- a verified file -------------------------------------------------------------------------------------------------

Triple = Annotated[list[float], Meta(min_length=1, max_length=3)]  # a score as [value, low, high], or the value alone
Measures = dict[str, Triple]  # by the name of the measure


class VerifiedLanguage(Record, frozen=True, kw_only=True):
    """The rows of one language that the leaderboard shows."""

    clean: dict[str, Measures]
    categories: dict[str, Measures]
    overall: Measures
    median: Measures | None = None
    adversarial: Measures | None = None
    categories_missing: Whole | None = None
    resampled: dict[str, ResampledUnits] | None = None  # what the intervals are over, by row


class VerifiedConfig(Record, frozen=True, kw_only=True):
    """The scores of one config."""

    language: str
    corpus: str
    scenario: str
    severity: Whole
    category: str
    scenario_version: str | None = None
    wer: Triple | None = None
    nwer: Triple | None = None
    werd: Triple | None = None
    nwerd: Triple | None = None
    clean_wer: float | None = NULL
    difficulty: float | None = NULL
    bank: str | None = NULL
    empty: Whole
    utterances: Whole
    measures: dict[str, Any] | None = None  # of extensions, by name
    attack: dict[str, float] | None = None

    @property
    def version(self) -> str:
        """The version of the scenario."""
        return self.scenario_version or FIRST_VERSION


class PastVersion(Record, frozen=True, kw_only=True):
    """An earlier version of a model's results."""

    version: Whole
    revision: str | None
    verified_with: str | None = NULL
    benchmark_version: str | None = NULL
    nwerd: dict[str, Triple | None]  # by language
    sha256: str | None = None


class RerunGain(Record, frozen=True, kw_only=True):
    """How many more errors the predictions sent have on some clips, in a direction that pays."""

    kind: str
    clips: Whole
    errors: Whole
    p: float


class RerunRecord(Record, frozen=True, kw_only=True):
    """How a sample of the clips came out when the model transcribed it again."""

    spec: str | None = NULL
    revision: str | None = NULL
    seed: int
    clips: Whole
    same: Whole
    difference: float | None = NULL
    gains: list[RerunGain] | None = NULL
    shown: Whole | None = NULL
    slower: float | None = NULL
    agrees: bool


class NormalisedRates(Record, frozen=True, kw_only=True):
    """Clean WER and average NWERD by another normaliser."""

    clean: float | None
    nwerd: float | None


class VerifiedModel(Record, frozen=True, kw_only=True):
    """Facts about the model for the leaderboard."""

    owner: str
    name: str
    id: str | None = NULL
    params_m: float | None = NULL
    licence: str | None = NULL
    url: str | None = NULL
    training_data: str | None = NULL

    @property
    def full_name(self) -> str:
        return f"{self.owner}/{self.name}"


class VerifiedResults(Record, frozen=True, kw_only=True):
    """A model's file in the folder of verified results: what the leaderboard is built from."""

    schema: Whole
    model: VerifiedModel
    reproduce: str
    predictions: str | None = NULL
    verified_with: str
    benchmark_version: str
    scoring: ScoringVersions
    revision: str | None = NULL
    rerun: RerunRecord | None = NULL
    suite: str | None = NULL
    failed: Whole
    rtf: float | None
    languages: dict[str, VerifiedLanguage]
    configs: dict[str, VerifiedConfig]
    reject: dict[str, float | None]
    draws_sha256: str = ""
    error_digests: dict[str, str] | None = None
    error_sketches: dict[str, list[int]] | None = None
    by_normaliser: dict[str, dict[str, NormalisedRates]] | None = None
    copy_of: list[str] | None = None
    flags: list[str] | None = None
    version: Whole | None = None
    history: list[PastVersion] | None = None
    sha256: str | None = None
