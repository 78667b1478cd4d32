"""Which words a recogniser gets wrong: their ids across clips, and what kinds of words they are; bursts and loops.

A burst is a run of at least four inserted words. A loop is a phrase of up to eight words written four times in a row (a
single word) or three times (a longer phrase) where the reference does not repeat it: recognisers that write text from
left to right fall into such loops on noise and silence.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.untrusted_files import csv_cells, read_text
from speech_robust_bench.scoring.scoring import NORMALISERS, Counts, default_unit, normalise, versions
from speech_robust_bench.scoring.word_alignment import align_numbers

VOCABULARY_UNITS = ("word", "char-nospace")
BY_WORD = {"srb-paper-1", "none"}  # the normalisers that treat every word of a text alone


class _Numbers(dict[str, int]):
    """Word -> number, in the order in which words come."""

    def __missing__(self, word: str) -> int:
        self[word] = number = len(self)
        return number


@dataclass(frozen=True)
class Coded:
    """Transcripts as word numbers: those of transcript i are `words[starts[i]:starts[i + 1]]`."""

    words: np.ndarray
    starts: np.ndarray

    @property
    def lengths(self) -> np.ndarray:
        """Words of each transcript."""
        return np.diff(self.starts)

    @property
    def owner(self) -> np.ndarray:
        """For each word, the transcript it is in."""
        return np.repeat(np.arange(len(self)), self.lengths)

    def take(self, kept: np.ndarray) -> Coded:
        """Only some transcripts, by mask."""
        ends = np.concatenate([[0], np.cumsum(self.lengths[kept])])
        return Coded(self.words[kept[self.owner]], ends)

    def __len__(self) -> int:
        return len(self.starts) - 1


@dataclass(frozen=True)
class Alignment:
    """Transcripts aligned with their references, word by word."""

    reference: Coded
    hypothesis: Coded
    counts: Counts
    partner: np.ndarray  # per reference word: the place of its partner in `hypothesis.words`, -1 if it was deleted
    inserted: np.ndarray  # per hypothesis word: whether it stands for nothing

    @property
    def hit(self) -> np.ndarray:
        """Per reference word: whether it was recognised."""
        return self.became == self.reference.words

    @property
    def became(self) -> np.ndarray:
        """Per reference word: the number of the word that it turned into, -1 if it was deleted."""
        if not len(self.hypothesis.words):
            return np.full(len(self.partner), -1)
        return np.where(self.partner >= 0, self.hypothesis.words[self.partner], -1)


@dataclass
class Vocabulary:
    """Numbers for words. Two transcripts can be compared if one vocabulary has encoded both."""

    normaliser: str = "srb-paper-1"
    unit: str = "word"  # or "char-nospace"
    numbers: _Numbers = field(default_factory=_Numbers)
    seen: dict[str, list[int]] = field(default_factory=dict)  # word as written -> its numbers
    language: str | None = None

    @classmethod
    def of(cls, language: str | None, normaliser: str = "srb-paper-1", unit: str | None = None) -> Vocabulary:
        """For a language: its words, or its characters where words are not separated by spaces, or the unit given."""
        versions(normaliser)  # one clear line if there is no such normaliser
        if unit not in (None, *VOCABULARY_UNITS):
            raise UserError(f"there is no unit '{unit}' here; choose one of {', '.join(VOCABULARY_UNITS)}")
        return cls(normaliser, unit or default_unit(language), language=language)

    @property
    def words(self) -> list[str]:
        """Every word so far, by number."""
        return list(self.numbers)

    def encode(self, texts: Sequence[str | None] | pa.ChunkedArray) -> Coded:
        """Normalise and number the words of each text; a clip that failed (None) has none."""
        column = texts if isinstance(texts, pa.ChunkedArray) else pa.chunked_array([texts], pa.string())
        if self.normaliser not in BY_WORD:
            normal = NORMALISERS[self.normaliser].function
            column = pa.chunked_array([[normal(text or "", self.language) for text in column.to_pylist()]], pa.string())
        split = pc.utf8_split_whitespace(column.combine_chunks().fill_null(""))
        written = split.values.dictionary_encode()
        units = pa.array([self._units(word) for word in written.dictionary.to_pylist()], pa.list_(pa.int32()))
        numbers = units.take(written.indices)
        starts = numbers.offsets.to_numpy()[split.offsets.to_numpy()]
        return Coded(numbers.values.to_numpy(), starts.astype(np.int64))

    def _units(self, word: str) -> list[int]:
        """The numbers of a word as written: mostly one; none for "--", and one a character where these are the unit."""
        if word not in self.seen:
            by_word = self.normaliser in BY_WORD
            words = (NORMALISERS[self.normaliser].function(word, self.language) if by_word else word).split()
            self.seen[word] = [self.numbers[unit] for unit in (words if self.unit == "word" else "".join(words))]
        return self.seen[word]


def align(reference: Coded, hypothesis: Coded) -> Alignment:
    """Align each transcript with its reference; the counts are those of `scoring.scoring.align`."""
    partner, inserted = align_numbers(reference.words, reference.starts, hypothesis.words, hypothesis.starts)
    paired = partner >= 0
    wrong = np.zeros(len(partner), dtype=bool)
    wrong[paired] = reference.words[paired] != hypothesis.words[partner[paired]]
    substitutions, deletions = (
        np.bincount(reference.owner[kind], minlength=len(reference)) for kind in (wrong, ~paired)
    )
    insertions = np.bincount(hypothesis.owner[inserted], minlength=len(hypothesis))
    counts = Counts(reference.lengths - substitutions - deletions, substitutions, deletions, insertions)
    return Alignment(reference, hypothesis, counts, partner, inserted)


# name of a band -> the share of running words up to which it goes
BANDS = {
    "common (half of all words)": 0.5,
    "middle (next 30 %)": 0.8,
    "uncommon (next 15 %)": 0.95,
    "rare (last 5 %)": 1.0,
}
_NUMBERS = {
    "en": "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand "
    "million billion first second third fourth fifth sixth seventh eighth ninth tenth",
    "es": "cero uno una dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce quince dieciséis "
    "diecisiete dieciocho diecinueve veinte veintiuno veintidós veintitrés veinticuatro veinticinco "
    "veintiséis veintisiete veintiocho veintinueve treinta cuarenta cincuenta sesenta setenta ochenta noventa "
    "cien ciento doscientos trescientos cuatrocientos quinientos seiscientos setecientos ochocientos "
    "novecientos mil millón millones primero primera segundo segunda tercero tercera cuarto cuarta quinto "
    "quinta",
}
# Languages that write every noun with a capital, so that a capital does not make a name.
_CAPITAL_NOUNS = {"de", "lb"}


def is_number(word: str, language: str) -> bool:
    """Whether a normalised word is a number: figures, or a number word where the language's are known.

    >>> is_number("seven", "en"), is_number("2nd", "en"), is_number("seventy", "es"), is_number("ate", "en")
    (True, True, False, False)
    """
    return any(c.isdigit() for c in word) or word in _NUMBERS.get(language, "").split()


def names(references: Sequence[str], language: str) -> set[str] | None:
    """Words (lower case) that are written with a capital inside a sentence and never without.

    None where capitals tell nothing: in texts that are all upper or all lower case, and where all nouns have them.

    >>> sorted(names(["Then Mary saw Rome.", "Rome is old, she said.", "It is she."], "en"))
    ['mary', 'rome']
    """
    joined = " ".join(references)
    if language in _CAPITAL_NOUNS or not any(map(str.islower, joined)) or not any(map(str.isupper, joined)):
        return None
    plain: set[str] = set()
    capital: set[str] = set()
    for text in references:
        starts = True
        for token in text.split():
            word = re.sub(r"[^\w'’]", "", token)
            if word and word[0].islower():
                plain.add(word.lower())
            elif word and not starts and word[0].isupper() and word.split("'")[0].split("’")[0] not in ("I", "Im"):
                capital.add(word.lower())
            starts = token[-1] in '.!?:"”'
    return {re.sub(r"['’]", "", word) for word in capital - plain}


def bands(frequency: Mapping[str, int]) -> dict[str, str]:
    """The band of each word, the most frequent first; words of one frequency are in one band.

    >>> bands({"the": 50, "fox": 30, "ran": 15, "home": 5})["fox"]
    'middle (next 30 %)'
    """
    total = sum(frequency.values())
    sizes = Counter(frequency.values())
    above, of_count = 0, {}
    for count in sorted(sizes, reverse=True):
        # Words of one frequency cannot be told apart, so all are where the middle of them is.
        share = (above + count * sizes[count] / 2) / total
        of_count[count] = next(band for band, end in BANDS.items() if share < end or end == 1.0)
        above += count * sizes[count]
    return {word: of_count[count] for word, count in frequency.items()}


@dataclass(frozen=True)
class Kinds:
    """Kinds of words, each with a mask over the vocabulary; a word may be of several.

    `unknown` says why a kind is absent or not whole.
    """

    masks: Mapping[str, np.ndarray]
    unknown: Mapping[str, str]


def kinds(
    vocabulary: Sequence[str],
    references: Sequence[str],
    language: str,
    frequency: Mapping[str, int],
    names_given: set[str] | None = None,
) -> Kinds:
    """The bands and classes of a vocabulary's words."""
    band = bands(frequency)
    known_names = names_given if names_given is not None else names(references, language)
    masks = {name: np.array([band.get(word) == name for word in vocabulary], dtype=bool) for name in BANDS}
    unknown = {}
    masks["said once"] = np.array([frequency.get(word) == 1 for word in vocabulary], dtype=bool)
    masks["numbers"] = np.array([is_number(word, language) for word in vocabulary], dtype=bool)
    if language not in _NUMBERS:
        unknown["numbers"] = f"only figures: the number words of '{language}' are not known"
    if known_names is None:
        unknown["names"] = "the transcripts do not tell names by capitals"
    else:
        masks["names"] = np.array([word in known_names for word in vocabulary], dtype=bool)
    return Kinds(masks, unknown)


