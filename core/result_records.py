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

from speech_robust_bench.core.records import NULL, ConfigFacts, Record, Settings, Whole, convert
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

    value: float  # the score, in per cent
    interval: Interval | None = NULL  # its bounds


class Ratio(Record, frozen=True, kw_only=True):
    """A logarithm of a ratio and its interval; null where it is infinite."""

    value: float | None  # null where it cannot be computed
    interval: Interval | None = NULL  # its bounds


class Scores(Record, frozen=True, kw_only=True):
    """The measures; null where there is none."""

    wer: ScoreValue | None  # word error rate
    nwer: ScoreValue | None  # 100 x WER / difficulty
    werd: ScoreValue | None  # WER - clean WER
    nwerd: ScoreValue | None  # 100 x WERD / difficulty

    def score(self, measure: str) -> ScoreValue | None:
        """The score by a measure's name."""
        return getattr(self, measure) if measure in MEASURES else None


class ResampledUnits(Record, frozen=True, kw_only=True):
    """What the intervals are over: how many speakers, or clips where speakers are not known, and of how many clips."""

    unit: str  # speakers, or clips
    units: Whole  # how many of them
    clips: Whole  # number of clips

    def __str__(self) -> str:
        return f"{self.units} clips" if self.unit == "clips" else f"{self.units} {self.unit}, {self.clips} clips"


class MeanRow(Scores, frozen=True, kw_only=True):
    """The mean over some configs or categories, and why others are not in it."""

    members: list[str]  # what is averaged
    missing: dict[str, str]  # what is not included, with the reason
    resampled: ResampledUnits | None = None


class GroupRate(Record, frozen=True, kw_only=True):
    """The error rate of one group of clips."""

    wer: float | None  # word error rate
    utterances: Whole  # number of clips
    words: Whole  # number of words
    speakers: Whole  # number of speakers


class Slices(Record, frozen=True, kw_only=True):
    """Groups of speakers, and of clips by the columns that a corpus adds."""

    configs: Whole | None = None  # that were pooled
    speakers: Whole  # number of speakers
    gender: dict[str, GroupRate] | None = None  # by gender
    accent: dict[str, GroupRate] | None = None  # by accent
    age: dict[str, GroupRate] | None = None  # by age
    columns: dict[str, dict[str, GroupRate]] | None = None
    lwerr: Ratio | None = None  # log2 WER ratio of female to male speakers

    @property
    def groups(self) -> dict[str, dict[str, GroupRate]]:
        """Every column that has groups."""
        named = {"gender": self.gender, "accent": self.accent, "age": self.age, **(self.columns or {})}
        return {column: groups for column, groups in named.items() if groups}


class InventedWords(Record, frozen=True, kw_only=True):
    """What was written for clips in which nobody speaks, or of which nobody knows what was said."""

    clips: Whole  # number of clips
    clips_with_words: Whole  # clips for which words were written
    words: Whole  # number of words
    minutes: float  # minutes of audio
    words_per_minute: float | None  # invented words per minute


class Hallucination(Record, frozen=True, kw_only=True):
    """Words that nobody said: insertions where there is speech, every word where there is none."""

    insertions_per_word: float | None  # inserted words / words
    reject: InventedWords | None  # configs without speech


class LanguageResults(Record, frozen=True, kw_only=True):
    """The tables of one language."""

    clean: dict[str, MeanRow]  # clean speech, by corpus
    categories: dict[str, MeanRow]  # by category
    scenarios: dict[str, MeanRow]  # by scenario
    severities: dict[str, MeanRow]  # by scenario and severity
    corpora: dict[str, MeanRow]  # by corpus and category
    overall: MeanRow  # mean of the paper's categories
    median: MeanRow  # median over configs
    adversarial: MeanRow  # attacks
    missing: dict[str, list[str]]  # what is not included, with the reason
    slices: dict[str, dict[str, Slices]]  # by corpus, and clean or hard
    hallucination: Hallucination  # invented words


# --- the entry of a config -------------------------------------------------------------------------------------------


class ScoredConfig(ConfigFacts, frozen=True, kw_only=True):
    """What every entry says of its config: what it is, and the predictions that were scored."""

    source: str | None = NULL  # the clean config; null for clean speech
    bank: str | None = NULL  # the noises, rooms or voices that went in
    stand_in: bool | None = None  # whether they stand in for the paper's; left out if there are none
    benchmark_version: str | None = NULL  # version of the benchmark
    scenario_version: str | None = None  # left out for the first
    rows: Whole
    of: Whole | None  # clips of the whole config
    failed: Whole  # clips without a transcript
    failed_ids: list[str]  # their ids
    rtf: float | None  # seconds / audio_s
    rtf_quantiles: dict[str, float] | None  # p5 to p99 over clips
    content_sha256: str | None  # hash of the rows
    rows_sha256: str | None  # hash of ids and references
    predictions_sha256: str  # hash of the predictions file
    measures: Settings | None = None  # of extensions, by name

    @property
    def version(self) -> str:
        """The version of the scenario."""
        return self.scenario_version or FIRST_VERSION


