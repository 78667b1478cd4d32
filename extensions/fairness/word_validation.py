"""Do the words that the localiser calls non-robust really fail more? AequeVox's RQ3, with speech synthesis offline.

Sentences with a robust or a non-robust word each come from a few frames, a synthetic voice speaks them, noise is added,
and it is counted how often the word is missed in its place. No frame holds a word under test, so that nothing but the
slot decides. AequeVox does so at 2 dB, its loudest noise. Where a small recogniser misses nearly every word of a plain
voice, nothing can be told apart. The paper's grammars are made by hand for its words; here any word can stand in the
frame, because it is mentioned, in quotation marks, not used.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from speech_robust_bench.core.audio import RATE, Samples
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.names import parse
from speech_robust_bench.extensions.fairness.fault_localisation import OMEGA, Faults, localise
from speech_robust_bench.scoring.clip_sets import TranscribedSet, clip_sets
from speech_robust_bench.scoring.runs import Run
from speech_robust_bench.scoring.scoring import normalise
from speech_robust_bench.scoring.word_errors import Vocabulary, align

Json = dict[str, Any]
SENTENCES = 50
FRAMES: dict[str, tuple[str, ...]] = {
    "frame": (
        '{name} {verb} the word "{word}" {end}',
        '{name} {verb} "{word}" {end}',
        '{name} {verb} the term "{word}" {end}',
        'please repeat "{word}" for {name}',
        '"{word}" was what {name} {verb}',
    ),
    "name": ("Mary", "James", "Karen", "Paul", "Ashley", "Robert", "Betty", "Steven"),
    "verb": ("said", "wrote", "repeated", "whispered", "typed"),
    "end": ("again", "today", "yesterday", "twice", "slowly"),
}


@dataclass(frozen=True)
class Sentence:
    """A spoken sentence: its text, the word under test, and which of the text's words that is."""

    text: str
    word: str
    slot: int


@dataclass(frozen=True)
class ValidationOutcome:
    """How often the words of one kind were missed in the sentences made with them."""

    words: tuple[str, ...]
    sentences: int
    errors: int

    @property
    def rate(self) -> float:
        """The mean number of errors per sentence."""
        return self.errors / self.sentences if self.sentences else 0.0


def sentences(
    words: Sequence[str], count: int, rng: np.random.Generator, avoid: Collection[str] = ()
) -> list[Sentence]:
    """Sentences with the words in turn, of frames that hold none of the words under test (`words` and `avoid`).

    A frame with a word under test in it could supply the hit that the slot missed.
    """
    tested = {normalise(word) for word in (*words, *avoid)}
    parts = {key: [text for text in texts if not tested & _own_words(text)] for key, texts in FRAMES.items()}
    for key, texts in parts.items():
        if not texts:
            raise UserError(f"every {key} of the test sentences holds a word under test; test fewer words")
    drawn = []
    for place in range(count):
        word = words[place % len(words)]
        chosen = {key: texts[rng.integers(len(texts))] for key, texts in parts.items()}
        before, after = (text.format(**chosen) for text in chosen.pop("frame").split("{word}"))
        drawn.append(Sentence(f"{before}{word}{after}", word, len(normalise(before).split())))
    return drawn


def _own_words(text: str) -> set[str]:
    """The words of a part of a frame, without those that are filled in."""
    return {normalise(word) for word in text.split() if "{" not in word}


def slot_is_hit(sentence: Sentence, transcript: str) -> bool:
    """Whether the word under test was recognised in its own place, by the alignment of the whole sentence.

    >>> slot_is_hit(Sentence("Mary said to again", "to", 2), "Mary said to again")
    True
    >>> slot_is_hit(Sentence("Mary said to again", "to", 2), "to marry said again")
    False
    """
    vocabulary = Vocabulary()
    alignment = align(vocabulary.encode([sentence.text]), vocabulary.encode([transcript]))
    return bool(alignment.hit[sentence.slot])


def grammar_validity(texts: Sequence[str]) -> float:
    """The share of sentences that the link grammar parser accepts whole (the paper asked Grammarly: Table 8).

    It needs the program `link-parser` (Debian's link-grammar).
    """
    program = shutil.which("link-parser")
    if program is None:
        raise UserError("checking grammar needs the program link-parser: apt-get install link-grammar")
    lines = "\n".join(f"{text[:1].upper()}{text[1:]}." for text in texts)  # it reads a sentence on each line
    switches = ["-verbosity=1", "-graphics=0", "-null=1", "-limit=100", "-timeout=5"]
    done = subprocess.run(
        [program, "en", *switches], input=lines + "\n", capture_output=True, text=True, check=True, timeout=600
    )
    left_out = re.findall(r"UNUSED=(\d+)", done.stdout)  # words that the best parse of each sentence has no place for
    if len(left_out) != len(texts):
        raise UserError(f"link-parser answered {len(left_out)} of {len(texts)} sentences; is its English there?")
    return left_out.count("0") / max(len(texts), 1)