def missed(alignment: Alignment, kinds: Kinds) -> dict[str, tuple[int, int]]:
    """For each kind: how many of its words were said, and how many of these were missed."""
    said, hit = alignment.reference.words, alignment.hit
    return {kind: (int(mask[said].sum()), int((mask[said] & ~hit).sum())) for kind, mask in kinds.masks.items()}


def read_frequencies(path: str | Path, normaliser: str = "srb-paper-1") -> dict[str, int]:
    """A CSV file of word,count; a first line of headings is passed over."""
    counts: Counter[str] = Counter()
    for number, row in csv_cells(read_text(path), path):
        if len(row) != 2 or not re.fullmatch(r"[0-9]{1,15}", row[1].strip()):
            if number > 1:
                raise UserError(f"{path}, line {number}: not word,count")
            continue
        counts[normalise(row[0], normaliser)] += int(row[1])
    if not counts.total():
        raise UserError(f"{path} has no line word,count with a count above 0")
    return dict(counts)


def read_names(path: str | Path, normaliser: str = "srb-paper-1") -> set[str]:
    """A file with a name on each line; each of its words counts."""
    return {word for line in read_text(path).splitlines() for word in normalise(line, normaliser).split()}


BURST = 4
LONGEST_PHRASE = 8
REPEATS = 3
REPEATS_OF_A_WORD = 4


