"""The records that pass between rooms, one type for each file: how it is read, checked and written.

`run.json` is a `RunRecord`, a line of predictions a `Prediction` (docs/concepts/files.md names the files). Decoding
checks: a value of another type, NaN or half a character is an error that names the field. Keys that a record does not
know are passed over, so that files of later versions can be read. A field whose default is `NULL` is written even if it
is null; one whose default is None is left out then.
"""

from __future__ import annotations

import json
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, Literal, NamedTuple, TypeVar

import msgspec
from msgspec import UNSET, Meta, UnsetType

from speech_robust_bench.core.errors import UserError, for_terminal
from speech_robust_bench.core.names import parse
from speech_robust_bench.core.options import Settings as Settings
from speech_robust_bench.core.rows import LONGEST
from speech_robust_bench.core.seeding import FIRST_VERSION

NULL: Any = msgspec.field(default_factory=NoneType)
Whole = Annotated[int, Meta(ge=-(2**53), le=2**53)]  # what other programs can hold too
NotNegative = Annotated[float, Meta(ge=0)]
T = TypeVar("T")


class Record(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A record whose keys in a file are the names of its fields, in their order."""

    def replace(self: T, **changes: Any) -> T:
        """The same record with other values in some fields."""
        return msgspec.structs.replace(self, **changes)  # type: ignore[type-var]

    def as_json(self) -> Settings:
        """The record as `json` writes it."""
        return msgspec.to_builtins(self, enc_hook=_plain)


def _plain(value: Any) -> Any:
    """A number of numpy as Python's own."""
    if hasattr(value, "item"):
        return value.item()
    raise TypeError(f"{type(value).__name__} has no place in JSON")


# --- reading and writing ---------------------------------------------------------------------------------------------


def decode(data: str | bytes, kind: type[T], where: str | Path) -> T:
    """The record in a JSON text; anything else is a `UserError` that names the file and the field."""
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UserError(f"{where}: {problem(error)}") from None


def convert(value: Any, kind: type[T]) -> T:
    """The record in a value that was JSON; a ValueError says what is wrong with it."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise ValueError(problem(error)) from None


def read(path: Path, kind: type[T]) -> T:
    """The record that a JSON file holds."""
    return decode(path.read_bytes(), kind, path)


def problem(error: Exception) -> str:
    """What a decoder found, the field first.

    >>> problem(msgspec.ValidationError("Expected `int`, got `str` - at `$.configs[...].rows`"))
    "'configs[...].rows': expected `int`, got `str`"
    """
    if isinstance(error, RecursionError):
        return "is nested too deeply"
    what, _, place = str(error).partition(" - at `")
    if not isinstance(error, msgspec.ValidationError):
        return f"is not valid JSON ({what})"
    what = "has characters that are not allowed" if "matching regex" in what else what[:1].lower() + what[1:]
    field = place.rstrip("`").removeprefix("$").removeprefix(".")
    return for_terminal(f"'{field}': {what}" if field else what, most=200)


def to_json(record: Record, indent: int | None = None) -> bytes:
    """The text of a record's file, or its line where there is no indent."""
    return json.dumps(record.as_json(), indent=indent, ensure_ascii=False, allow_nan=False).encode() + b"\n"


# --- a line of predictions -------------------------------------------------------------------------------------------


class StreamEvent(NamedTuple):
    """What a streaming recogniser showed, when, and after how much audio; kind is partial, final or endpoint."""

    time_s: float  # when it was shown
    sent_s: float  # seconds of audio sent by then
    text: str
    kind: str  # partial, final or endpoint


class WordTime(NamedTuple):
    """A word of the reference and where it lies in the audio."""

    text: str
    start_s: float  # seconds from the beginning of the clip
    end_s: float  # seconds from the beginning of the clip


class WordConfidence(NamedTuple):
    """A recognised word, how sure the recogniser is of it (0 to 1), and where it heard it."""

    word: Annotated[str, Meta(max_length=LONGEST["text"])]
    confidence: Annotated[float, Meta(ge=0, le=1)] | None  # 0 to 1; null where only the times are known
    start_s: Annotated[float, Meta(ge=0, le=36_000)] | None  # seconds from the beginning of the clip
    end_s: Annotated[float, Meta(ge=0, le=36_000)] | None  # seconds from the beginning of the clip


class SpeakerTurn(NamedTuple):
    """What one speaker says without a break, and when. Speakers are labels that hold within a clip."""

    speaker: Annotated[str, Meta(max_length=LONGEST["speaker"])]
    start_s: Annotated[float, Meta(ge=0, le=36_000)] | None  # seconds from the beginning of the clip
    end_s: Annotated[float, Meta(ge=0, le=36_000)] | None  # seconds from the beginning of the clip
    text: Annotated[str, Meta(max_length=LONGEST["text"])]


Alternatives = Annotated[list[Annotated[str, Meta(max_length=LONGEST["text"])]], Meta(max_length=1_000)]


class Stream(Record, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a clip was sent to a streaming recogniser, how long each call took, and what was shown."""

    chunk_ms: Whole  # length of a chunk
    speed: float  # of the simulated machine
    realtime: bool  # paced in real time
    took_ms: list[float]  # time of each call: one per chunk, one for the end
    processor_time: bool | None = None  # true if processor time was measured
    repeats: Whole | None = None  # how often the clip was sent
    done_ms: list[float] | None = None  # in real time: when each call was done
    events: list[StreamEvent]  # every update


class Told(Record, frozen=True, kw_only=True):
    """What a recogniser tells besides the text, as far as a line of predictions has fields for it."""

    word_confidences: list[WordConfidence] | None = None  # where the recogniser has confidences or word times
    alternatives: Alternatives | None = None  # other transcripts of an n-best list, best first
    pred_turns: list[SpeakerTurn] | None = None  # where the recogniser labels speakers
    raw_text: str | None = None  # as the model wrote it, before its answer was taken out
    stream: Stream | None = None  # of a streamed clip


class Prediction(Record, frozen=True, kw_only=True, gc=False):
    """What a recogniser wrote for one clip, and what is known of the clip."""

    id: str  # of the clip
    audio_filepath: str | None = NULL  # <config>/<id>.flac
    duration: NotNegative | None = NULL  # seconds of audio
    time: NotNegative | None = NULL  # seconds of recognition, the clip's share of its batch
    text: str | None  # the reference; null where nobody has transcribed the clip
    pred_text: str | None = NULL  # null where the clip failed
    speaker: str | None = NULL  # null if unknown
    gender: str | None = NULL  # null if unknown
    age: str | None = NULL  # null if unknown
    accent: str | None = NULL  # null if unknown
    language: str | None = NULL  # code such as en
    loudness_dbfs: float | None = NULL  # RMS level below full scale; null for digital silence
    columns: dict[str, str] | None = None  # what else the corpus says of the clip
    target: str | None = None  # what an attack wants to have written
    snr_db: float | UnsetType | None = UNSET  # reached by an attack; null where nothing was changed
    above_threshold: float | None = None  # share of an attack above the masking threshold
    masked: str | None = None  # places of masked words in the reference
    turns: list[SpeakerTurn] | None = None  # who spoke when, of a recording with several speakers
    word_confidences: list[WordConfidence] | None = None  # where the recogniser has confidences or word times
    alternatives: list[str] | None = None  # other transcripts of an n-best list, best first
    pred_turns: list[SpeakerTurn] | None = None  # where the recogniser labels speakers
    raw_text: str | None = None  # full answer of a language model
    stream: Stream | None = None  # of a streamed clip
    details: Settings | None = None  # what else a recogniser told, under its own names
    error: str | None = None  # why the clip failed
    words: list[WordTime] | UnsetType | None = UNSET  # of a streamed or timed clip; null where they are not known

    @property
    def snr_reached_db(self) -> float | None:
        return None if isinstance(self.snr_db, UnsetType) else self.snr_db

    @property
    def word_times(self) -> list[WordTime]:
        """Where the words of the reference lie, if that is known."""
        return [] if isinstance(self.words, UnsetType) or self.words is None else self.words

    @property
    def seconds(self) -> float:
        """The clip's duration, 0 if it is not known."""
        return self.duration or 0.0

    @property
    def transcript(self) -> str:
        """What was written; nothing if the clip failed."""
        return self.pred_text or ""

    def label(self, column: str) -> str | None:
        """What the line says of its clip in a column: one that every line has, or one of the corpus' own."""
        own = getattr(self, column) if column in LABELS else (self.columns or {}).get(column)
        return None if own is None else str(own)


class SubmittedPrediction(Prediction, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A prediction in a stranger's submission: nothing else in it, and nothing out of bounds."""

    id: Annotated[str, Meta(min_length=1, max_length=LONGEST["id"])]
    audio_filepath: Annotated[str, Meta(max_length=500)]
    duration: Annotated[float, Meta(ge=0, le=36_000)]
    time: Annotated[float, Meta(ge=0, le=86_400)]
    text: Annotated[str, Meta(max_length=LONGEST["text"])] | None
    pred_text: Annotated[str, Meta(max_length=LONGEST["text"])] | None
    speaker: Annotated[str, Meta(max_length=LONGEST["speaker"])] | None = NULL
    gender: Annotated[str, Meta(max_length=LONGEST["gender"])] | None = NULL
    age: Annotated[str, Meta(max_length=LONGEST["age"])] | None = NULL
    accent: Annotated[str, Meta(max_length=LONGEST["accent"])] | None = NULL
    language: Annotated[str, Meta(max_length=LONGEST["language"])] | None = NULL
    loudness_dbfs: Annotated[float, Meta(ge=-200, le=10)] | None = NULL
    columns: None = None
    target: Annotated[str, Meta(max_length=LONGEST["text"])] | None = None
    snr_db: Annotated[float, Meta(ge=-200, le=400)] | UnsetType | None = UNSET
    above_threshold: Annotated[float, Meta(ge=0, le=1)] | None = None
    masked: Annotated[str, Meta(max_length=10_000, pattern=r"^(?:\d{1,6}(?: \d{1,6})*)?\Z")] | None = None
    turns: Annotated[list[SpeakerTurn], Meta(max_length=20_000)] | None = None
    word_confidences: Annotated[list[WordConfidence], Meta(max_length=20_000)] | None = None
    alternatives: Alternatives | None = None
    pred_turns: Annotated[list[SpeakerTurn], Meta(max_length=20_000)] | None = None
    raw_text: Annotated[str, Meta(max_length=20_000)] | None = None
    details: None = None
    error: Annotated[str, Meta(max_length=2_000)] | None = None


_NESTED = {"columns", "stream", "words", "word_confidences", "alternatives", "turns", "pred_turns", "details"}
LABELS = frozenset(Prediction.__struct_fields__) - _NESTED
_PREDICTION = msgspec.json.Decoder(Prediction)


def parse_line(line: str | bytes) -> Prediction:
    """One prediction; a ValueError says why a line is none."""
    try:
        return _PREDICTION.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(problem(error)) from None


# --- run.json --------------------------------------------------------------------------------------------------------


class ConfigFacts(Record, frozen=True, kw_only=True):
    """Which config something is about: the parts of its name, and its category."""

    language: str  # code such as en
    corpus: str
    scenario: str  # such as noise
    severity: Whole  # 0 for none
    category: str  # such as noise_env

    @property
    def facts(self) -> Settings:
        """These fields alone, for another record of the same config."""
        return {name: getattr(self, name) for name in ConfigFacts.__struct_fields__}


class Origin(Record, frozen=True, kw_only=True):
    """What run.json says of a config: the same facts, or null for each that is unknown, and what it was made from."""

    language: str | None = NULL  # code such as en
    corpus: str | None = NULL
    scenario: str | None = NULL  # such as noise
    severity: Whole | None = NULL  # 0 for none
    category: str | None = NULL  # such as noise_env
    source: str | None = NULL  # the clean config; null for clean speech
    bank: str | None = NULL  # the noises, rooms or voices that went in
    stand_in: bool | None = None  # whether they stand in for the paper's; left out if there are none
    benchmark_version: str | None = NULL  # version of the benchmark
    scenario_version: str | None = None  # left out for the first

    @property
    def version(self) -> str:
        """The version of the scenario."""
        return self.scenario_version or FIRST_VERSION

    def of_config(self, config: str) -> ConfigFacts:
        """The facts of a config of that name, which tells what is not said here."""
        name = parse(config)
        return ConfigFacts(
            language=self.language or name.language,
            corpus=self.corpus or str(name.corpus),
            scenario=self.scenario or name.scenario,
            severity=name.severity if self.severity is None else self.severity,
            category=self.category or name.scenario,
        )


class ConfigData(Origin, frozen=True, kw_only=True):
    """A config as it is known before it is run, with the hashes of its content."""

    content_sha256: str | None = NULL  # hash of the rows
    rows_sha256: str | None = NULL  # hash of ids and references
    fingerprint: str | None = None  # hash of everything that the config is made from

    def same_data(self, other: ConfigData) -> bool:
        """Whether two records of a config are of the same data, as far as both tell.

        The fingerprint decides where the content of one is not known yet.
        """
        certain = self.content_sha256 and other.content_sha256
        names = ("content_sha256", "rows_sha256", *(() if certain else ("fingerprint",)))
        pairs = [(getattr(self, name), getattr(other, name)) for name in names]
        return all(one == another for one, another in pairs if one and another)


class RunConfig(ConfigData, frozen=True, kw_only=True):
    """A config's entry in run.json: what it is, and how fast and how well it went."""

    rows: Whole | None = NULL  # number of clips; null while it is being run
    of: Whole | None = NULL  # clips of the whole config
    failed: Whole | None = NULL  # clips without a transcript
    audio_s: float | None = NULL  # seconds of audio
    seconds: float | None = NULL  # seconds of recognition
    rtf: float | None = NULL  # seconds / audio_s
    rtf_quantiles: dict[str, float] | None = NULL  # p5 to p99 over clips
    suite: str | None = None  # whose clips these are, where they are not all
    sha256: str | None = None  # of the predictions file


class PerturbedCorpora(Record, frozen=True, kw_only=True):
    """What a run perturbed while it ran: corpora, as `--corpus` names them, and what went in besides."""

    corpora: dict[str, str | None]  # null for one that is built in
    noise_dir: str | None = None  # --noise-dir
    rir_dir: str | None = None  # --rir-dir
    tts: str | None = None  # --tts
    limit: Whole | None = None  # --limit


class RunRecord(Record, frozen=True, kw_only=True):
    """`run.json`: which model was run, with which options and versions, on what machine, over which configs."""

    model: str | None = NULL  # name of the model
    spec: str | None = NULL  # as typed, keys as ***
    adapter: str | None = NULL  # such as hf
    target: str | None = NULL  # such as openai/whisper-tiny.en
    asked: Settings | None = NULL  # the options of the spec
    revision: str | None = NULL  # commit, hash or version of the weights
    options: Settings | None = NULL  # those that the model runs with
    data: str | None = NULL  # as the user wrote it
    perturbed: PerturbedCorpora | None = None  # of a run that perturbed its clips
    versions: Settings | None = NULL  # of packages
    machine: Settings | None = NULL  # processor, cores, GPU
    configs: dict[str, RunConfig | None] | None = NULL  # by name
    updated: str | None = NULL  # time of the last change
    run_name: str | None = None  # of a submission: the run's folder, after which its own adversarial configs are named

    def config(self, name: str) -> RunConfig:
        """The entry of a config; an empty one if there is none."""
        return (self.configs or {}).get(name) or RunConfig()


def read_run_record(path: Path) -> RunRecord:
    """The content of a `run.json`."""
    try:
        return read(path, RunRecord)
    except UserError as error:
        raise UserError(f"{error}; delete it and run the model again with `srb run`") from None


class SubmittedRun(RunRecord, frozen=True, kw_only=True):
    """The `run.json` of a stranger's submission: every text in it that is shown or stored is of bounded length."""

    model: Annotated[str, Meta(max_length=200)] | None = NULL
    spec: Annotated[str, Meta(max_length=1_000)] | None = NULL
    adapter: Annotated[str, Meta(max_length=60)] | None = NULL
    target: Annotated[str, Meta(max_length=1_000)] | None = NULL
    revision: Annotated[str, Meta(max_length=200)] | None = NULL
    updated: Annotated[str, Meta(max_length=60)] | None = NULL
    run_name: Annotated[str, Meta(max_length=200)] | None = None


# --- submission.json -------------------------------------------------------------------------------------------------

# An owner is a user or an organisation, as the Hub names them: without `--`, which stands between owner and name in the
# names of files.
MODEL_NAME = r"(?!.*--)[A-Za-z0-9][A-Za-z0-9._+-]{0,79}"
OWNER_NAME = r"(?!.*--)[A-Za-z0-9](?:[A-Za-z0-9._-]{0,94}[A-Za-z0-9])?"
# ASCII alone, as on the Hub: letters of other scripts look like it and name another model.
HUB_ID = r"[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+"


def _matching(pattern: str, most: int) -> Meta:
    return Meta(pattern=rf"^(?:{pattern})\Z", max_length=most)


class SubmittedModel(Record, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Facts about the model for the leaderboard."""

    owner: Annotated[str, _matching(OWNER_NAME, 96)]
    name: Annotated[str, _matching(MODEL_NAME, 80)]
    id: Annotated[str, _matching(HUB_ID, 140)] | None = NULL
    params_m: Annotated[float, Meta(ge=0, le=10_000_000)] | None = NULL
    licence: Annotated[str, _matching(r"[A-Za-z0-9 .+()-]*", 60)] | None = NULL
    url: Annotated[str, _matching(r"https://[A-Za-z0-9_./~%#?=&:+-]+", 300)] | None = NULL
    training_data: Annotated[str, _matching(r"[^<>]*", 300)] | None = NULL

    @property
    def full_name(self) -> str:
        return f"{self.owner}/{self.name}"


class FileFacts(Record, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A file's hash and size."""

    sha256: str  # hash of the content
    size: Whole  # bytes


class SubmissionRecord(Record, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`submission.json`: the model, the versions, the command that makes the predictions again, and every file."""

    schema: Literal[1]  # version of this format
    model: SubmittedModel
    benchmark_version: str  # version of the benchmark
    software: dict[str, str]  # versions of packages
    reproduce: Annotated[str, _matching(r"[^<>]*", 1_000)]
    files: dict[str, FileFacts]


# --- _manifest.json --------------------------------------------------------------------------------------------------


class CorpusFacts(Record, frozen=True, kw_only=True):
    """The corpus that a config was made from."""

    name: str
    title: str
    licence: str | None  # SPDX identifier
    url: str | None = NULL  # page
    citation: str | None = NULL  # how to cite it
    derivatives_allowed: bool | None = NULL  # whether built data can be published
    note: str | None = NULL  # a remark for the card


class ConfigOrigin(Record, frozen=True, kw_only=True):
    """What a config is, and what it was made from."""

    config: str  # name of the config
    language: str  # code such as en
    scenario: str  # such as noise
    category: str  # such as noise_env
    severity: Whole  # 0 for none
    parameters: Settings  # of the scenario
    source: str | None = NULL  # the clean config; null for a recording
    bank: str | None = NULL  # noises, rooms or voices
    stand_in: bool | None = None  # whether they stand in for the paper's; left out if there are none
    corpus: CorpusFacts
    skipped: list[str] | None = NULL  # clips left out
    fingerprint: str | None = NULL  # hash of everything that the config is made from
    attack: Settings | None = None  # how an adversarial config was made
    scenario_version: str | None = None
    private: bool | None = None  # of an edition with a secret seed

    @property
    def version(self) -> str:
        """The version of the scenario."""
        return self.scenario_version or FIRST_VERSION


class Manifest(ConfigOrigin, frozen=True, kw_only=True):
    """A built config's `_manifest.json`: what it was made from, and the hash that proves its content."""

    benchmark_version: str  # version of the benchmark
    content_sha256: str  # hash of the rows
    rows: Whole
    seconds: float
    clipped: Whole | None = NULL  # number of clipped samples
    files: list[str]
    versions: Settings | None = NULL  # of packages
    columns: list[str] | None = None  # where they are not those of every config
