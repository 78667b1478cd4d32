"""The interface that every recogniser has, and the specs that name recognisers on a command line.

A spec is `adapter:target?option=value&option=value`: `moonshine`, `hf:openai/whisper-tiny.en?dtype=float16`,
`cmd:my-recogniser {}`. The adapter is a module of `models.adapters`, imported only when it is asked for.
"""

from __future__ import annotations

import hashlib
import importlib
import inspect
import pkgutil
import re
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import quote, unquote

import numpy as np

from speech_robust_bench.core.errors import UserError, did_you_mean
from speech_robust_bench.core.extensions import load_object, registered, registered_objects
from speech_robust_bench.core.options import Settings
from speech_robust_bench.core.secrets import MASK, mask_secrets, names_secret

if TYPE_CHECKING:
    from speech_robust_bench.builders.configs import Config
    from speech_robust_bench.core.records import Prediction, Settings, Told

Clip = np.ndarray  # mono float32 in [-1, 1]
# A clip and its rate to a clip of the same length; a separator gives an array (talkers, samples).
FrontEnd = Callable[[Clip, int], Clip]
Key = tuple[str, str]  # config, clip

# Options that say how fast and where, not what: two runs that differ only in these belong in one folder.
PERFORMANCE_OPTIONS = frozenset(
    {"batch_size", "device", "pads_safely", "threads", "workers"}
    | {"concurrency", "requests_per_minute", "retries", "timeout_s", "key_env", "cost_per_minute"}
)


class Recogniser(Protocol):
    """Audio in, text out. What it returns for a clip must not depend on the clips beside it."""

    name: str  # the model, as its users call it
    revision: str | None  # which weights: a commit, a hash, a version
    options: Settings  # every setting that was in force, as JSON can hold it
    batch_size: int  # how many clips it would like at a time

    def transcribe(self, clips: list[Clip], rate: int, language: str | None) -> list[str]:
        """One text per clip, in order; `with_confidences` makes one that carries the confidence in each word.

        `language` is a two- or three-letter code, None if unknown.
        """
        ...

    def close(self) -> None:
        """Give back processes, files and memory."""
        ...


@dataclass(frozen=True)
class Word:
    """A word and where it lies in the audio, in seconds."""

    text: str
    start_s: float
    end_s: float


@dataclass(frozen=True)
class Event:
    """A hypothesis of the current segment of a live session, whole: a partial one, which may still change, or the final
    one, after which a new segment begins."""

    text: str
    final: bool = False
    words: tuple[Word, ...] = ()
    endpoint: bool = False  # final because the recogniser believes that the speaker has finished


class Session(Protocol):
    """Live audio: a recogniser that works on it has `stream(rate, language) -> Session`."""

    def accept(self, chunk: Clip) -> Iterable[Event]:
        """Take the next samples; what is new since the last call."""
        ...

    def finish(self) -> Iterable[Event]:
        """The audio has ended; what is left, with a final event for the last segment."""
        ...


class RunMode(Protocol):
    """Another way to use a recogniser than on whole clips; extensions register theirs in `RUN_MODES`.

    It is a class of options. Its name in the registry is a flag of `srb run`, which `about` explains.
    """

    about: str
    suffix: str  # of the name of the run's folder
    advanced: bool  # only `srb run --help-all` shows the flag

    def adapted(self, recogniser: Recogniser) -> Recogniser:
        """A loaded recogniser that can be used so; one that can already stays as it is."""
        ...

    def wrap(self, recogniser: Recogniser) -> Recogniser:
        """The recogniser used so: clips in, texts out."""
        ...

    def facts(
        self, config: Config, clean: Callable[[], Config], wanted: set[int], store: Path
    ) -> Callable[[Prediction], dict[str, Any]]:
        """Further fields of each prediction, from the prediction itself; `clean` opens the clean config."""
        ...

    @classmethod
    def of_run(cls, options: Settings) -> RunMode | None:
        """The mode that a run was made in, by the options in its run.json."""
        ...

    @property
    def flags(self) -> str:
        """How `srb run` is told to use the mode, with a space before it."""
        ...

    def agreement(
        self, sent: Mapping[Key, Prediction], again: Mapping[Key, Told], same: set[Key]
    ) -> tuple[int | None, float | None]:
        """Of clips that were run again: how many gave the same besides the words, and how the times compare."""
        ...


