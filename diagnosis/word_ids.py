"""Transcripts as arrays of word numbers, so that counting and aligning words needs no Python loop over words.

A `Vocabulary` gives every word that it meets a number; `encode` turns a list of transcripts into one flat array and
the places where each begins. Texts are normalised as everywhere else (`scoring.scoring`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from speech_robust_bench.core.errors import UserError
from speech_robust_bench.scoring.scoring import NORMALISERS, Counts, default_unit, versions
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