@dataclass(frozen=True)
class Span:
    """A stretch of one transcript: which one, from which of its words, how many words; the period of a loop."""

    clip: int
    start: int
    length: int
    period: int = 0


def bursts(alignment: Alignment, least: int = BURST) -> list[Span]:
    """Runs of inserted words."""
    hypothesis = alignment.hypothesis
    return [
        Span(clip, start - int(hypothesis.starts[clip]), length)
        for clip, start, length in _runs(alignment.inserted, hypothesis.owner)
        if length >= least
    ]


def loops(hypothesis: Coded) -> list[Span]:
    """Repeated phrases, the shortest period first; what lies within a loop that was found is not found again."""
    words, owner = hypothesis.words, hypothesis.owner
    taken = np.zeros(len(words), dtype=bool)
    spans = []
    for period in range(1, min(LONGEST_PHRASE, max(len(words) - 1, 0)) + 1):
        same = np.zeros(len(words), dtype=bool)
        same[period:] = (words[period:] == words[:-period]) & (owner[period:] == owner[:-period])
        repeats = REPEATS_OF_A_WORD if period == 1 else REPEATS
        if np.count_nonzero(same) < (repeats - 1) * period:
            continue
        for clip, start, length in _runs(same, owner):
            first, total = start - period, length + period
            if total >= repeats * period and not taken[first : first + total].all():
                taken[first : first + total] = True
                spans.append(Span(clip, first - int(hypothesis.starts[clip]), total, period))
    return sorted(spans, key=lambda span: (span.clip, span.start))