def words_to_test(
    transcribed: TranscribedSet, model: str, transformation: str, omega: int = OMEGA
) -> tuple[list[str], list[str]]:
    """The robust and the non-robust words of a transformation over all clips, equally many, found without transcripts.

    Robust words are the most frequent without any drop.
    """
    everyone = {"all": np.arange(len(transcribed.clips.ids))}
    fault = _fault(localise(transcribed, everyone, transcripts=False), model, transformation, transcribed)
    weak, strong = fault.non_robust(omega), fault.robust(2)
    count = min(len(weak), len(strong))
    if count < 3:
        raise UserError(
            f"{model} has {len(weak)} words that {transformation} loses more than {omega} times and {len(strong)} that "
            "it never loses; a test needs three of each, so lower --omega or run more clips"
        )
    return strong[:count], weak[:count]


def _fault(faults: Sequence[Faults], model: str, transformation: str, transcribed: TranscribedSet) -> Faults:
    for fault in faults:
        if (fault.recogniser, fault.transformation) == (model, transformation):
            return fault
    there = sorted({parse(level).scenario for level in transcribed.clips.levels})
    raise UserError(f"{transformation} was not run; there is {', '.join(there)}")


def validate(
    tested: Sequence[Sentence],
    speak: Callable[[str, int], Samples],
    transcribe: Callable[[Samples], str],
    *,
    snr_db: float,
    seed: int = 0,
) -> ValidationOutcome:
    """Speak sentences, add white noise, and count those whose word under test is not recognised in its place."""
    from speech_robust_bench.builders.perturb.environment import gaussian

    rng = np.random.default_rng(seed)
    errors = 0
    for place, sentence in enumerate(tested):
        noisy = gaussian(speak(sentence.text, place), RATE, snr_db, rng)
        errors += not slot_is_hit(sentence, transcribe(np.clip(noisy, -1, 1).astype(np.float32)))
    return ValidationOutcome(tuple(dict.fromkeys(s.word for s in tested)), len(tested), errors)


@dataclass(frozen=True)
class ValidationOptions:
    """How to validate: the voice, the noises, above which drop a word is not robust, and the draw of the sentences."""

    tts: str = "flite"
    snrs_db: tuple[float, ...] = (10, 6, 2)
    omega: int = OMEGA
    seed: int = 0
    count: int = SENTENCES


def validate_run(run: Run, model: str, options: ValidationOptions = ValidationOptions()) -> Json:
    """RQ3 on a run's words, those that its noise levels lose and those that they never lose, spoken to a recogniser."""
    from speech_robust_bench.models.interface import open_model

    transcribed = next(clip_sets([run]))
    language = parse(transcribed.clips.clean).language
    robust, non_robust = words_to_test(transcribed, run.model, "aeq_noise", options.omega)
    both = (*robust, *non_robust)
    tested = [sentences(w, options.count, np.random.default_rng(options.seed), both) for w in (robust, non_robust)]
    speak, recogniser = voices(options.tts, language), open_model(model)

    def transcribe(clip: Samples) -> str:
        return recogniser.transcribe([clip], RATE, language)[0] or ""

    levels = []
    try:
        for snr_db in options.snrs_db:
            kept, lost = (validate(part, speak, transcribe, snr_db=snr_db, seed=options.seed) for part in tested)
            level = {"snr_db": snr_db, "sentences": kept.sentences, "p_value": p_value(kept, lost)}
            levels.append({**level, "robust_missing": kept.errors, "non_robust_missing": lost.errors})
    finally:
        recogniser.close()
    texts = [sentence.text for part in tested for sentence in part]
    return {
        "model": model,
        "tts": options.tts,
        "robust": robust,
        "non_robust": non_robust,
        "levels": levels,
        "grammar": grammar_validity(texts) if shutil.which("link-parser") else None,
    }


def p_value(robust: ValidationOutcome, non_robust: ValidationOutcome) -> float:
    """How easily chance alone would make the non-robust words fail so much more often (Fisher's exact test).

    Fisher's own example, four cups of eight told right three times:

    >>> round(p_value(ValidationOutcome((), 4, 1), ValidationOutcome((), 4, 3)), 3)
    0.243
    """
    from scipy.stats import fisher_exact

    table = [[group.errors, group.sentences - group.errors] for group in (non_robust, robust)]
    return float(fisher_exact(table, alternative="greater").pvalue)


def voices(engine: str, language: str = "en") -> Callable[[str, int], Samples]:
    """A function that speaks a sentence with one of the engine's voices, in turn."""
    from speech_robust_bench.builders.tts import open_voice_engine

    speaker = open_voice_engine(engine)
    names = speaker.voices(language)
    if not names:
        raise UserError(f"the engine {engine} has no voice for '{language}'")
    return lambda text, place: speaker.speak(text, names[place % len(names)], language, place)
