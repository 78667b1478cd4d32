"""Transcripts as arrays of word numbers, so that counting and aligning words needs no Python loop over words.

A `Vocabulary` gives every word that it meets a number; `encode` turns a list of transcripts into one flat array and
the places where each begins. Texts are normalised as everywhere else (`srb.metrics.scoring`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from srb.metrics.scoring import NORMALISERS, Counts, default_unit, versions


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
    heard: Coded
    counts: Counts
    partner: np.ndarray  # per reference word: the place of its partner in `heard.words`, -1 if it was deleted
    inserted: np.ndarray  # per heard word: whether it stands for nothing

    @property
    def hit(self) -> np.ndarray:
        """Per reference word: whether it was heard."""
        return self.became == self.reference.words

    @property
    def became(self) -> np.ndarray:
        """Per reference word: the number of the word that it turned into, -1 if it was deleted."""
        if not len(self.heard.words):
            return np.full(len(self.partner), -1)
        return np.where(self.partner >= 0, self.heard.words[self.partner], -1)


@dataclass
class Vocabulary:
    """Numbers for words. Two transcripts can be compared if one vocabulary has encoded both."""

    normaliser: str = "srb-paper-1"
    unit: str = "word"
    numbers: _Numbers = field(default_factory=_Numbers)

    @classmethod
    def of(cls, language: str | None, normaliser: str = "srb-paper-1") -> Vocabulary:
        """For a language: its words, or its characters where words are not separated by spaces."""
        versions(normaliser)  # one clear line if there is no such normaliser
        return cls(normaliser, default_unit(language))

    @property
    def words(self) -> list[str]:
        """Every word so far, by number."""
        return list(self.numbers)

    def encode(self, texts: Sequence[str | None]) -> Coded:
        """Normalise and number the words of each text; a clip that failed (None) has none."""
        normal = NORMALISERS[self.normaliser][0]
        flat: list[str] = []  # one list for all: a list per text would keep the garbage collector busy
        ends = [0]
        for text in texts:
            words = normal(text).split() if text else []
            flat += words if self.unit == "word" else list((" " if self.unit == "char" else "").join(words))
            ends.append(len(flat))
        numbers = map(self.numbers.__getitem__, flat)
        return Coded(np.fromiter(numbers, dtype=np.int32, count=len(flat)), np.array(ends, dtype=np.int64))


def align(reference: Coded, heard: Coded) -> Alignment:
    """Align each transcript with its reference; the counts are those of `srb.metrics.scoring.align`."""
    from srb.diagnosis import kernels

    counts = np.zeros((len(reference), 4), dtype=np.int64)
    partner = np.full(len(reference.words), -1, dtype=np.int64)
    inserted = np.zeros(len(heard.words), dtype=bool)
    kernels.align(reference.words, reference.starts, heard.words, heard.starts, counts, partner, inserted)
    return Alignment(reference, heard, Counts(*counts.T), partner, inserted)