class ConfigResults(ScoredConfig, frozen=True, kw_only=True):
    """A config with references: its scores, and what went into them."""

    wer: ScoreValue | None  # word error rate
    nwer: ScoreValue | None  # 100 x WER / difficulty
    werd: ScoreValue | None  # WER - clean WER
    nwerd: ScoreValue | None  # 100 x WERD / difficulty
    why: dict[str, str]  # why a measure is null
    clean_wer: float | None  # WER of the clean clips
    difficulty: float | None  # difficulty of the config
    unit: str  # word, char or char-nospace
    resampled: ResampledUnits | None = None
    utterances: Whole  # number of clips
    hits: Whole  # right words
    substitutions: Whole  # replaced words
    deletions: Whole  # missing words
    insertions: Whole  # additional words
    insertions_per_word: float | None  # inserted words / words
    empty: Whole  # clips of which no word was recognised
    slices: Slices  # by group of speakers
    attack: dict[str, float] | None = None  # success of an attack

    def score(self, measure: str) -> ScoreValue | None:
        """The score by a measure's name."""
        return getattr(self, measure) if measure in MEASURES else None


class RejectResults(ScoredConfig, frozen=True, kw_only=True):
    """A config without speech."""

    clips: Whole  # number of clips
    clips_with_words: Whole  # clips for which words were written
    words: Whole  # number of words
    minutes: float  # minutes of audio
    words_per_minute: float | None  # invented words per minute


class UntranscribedResults(RejectResults, frozen=True, kw_only=True):
    """A config without references: how far its transcripts are from those of the clean clips."""

    difference: ScoreValue | None  # distance from the clean clips' transcripts


# --- results.json ----------------------------------------------------------------------------------------------------


class ScoringOptions(Record, frozen=True, kw_only=True):
    """How to score. Results are comparable if these options are the same."""

    normaliser: str = always("srb-paper-1")
    unit: str | None = NULL  # word, char or char-nospace
    difficulty: str = always("paper-table3")
    floor: bool = always(False)  # negative WERD counted as 0
    resample: str = always("auto")
    replicates: Whole = always(1000)  # of the bootstrap
    level: float = always(0.95)  # of the intervals
    seed: Whole = always(0)  # of the random numbers
    settings: dict[str, str] | None = None  # of measures, by the names that they give them


class ScoredRun(Record, frozen=True, kw_only=True):
    """What results.json keeps of run.json."""

    spec: str | None  # as typed, keys as ***
    adapter: str | None  # such as hf
    target: str | None  # such as openai/whisper-tiny.en
    asked: Settings | None
    revision: str | None  # commit, hash or version of the weights
    options: Settings | None  # the options in force
    data: str | None
    versions: Settings | None  # of packages
    machine: Settings | None  # processor, cores, GPU
    updated: str | None  # time of the last change


class DifficultyUsed(Record, frozen=True, kw_only=True):
    """The table of difficulties that NWERD was divided by."""

    name: str
    sha256: str  # hash of the content


class ScoringVersions(Record, frozen=True, kw_only=True):
    """The versions of everything that decides a score."""

    normaliser: str  # text normaliser
    difficulty: DifficultyUsed  # the table
    measures: dict[str, Settings] | None = None  # by measure
    intervals: str | None = None  # none: percentiles over clips, before there were versions


class Speed(Record, frozen=True, kw_only=True):
    """Seconds of audio, seconds of recognition, and their ratio."""

    audio_s: float  # seconds of audio
    seconds: float  # seconds of recognition
    rtf: float | None  # seconds / audio_s


class SubmittedResults(Record, frozen=True, kw_only=True):
    """What decides whether a stranger's results.json is compared with the scores of its predictions at all."""

    schema: Whole | None = None
    model: Annotated[str, Meta(max_length=200)] | None = None
    software: dict[str, str]
    options: Settings | None = None
    suite: Annotated[str, Meta(max_length=80)] | None = None


class RunResults(Record, frozen=True, kw_only=True):
    """`results.json`."""

    schema: Whole  # version of this format
    model: str  # name of the model
    run: ScoredRun  # from run.json
    software: dict[str, str]  # versions of packages
    options: ScoringOptions  # the options in force
    scoring: ScoringVersions  # versions of everything that decides a score
    suite: str | None  # name and version of the suite, if any
    failed: Whole  # clips without a transcript
    unfinished: list[str]  # configs without a whole file
    speed: Speed  # over all clips
    languages: dict[str, LanguageResults]  # by language
    configs: dict[str, ConfigResults]  # by name
    reject: dict[str, RejectResults]  # configs without speech
    untranscribed: dict[str, UntranscribedResults] | None = None  # configs without references
    sha256: str | None = None  # hash of the content

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

    clean: dict[str, Measures]  # clean speech, by corpus
    categories: dict[str, Measures]  # by category
    overall: Measures  # mean of the paper's categories
    median: Measures | None = None  # median over configs
    adversarial: Measures | None = None  # attacks
    categories_missing: Whole | None = None
    resampled: dict[str, ResampledUnits] | None = None  # what the intervals are over, by row


