"""The one record that every corpus is read into, and the corpus that lists such records.

A reader turns a published layout into a stream of `Utterance`s and `Problem`s. It opens transcripts and lists folders,
never audio: an utterance says where its samples are, and `load()` decodes them later, once, wherever the work runs.

Long form: whole recordings as clips, with the segments that were transcribed as their references.

A recording is taken from the beginning of its first segment to the end of its last one, and its reference is the text
of the segments in the order of their beginnings, as Whisper's evaluation of TED-LIUM has it (Radford et al., "Robust
Speech Recognition via Large-Scale Weak Supervision", 2023, Appendix A.2). A recogniser's one transcript is aligned with
all of it and no times are looked at: with one stream of output this is the ORC-WER of MeetEval (von Neumann et al.,
2023) for utterances in order. Where people talk at once, the one who began first comes first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Protocol

import soundfile

from speech_robust_bench.core import audio as codec
from speech_robust_bench.core.audio import Samples
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.names import is_language_code
from speech_robust_bench.core.rows import LONGEST, Columns, Parameters, column_problem, forbidden_character

# What the readers look for beside a transcript, best first: libsndfile decodes all of them.
AUDIO_SUFFIXES = (".flac", ".wav", ".opus", ".ogg", ".mp3", ".sph", ".aiff", ".au")

# Common Voice says `male_masculine`, LibriSpeech `M`, STM files `male`; `unknown` and its kind are no gender at all.
_GENDERS = {
    "f": "female",
    "female": "female",
    "female_feminine": "female",
    "m": "male",
    "male": "male",
    "male_masculine": "male",
}
_UNKNOWN = {"", "unknown", "none", "nan", "null", "do_not_wish_to_say", "not specified", "n/a"}


class Audio(Protocol):
    """Where an utterance's samples are: small, picklable, decoded by `load`."""

    @property
    def name(self) -> str:
        """What an error message calls it."""

    def load(self) -> Samples:
        """Decode to mono float32 at 16 kHz."""


@dataclass(frozen=True, slots=True)
class FileAudio:
    """A file, or the stretch from `start_s` to `end_s` of a long recording; only that stretch is read."""

    path: str
    start_s: float = 0.0
    end_s: float | None = None
    mix: bool = True  # average the channels; False keeps channel 0

    @property
    def name(self) -> str:
        return self.path if self.end_s is None else f"{self.path} [{self.start_s:.2f}-{self.end_s:.2f} s]"

    def load(self) -> Samples:
        return codec.read(self.path, mix=self.mix, start_s=self.start_s, end_s=self.end_s)


def seconds_of(audio: Audio) -> float:
    """How long a clip is: by the header of a file, else by decoding it."""
    if isinstance(audio, FileAudio):
        if audio.end_s is not None:
            return audio.end_s - audio.start_s
        with suppress(soundfile.LibsndfileError):
            return soundfile.info(audio.path).duration - audio.start_s
    return len(audio.load()) / codec.RATE


@dataclass(frozen=True, slots=True)
class BytesAudio:
    """An encoded file held in memory, as a streamed dataset gives it."""

    data: bytes = field(repr=False)
    name: str

    def load(self) -> Samples:
        return codec.read(self.data, name=self.name)


@dataclass(frozen=True)
class Utterance:
    """One clip of one speaker with what was said; the same fields whatever the corpus."""

    id: str
    audio: Audio
    text: str | None  # None where nobody has transcribed the clip
    language: str
    speaker: str | None = None
    gender: str | None = None
    age: str | None = None
    accent: str | None = None
    corpus: str = ""
    licence: str = ""
    columns: Columns = field(default=(), repr=False)  # what else the corpus says: region, domain, device, ...

    def load(self) -> Samples:
        """The clip as mono float32 at 16 kHz; what cannot be decoded, or is empty, is a UserError."""
        samples = self.audio.load()
        if not len(samples):
            raise UserError(f"{self.audio.name}: zero-length clip")
        return samples


@dataclass(frozen=True, slots=True)
class Problem:
    """Something a corpus lacks or has too much of: where (a file or an id), and what is wrong with it."""

    where: str
    what: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


@dataclass(frozen=True)
class CorpusInfo:
    """A corpus before it is read: its name, terms and source, and how to get it."""

    name: str
    title: str
    licence: str
    url: str
    citation: str
    get: str  # one clause: where the data comes from
    hub: str | None = None  # the standard Hub dataset, as a `--corpus` value
    derivatives_allowed: bool = True  # may what is built from it be published?
    note: str = ""  # what a card must say about it


@dataclass(frozen=True)
class KnownCorpus:
    """A known corpus: what is known about it, and how its folder is read."""

    info: CorpusInfo
    read: Callable[..., Iterable[Utterance | Problem]]
    layout: str
    languages: tuple[str, ...] = ()  # () for any
    amend: Callable[[Utterance], Utterance | None] | None = None  # for rows of its Hub dataset; None leaves one out
    sort: bool = True  # by id; otherwise the reader's own order