class Transcript(str):
    """A text with more that the recogniser told: fields for its line of the predictions, as JSON has them."""

    details: Settings

    def __new__(cls, text: str, **details: Any) -> Transcript:
        transcript = super().__new__(cls, text)
        transcript.details = details
        return transcript


def with_confidences(
    text: str, words: Iterable[tuple[str, float | None, float | None, float | None]], **told: Any
) -> Transcript:
    """A text with the recogniser's confidence in each word, 0 to 1, and the seconds of audio it takes, where known.

    They stand in the predictions as `word_confidences`: lists of word, confidence, start and end. `told` are further
    fields of the line, such as `alternatives`.
    """
    rounded = [
        [
            word,
            None if confidence is None else round(min(max(float(confidence), 0.0), 1.0), 4),
            *(t if t is None else round(t, 3) for t in times),
        ]
        for word, confidence, *times in words
    ]
    return Transcript(text, word_confidences=rounded, **told)


def with_alternatives(texts: Sequence[str]) -> Transcript:
    """The best transcript of an n-best list; the others stand in the predictions as `alternatives`, each once.

    >>> with_alternatives(["so it is", "so is it", "so it is"]).details
    {'alternatives': ['so is it']}
    """
    best, *others = dict.fromkeys(texts)
    return Transcript(best, **(best.details if isinstance(best, Transcript) else {}), alternatives=others)


def with_turns(turns: Iterable[tuple[str, float | None, float | None, str]], **told: Any) -> Transcript:
    """The transcript of speaker, start, end and text of each turn; the turns stand in the predictions as `pred_turns`.

    >>> with_turns([("ann", 0.0, 1.0, "so"), ("bob", 1.0, 2.5, "it is")])
    'so it is'
    """
    stripped = [(str(speaker), start, end, text.strip()) for speaker, start, end, text in turns]
    rounded = [
        [speaker, *(t if t is None else round(float(t), 3) for t in (start, end)), text]
        for speaker, start, end, text in stripped
    ]
    return Transcript(" ".join(text for *_, text in stripped if text), pred_turns=rounded, **told)


class SomeFailed(Exception):
    """Some clips of a batch failed: carries every clip's text or exception, so that none need be sent again."""

    def __init__(self, outcomes: list[str | Exception]) -> None:
        super().__init__(next((str(outcome) for outcome in outcomes if isinstance(outcome, Exception)), "no text"))
        self.outcomes = outcomes

    @classmethod
    def raise_if_failed(cls, outcomes: list[str | Exception]) -> list[str]:
        """The texts, if every clip has one; raises otherwise."""
        for outcome in outcomes:
            if isinstance(outcome, UserError):
                raise outcome
        texts = [outcome for outcome in outcomes if isinstance(outcome, str)]
        if len(texts) < len(outcomes):
            raise cls(outcomes)
        return texts


@dataclass
class Described:
    """What all adapters share: name, revision, options and batch size."""

    name: str
    revision: str | None
    options: Settings = field(default_factory=dict)
    batch_size: int = 1

    def close(self) -> None:
        """Nothing to give back, unless an adapter says otherwise."""


@dataclass(frozen=True)
class SpecTraits:
    """What is special about the specs of an adapter; `spec_traits` gives them to its `load` function."""

    wraps: bool = False  # the target is the spec of another recogniser
    separator: str = ""  # the target is something, this separator, and that spec, which the options belong to
    holds_keys: bool = False  # the target and the options may hold keys, which are masked
    names_vendor: bool = False  # the target is a vendor, whose models are an option


UNKNOWN = SpecTraits(holds_keys=True)  # an adapter that is not installed


def spec_traits(**traits: Any) -> Callable[[Callable[..., Recogniser]], Callable[..., Recogniser]]:
    """A decorator of an adapter's `load` function that declares the traits of its specs."""

    def declare(load: Callable[..., Recogniser]) -> Callable[..., Recogniser]:
        load.traits = SpecTraits(**traits)  # type: ignore[attr-defined]
        return load

    return declare