def invented_loops(alignment: Alignment) -> list[Span]:
    """The loops of transcripts whose reference has none of the same period."""
    hypothesis = loops(alignment.hypothesis)
    said = {(span.clip, span.period) for span in loops(alignment.reference)} if hypothesis else set()
    return [span for span in hypothesis if (span.clip, span.period) not in said]


def _runs(mask: np.ndarray, owner: np.ndarray) -> list[tuple[int, int, int]]:
    """Stretches of True within one transcript: (transcript, first place, length)."""
    if not mask.any():
        return []
    change = np.flatnonzero((mask[1:] != mask[:-1]) | (owner[1:] != owner[:-1])) + 1
    starts = np.concatenate([[0], change])
    lengths = np.diff(np.concatenate([starts, [len(mask)]]))
    kept = mask[starts]
    return list(zip(owner[starts[kept]].tolist(), starts[kept].tolist(), lengths[kept].tolist(), strict=True))


def looped_insertions(alignment: Alignment, spans: Sequence[Span] | None = None) -> np.ndarray:
    """How many of each clip's inserted words are in its loops."""
    hypothesis = alignment.hypothesis
    looped = np.zeros(len(hypothesis.words), dtype=bool)
    for span in invented_loops(alignment) if spans is None else spans:
        first = int(hypothesis.starts[span.clip]) + span.start
        looped[first : first + span.length] = True
    return np.bincount(hypothesis.owner[looped & alignment.inserted], minlength=len(hypothesis))


def fold(words: Sequence[str]) -> list[tuple[str, int]]:
    """A transcript in pieces, each with the number of times it is written in a row: loops once, all else as it is.

    >>> fold("no more more more more more please".split())
    [('no', 1), ('more', 5), ('please', 1)]
    >>> fold("thank you thank you thank you".split())
    [('thank you', 3)]
    """
    numbers = {word: number for number, word in enumerate(dict.fromkeys(words))}
    coded = Coded(np.array([numbers[word] for word in words], dtype=np.int64), np.array([0, len(words)]))
    pieces, at = [], 0
    for span in loops(coded):
        times, rest = divmod(span.length, span.period)
        if span.start < at:  # within a longer loop
            continue
        pieces += [
            (" ".join(words[at : span.start]), 1),
            (" ".join(words[span.start : span.start + span.period]), times),
        ]
        at = span.start + span.length - rest
    pieces.append((" ".join(words[at:]), 1))
    return [(text, times) for text, times in pieces if text]


def folded(words: Sequence[str]) -> str:
    """A transcript for people: “more” × 441 in place of 441 words.

    >>> folded("and more more more more".split())
    'and “more” × 4'
    """
    return " ".join(piece if times == 1 else f"“{piece}” × {times}" for piece, times in fold(words))
