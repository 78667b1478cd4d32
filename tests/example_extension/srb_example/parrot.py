"""`parrot:hello there` writes the same words for every clip."""

from __future__ import annotations

from dataclasses import dataclass

from speech_robust_bench.models.interface import Clip, Described, Recogniser


@dataclass
class Parrot(Described):
    """A recogniser that does not listen."""

    words: str = ""

    def transcribe(self, clips: list[Clip], rate: int, language: str | None) -> list[str]:
        return [self.words] * len(clips)


def load(target: str, *, batch_size: int = 8) -> Recogniser:
    """`parrot:<words>`."""
    return Parrot(name="parrot", revision=None, options={"words": target}, batch_size=batch_size, words=target)