def traits_of(adapter: str) -> SpecTraits:
    """The traits that an adapter declares."""
    where = adapters().get(adapter)
    try:
        return getattr(load_object(where, "load"), "traits", SpecTraits()) if where else UNKNOWN
    except ImportError:  # `adapter_of` says what is missing
        return UNKNOWN


@dataclass(frozen=True)
class Spec:
    """A spec, taken apart."""

    adapter: str
    target: str
    options: dict[str, str]

    @property
    def decisive(self) -> dict[str, str]:
        """The options that can change a transcript."""
        return {key: value for key, value in self.options.items() if key not in PERFORMANCE_OPTIONS}

    @property
    def masked(self) -> Spec:
        """The spec as it may be stored: without the keys that a command or an address can hold."""
        if self.wrapped:
            before = self.target[: len(self.target) - len(self.wrapped)]
            return replace(self, target=f"{before}{parse_spec(self.wrapped).masked}")
        options = {key: MASK if names_secret(key) else value for key, value in self.options.items()}
        if traits_of(self.adapter).holds_keys:
            options = {key: mask_secrets(value) for key, value in options.items()}
            return replace(self, target=mask_secrets(self.target), options=options)
        return replace(self, options=options)

    def __str__(self) -> str:
        """The spec put together again."""
        options = "&".join(f"{key}={quote(value, safe='/:,*')}" for key, value in self.options.items())
        target = f":{self.target}" if self.target else ""
        return f"{self.adapter}{target}{'?' if options else ''}{options}"

    @property
    def folder(self) -> str:
        """A folder name for the runs: `hf:openai/whisper-tiny.en` -> `whisper-tiny.en`."""
        spec, traits = self.masked, traits_of(self.adapter)
        if self.wrapped:
            before = spec.target.partition(traits.separator)[0] if traits.separator else self.adapter
            return f"{_as_file_name(before)}-{parse_spec(self.wrapped).folder}"
        last = spec.options.get("model") or spec.target.rstrip("/").rsplit("/", 1)[-1] or self.adapter
        if traits.names_vendor and "model" in spec.options:
            last = f"{spec.target}-{last}"
        return _as_file_name(last) or self.adapter

    @property
    def wrapped(self) -> str:
        """The spec of the recogniser that this one is built around; empty for one that stands by itself."""
        traits = traits_of(self.adapter)
        if traits.separator:
            return self.target.partition(traits.separator)[2]
        return self.target if traits.wraps else ""


def _as_file_name(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9._]+", "-", text).strip("-.")


_OPTIONS = re.compile(r"\w+=[^&?]*(?:&\w+=[^&?]*)*")


def parse_spec(text: str) -> Spec:
    """Take `adapter:target?key=value&...` apart. A `?` that no `key=value` follows belongs to the target."""
    adapter, _, rest = text.partition(":")
    if "?" in adapter:  # no target: `moonshine?threads=1`
        adapter, _, tail = text.partition("?")
        rest = f"?{tail}"
    adapter = adapter.strip()
    if traits_of(adapter).separator:  # what follows a `?` belongs to the recogniser behind it
        return Spec(adapter, rest, {})
    target, question, tail = rest.rpartition("?")
    if not question or not _OPTIONS.fullmatch(tail):
        target, tail = rest, ""
    options = dict(pair.split("=", 1) for pair in tail.split("&")) if tail else {}
    return Spec(adapter, target, {key: unquote(value) for key, value in options.items()})


def mode_of(options: Settings) -> RunMode | None:
    """The mode that a run was made in, by the options in its run.json; None for whole clips."""
    found = (mode.of_run(options) for mode in registered_objects("RUN_MODES").values())
    return next(filter(None, found), None)


def adapters() -> dict[str, str]:
    """Every adapter's name and where its `load` function is: ours, and those of extensions."""
    package = importlib.import_module("speech_robust_bench.models.adapters")
    names = (module.name for module in pkgutil.iter_modules(package.__path__) if not module.name.startswith("_"))
    ours = {name.replace("_", "-"): f"{package.__name__}.{name}" for name in names}
    return dict(sorted({**registered("ADAPTERS"), **ours}.items()))