class VerifiedConfig(ConfigFacts, frozen=True, kw_only=True):
    """The scores of one config."""

    scenario_version: str | None = None
    wer: Triple | None = None  # word error rate
    nwer: Triple | None = None  # 100 x WER / difficulty
    werd: Triple | None = None  # WER - clean WER
    nwerd: Triple | None = None  # 100 x WERD / difficulty
    clean_wer: float | None = NULL  # WER of the clean clips
    difficulty: float | None = NULL  # difficulty of the config
    bank: str | None = NULL  # noises, rooms or voices
    stand_in: bool | None = None  # whether they stand in for the paper's; left out if there are none
    empty: Whole  # clips without a word
    utterances: Whole  # number of clips
    measures: Settings | None = None  # of extensions, by name
    attack: dict[str, float] | None = None  # success of an attack

    @property
    def version(self) -> str:
        """The version of the scenario."""
        return self.scenario_version or FIRST_VERSION


class PastVersion(Record, frozen=True, kw_only=True):
    """An earlier version of a model's results."""

    version: Whole  # counts from 1
    revision: str | None  # commit, hash or version of the weights
    verified_with: str | None = NULL  # version of SRB
    benchmark_version: str | None = NULL  # version of the benchmark
    nwerd: dict[str, Triple | None]  # by language
    sha256: str | None = None  # hash of the content


class RerunGain(Record, frozen=True, kw_only=True):
    """How many more errors the predictions sent have on some clips, in a direction that pays."""

    kind: str  # on which clips, and more or fewer errors
    clips: Whole  # number of clips
    errors: Whole  # additional errors
    p: float  # p-value


class RerunRecord(Record, frozen=True, kw_only=True):
    """How a sample of the clips came out when the model transcribed it again."""

    spec: str | None = NULL  # as typed, keys as ***
    revision: str | None = NULL  # commit, hash or version of the weights
    seed: int  # of the random numbers
    clips: Whole  # number of clips
    same: Whole  # clips with equal transcripts
    difference: float | None = NULL  # of the WERs
    gains: list[RerunGain] | None = NULL  # differences in a direction that pays
    shown: Whole | None = NULL
    slower: float | None = NULL
    agrees: bool  # whether the rerun agrees


class NormalisedRates(Record, frozen=True, kw_only=True):
    """Clean WER and average NWERD by another normaliser."""

    clean: float | None  # WER on clean speech
    nwerd: float | None  # 100 x WERD / difficulty


class VerifiedModel(Record, frozen=True, kw_only=True):
    """Facts about the model for the leaderboard."""

    owner: str  # user or organisation
    name: str
    id: str | None = NULL  # repository on the Hub
    params_m: float | None = NULL  # millions of parameters
    licence: str | None = NULL  # SPDX identifier
    url: str | None = NULL  # page
    training_data: str | None = NULL  # in a few words

    @property
    def full_name(self) -> str:
        return f"{self.owner}/{self.name}"


class VerifiedResults(Record, frozen=True, kw_only=True):
    """A model's file in the folder of verified results: what the leaderboard is built from."""

    schema: Whole  # version of this format
    model: VerifiedModel  # facts about the model
    reproduce: str  # the command
    predictions: str | None = NULL  # where the transcripts are
    verified_with: str  # version of SRB
    benchmark_version: str  # version of the benchmark
    scoring: ScoringVersions  # versions of everything that decides a score
    revision: str | None = NULL  # commit, hash or version of the weights
    rerun: RerunRecord | None = NULL  # result of a rerun
    suite: str | None = NULL  # name and version of the suite, if any
    failed: Whole  # clips without a transcript
    rtf: float | None  # seconds / audio_s
    languages: dict[str, VerifiedLanguage]  # by language
    configs: dict[str, VerifiedConfig]  # by name
    reject: dict[str, float | None]  # configs without speech
    draws_sha256: str = ""
    error_digests: dict[str, str] | None = None  # hashes of wrong transcripts
    error_sketches: dict[str, list[int]] | None = None  # samples of wrong words, hashed
    by_normaliser: dict[str, dict[str, NormalisedRates]] | None = None  # clean WER and NWERD by other normalisers
    copy_of: list[str] | None = None  # models with the same transcripts
    flags: list[str] | None = None  # reasons not to rank
    version: Whole | None = None  # counts from 1
    history: list[PastVersion] | None = None  # earlier versions
    sha256: str | None = None  # hash of the content
