"""The alphabet of a probe: CTC's blank and the characters of its training transcripts, normalised as for scoring."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from speech_robust_bench.core.errors import UserError
from speech_robust_bench.scoring.scoring import normalise

BLANK = 0
MOST_LETTERS = 20_000  # Chinese has some thousands


def spelled(text: str, language: str | None) -> str:
    """A transcript as a probe learns and writes it: normalised, words apart by one space."""
    return " ".join(normalise(text, language=language).split())


@dataclass(frozen=True)
class Letters:
    """Characters by number; 0 is the blank."""

    characters: str

    def __post_init__(self) -> None:
        if len(set(self.characters)) != len(self.characters) or not 0 < len(self.characters) <= MOST_LETTERS:
            raise UserError("a probe's alphabet has some characters, each of them once")

    @classmethod
    def of(cls, texts: Iterable[str]) -> Letters:
        """Every character that some transcripts have."""
        return cls("".join(sorted({character for text in texts for character in text})))

    def __len__(self) -> int:
        return len(self.characters) + 1

    def encode(self, text: str) -> list[int]:
        """The numbers of a text; characters that were not in training have none."""
        return [place + 1 for character in text if (place := self.characters.find(character)) >= 0]

    def decode(self, numbers: Sequence[int]) -> str:
        """Greedy CTC decoding: what repeats is one letter, then the blanks go."""
        once = (number for number, _ in groupby(numbers))
        return " ".join("".join(self.characters[number - 1] for number in once if number != BLANK).split())