@dataclass
class Corpus:
    """A corpus in one language: iterate for its utterances, sorted by id; `problems` is complete once that is done."""

    info: CorpusInfo
    language: str
    source: str
    read: Callable[[], Iterable[Utterance | Problem]] = field(repr=False)
    sort: bool = True  # a streamed dataset and the demo corpus keep their own order
    # A scenario's selection: by what is known of an utterance, then by listening to those that are left.
    keep: Callable[[Utterance], bool] | None = field(default=None, repr=False)
    listen: Callable[[list[Utterance]], Iterable[Utterance | Problem]] | None = field(default=None, repr=False)
    problems: list[Problem] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.info.name

    @property
    def licence(self) -> str:
        return self.info.licence

    @property
    def url(self) -> str:
        return self.info.url

    @property
    def citation(self) -> str:
        return self.info.citation

    @property
    def derivatives_allowed(self) -> bool:
        return self.info.derivatives_allowed

    @cached_property
    def utterances(self) -> list[Utterance]:
        """Every usable utterance; the unusable ones are in `problems`."""
        return list(self)

    def __iter__(self) -> Iterator[Utterance]:
        self.problems = []
        usable: Iterable[Utterance] = self._usable()
        if self.sort:
            usable = sorted(usable, key=lambda utterance: utterance.id)
        yield from self._listened(list(usable)) if self.listen else usable

    def _listened(self, usable: list[Utterance]) -> Iterator[Utterance]:
        assert self.listen is not None
        for item in self.listen(usable):
            if isinstance(item, Problem):
                self.problems.append(item)
            else:
                yield item

    def _usable(self) -> Iterator[Utterance]:
        first: dict[str, str] = {}
        for item in self.read():
            if isinstance(item, Problem):
                self.problems.append(item)
            elif wrong := _refusal(item):
                self.problems.append(Problem(_printable(item.id), wrong))
            elif item.id in first:
                self.problems.append(
                    Problem(item.id, f"duplicate id ({item.audio.name}; first seen in {first[item.id]})")
                )
            else:
                first[item.id] = item.audio.name
                if self.keep is None or self.keep(item):
                    yield replace(item, corpus=self.name, licence=item.licence or self.licence)


def _refusal(item: Utterance) -> str | None:
    """Why an utterance cannot become a row: what is stored, printed and scored later is checked where it enters."""
    if item.text is not None and not item.text.strip():
        return f"empty text ({item.audio.name})"
    if not is_language_code(item.language):
        return f"'{_printable(item.language[:40])}' is not a language code such as en or pt-BR ({item.audio.name})"
    for column, longest in LONGEST.items():
        value = getattr(item, column) or ""
        if character := forbidden_character(value):
            return f"its {column} has the control character {character} ({item.audio.name})"
        if len(value) > longest:
            return f"its {column} is longer than {longest} characters ({item.audio.name})"
    wrong = column_problem(item.columns)
    return f"{wrong} ({item.audio.name})" if wrong else None


def _printable(text: str) -> str:
    return "".join(character if character.isprintable() else "?" for character in text[:80])


def gender(word: str | None) -> str | None:
    """`female` or `male` for the ways corpora spell them, another word as it is, None for unknown."""
    word = known(word)
    return _GENDERS.get(word.lower(), word) if word else None


def known(value: object) -> str | None:
    """A metadata value as text, None where the corpus says nothing."""
    text = "" if value is None else str(value).strip()
    return None if text.lower() in _UNKNOWN else text


def words(text: str | None) -> int:
    """How many words a transcript has."""
    return len((text or "").split())


def find_folder(root: Path, wanted: Callable[[Path], bool], depth: int = 3) -> list[Path]:
    """The folders at or up to `depth` levels below `root` that `wanted` accepts; the nearest level that has any."""
    level = [root]
    for _ in range(depth + 1):
        matching = [folder for folder in level if wanted(folder)]
        if matching:
            return matching
        level = [child for folder in level for child in sorted(folder.iterdir()) if child.is_dir()]
    return []


@dataclass(frozen=True, slots=True)
class LongAudio(FileAudio):
    """A stretch of a recording with all its segments: start and end in seconds of the stretch, speaker, text."""

    segments: tuple[tuple[float, float, str | None, str], ...] = ()

    @property
    def parameters(self) -> Parameters:
        """What the row of the clean config says beside its text."""
        return {"segments": [list(segment) for segment in self.segments]}


def whole_recordings(items: Iterable[Utterance | Problem]) -> Iterator[Utterance | Problem]:
    """One utterance for each file that segments were cut from."""
    by_file: dict[str, list[tuple[FileAudio, Utterance]]] = {}
    for item in items:
        if isinstance(item, Problem):
            yield item
        elif isinstance(item.audio, FileAudio):
            by_file.setdefault(item.audio.path, []).append((item.audio, item))
    for path, segments in by_file.items():
        segments.sort(key=lambda pair: (pair[0].start_s, pair[0].end_s or 0.0, pair[1].speaker or ""))
        spoken = [(audio, item) for audio, item in segments if item.text]
        if not spoken:
            yield Problem(path, "none of its segments has words")
            continue
        start_s = spoken[0][0].start_s
        end_s = max(audio.end_s or 0.0 for audio, _ in spoken)
        references = tuple(
            (round(audio.start_s - start_s, 3), round((audio.end_s or 0.0) - start_s, 3), item.speaker, item.text or "")
            for audio, item in spoken
        )
        speakers, genders = ({getattr(item, field) for _, item in spoken} for field in ("speaker", "gender"))
        yield Utterance(
            id=Path(path).stem,
            audio=LongAudio(path, start_s, end_s, spoken[0][0].mix, references),
            text=" ".join(text for *_, text in references),
            language=spoken[0][1].language,
            speaker=speakers.pop() if len(speakers) == 1 else None,
            gender=genders.pop() if len(genders) == 1 else None,
        )


def long_form(info: CorpusInfo, what: str) -> CorpusInfo:
    """The same corpus as whole recordings."""
    return replace(info, name=f"{info.name}long", title=f"{info.title}, whole {what}", hub=None)
