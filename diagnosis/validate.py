"""Do the words that the localiser calls non-robust really fail more? AequeVox's RQ3, with speech synthesis offline.

Sentences with a robust or a non-robust word each come from a small grammar, a synthetic voice speaks them, noise is
added, and it is counted how often the word is missing from what the recogniser writes. AequeVox does so at 2 dB, its
loudest noise. Where a small recogniser misses nearly every word of a plain voice, nothing can be told apart. The
paper's grammars are made by hand for its words; here any word can stand in the frame.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from srb.builders.audio import RATE, Samples
from srb.builders.errors import UserError
from srb.builders.names import parse
from srb.diagnosis.gather import Heard
from srb.diagnosis.localise import OMEGA, Faults, localise
from srb.metrics.scoring import normalise

SENTENCES = 50
GRAMMAR: dict[str, tuple[str, ...]] = {
    "sentence": (
        "{name} {verb} the word {word} {end}",
        "{name} {verb} {word} {end}",
        "the word {word} is what {name} {verb}",
    ),
    "name": ("Mary", "James", "Karen", "Paul", "Ashley", "Robert", "Betty", "Steven"),
    "verb": ("said", "wrote", "repeated", "heard", "likes"),
    "end": ("again", "today", "to everyone", "in the end"),
}


@dataclass(frozen=True)
class Outcome:
    """How often the words of one kind were missing from the transcripts of the sentences made with them."""

    words: tuple[str, ...]
    sentences: int
    errors: int

    @property
    def rate(self) -> float:
        """Errors per sentence."""
        return self.errors / self.sentences if self.sentences else 0.0


def sentences(words: Sequence[str], count: int, rng: np.random.Generator) -> list[tuple[str, str]]:
    """Pairs of a word and a sentence with it, the words in turn."""
    made = []
    for place in range(count):
        word = words[place % len(words)]
        parts = {key: choices[rng.integers(len(choices))] for key, choices in GRAMMAR.items()}
        made.append((word, parts.pop("sentence").format(word=word, **parts)))
    return made


def words_to_test(heard: Heard, model: str, transformation: str, omega: int = OMEGA) -> tuple[list[str], list[str]]:
    """The robust and the non-robust words of a transformation over all clips, equally many, found without transcripts.

    Robust words are the most frequent without any drop.
    """
    everyone = {"all": np.arange(len(heard.clips.ids))}
    found = _fault(localise(heard, everyone, transcripts=False), model, transformation, heard)
    weak, strong = found.non_robust(omega), found.robust(2)
    count = min(len(weak), len(strong))
    if count < 3:
        raise UserError(
            f"{model} has {len(weak)} words that {transformation} loses more than {omega} times and {len(strong)} that "
            "it never loses; a test needs three of each, so lower --omega or run more clips"
        )
    return strong[:count], weak[:count]


def _fault(faults: Sequence[Faults], model: str, transformation: str, heard: Heard) -> Faults:
    for one in faults:
        if (one.recogniser, one.transformation) == (model, transformation):
            return one
    there = sorted({parse(level).scenario for level in heard.clips.levels})
    raise UserError(f"{transformation} was not run; there is {', '.join(there)}")


def validate(
    words: Sequence[str],
    speak: Callable[[str, int], Samples],
    transcribe: Callable[[Samples], str],
    *,
    count: int = SENTENCES,
    snr_db: float,
    seed: int = 0,
) -> Outcome:
    """Speak sentences with the words, add white noise, and count the transcripts in which the word is missing."""
    from srb.builders.perturb.noise import gaussian

    rng = np.random.default_rng(seed)
    errors = 0
    for place, (word, sentence) in enumerate(sentences(words, count, rng)):
        noisy = gaussian(speak(sentence, place), RATE, snr_db, rng)
        errors += normalise(word) not in normalise(transcribe(np.clip(noisy, -1, 1).astype(np.float32))).split()
    return Outcome(tuple(words), count, errors)


def p_value(robust: Outcome, non_robust: Outcome) -> float:
    """How easily chance alone would make the non-robust words fail so much more often (Fisher's exact test).

    Fisher's own example, four cups of eight told right three times:

    >>> round(p_value(Outcome((), 4, 1), Outcome((), 4, 3)), 3)
    0.243
    """
    from scipy.stats import fisher_exact

    table = [[one.errors, one.sentences - one.errors] for one in (non_robust, robust)]
    return float(fisher_exact(table, alternative="greater").pvalue)


def voices(engine: str, language: str = "en") -> Callable[[str, int], Samples]:
    """A function that speaks a sentence with one of the engine's voices, in turn."""
    from srb.builders.tts import open_engine

    speaker = open_engine(engine)
    names = speaker.voices(language)
    if not names:
        raise UserError(f"the engine {engine} has no voice for '{language}'")
    return lambda text, place: speaker.speak(text, names[place % len(names)], language, place)