def open_model(spec: str | Spec, **defaults: Any) -> Recogniser:
    """Load the recogniser that a spec names. `defaults` are options for adapters that have them; the spec wins."""
    parsed = parse_spec(spec) if isinstance(spec, str) else spec
    load = adapter_of(parsed)
    known = _option_types(load)
    chosen = {key: value for key, value in defaults.items() if key in known and value is not None}
    return load(parsed.target, **{**chosen, **_converted(parsed, known)})


def adapter_of(spec: Spec) -> Any:
    """The `load` function of a spec's adapter."""
    known = adapters()
    if spec.adapter not in known:
        raise UserError(f"no recogniser adapter '{spec.adapter}'; {did_you_mean(spec.adapter, known)}")
    return load_object(known[spec.adapter], "load")


def check_spec(spec: Spec) -> None:
    """Refuse a wrong adapter or option before any data is read."""
    _converted(spec, _option_types(adapter_of(spec)))


def _option_types(load: Any) -> dict[str, type]:
    hints = typing.get_type_hints(load)
    parameters = inspect.signature(load).parameters.values()
    return {p.name: hints.get(p.name, str) for p in parameters if p.kind is p.KEYWORD_ONLY}


def _converted(spec: Spec, known: Mapping[str, type]) -> Settings:
    values = {}
    for key, text in spec.options.items():
        if key not in known:
            raise UserError(f"'{spec.adapter}' has no option '{key}'; {did_you_mean(key, known)}")
        values[key] = _convert(key, text, known[key])
    return values


AT_LEAST_ONE = ("batch_size", "beams", "concurrency")  # of the options that are numbers; none is below 0


def _convert(key: str, text: str, kind: Any) -> Any:
    if isinstance(kind, types.UnionType) or typing.get_origin(kind) is typing.Union:  # `int | None`
        kind = next(part for part in typing.get_args(kind) if part is not type(None))
    if kind is bool:
        words = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
        if text.lower() not in words:
            raise UserError(f"option {key}={text}: say true or false")
        return words[text.lower()]
    try:
        value = kind(text)
    except ValueError:
        raise UserError(f"option {key}={text}: not {'a whole number' if kind is int else 'a number'}") from None
    least = 1 if key in AT_LEAST_ONE else 0
    if kind in (int, float) and not least <= value < float("inf"):
        raise UserError(f"option {key}={text}: a number from {least} on")
    return value


def need(package: str, adapter: str, install: str) -> Any:
    """Import an optional package, or say in one line how to get it."""
    try:
        return importlib.import_module(package)
    except ImportError as error:
        if error.name and error.name.split(".")[0] not in (package.split(".")[0], None):
            reason = f" ({error})"  # it is there, but something that it wants is not
        else:
            reason = ""
        raise UserError(f"'{adapter}' needs the package {package}{reason}: {install}") from None


def out_of_memory(error: BaseException) -> bool:
    """Torch, onnxruntime, CTranslate2 and Python each say it in their own way."""
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return True
    text = str(error).lower()
    return any(
        words in text for words in ("out of memory", "failed to allocate memory", "can't allocate memory", "bad_alloc")
    )


def folder_revision(folder: Path, patterns: Sequence[str]) -> str:
    """A short hash of the files that make a local model what it is."""
    digest = hashlib.sha256()
    for path in sorted({match for pattern in patterns for match in folder.glob(pattern)}):
        digest.update(path.relative_to(folder).as_posix().encode() + b"\0")
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    return f"sha256:{digest.hexdigest()[:16]}"


FRAME_S = 0.02


def split_at_pauses(clip: Clip, rate: int, longest_s: float, search_s: float = 6.0) -> list[Clip]:
    """Pieces of at most `longest_s`, cut at the quietest moment within the last `search_s` of each; no sample is lost.

    The energy is smoothed over 0.2 s, so that the cut falls in a pause and not in a stop consonant.
    """
    pieces = []
    longest, frame = int(longest_s * rate), max(1, int(FRAME_S * rate))
    while len(clip) > longest:
        window = clip[longest - int(search_s * rate) : longest]
        frames = window[: len(window) // frame * frame].reshape(-1, frame)
        energy = np.convolve(np.square(frames, dtype=np.float64).mean(axis=1), np.ones(10), mode="same")
        cut = longest - int(search_s * rate) + int(energy.argmin()) * frame + frame // 2
        pieces.append(clip[:cut])
        clip = clip[cut:]
    return [*pieces, clip]
