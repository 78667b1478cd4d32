"""AequeVox's fault localisation (Algorithm 2): the words that a group loses as a transformation gets stronger.

Without transcripts, a word's count is how often it stands in what the recogniser wrote; the drop is the count on clean
speech less the least count over all levels, and a word with a drop above omega is not robust. With transcripts, the
count is how often the word was said and written, so that a word which is invented elsewhere hides nothing, and
the alignment also tells what it turned into. The average drop of a group is over all words of its clean transcripts, as
in the paper's Table 9.

And RQ3: do the words that the localiser calls non-robust really fail more? With speech synthesis offline: sentences
with a robust or a non-robust word each come from a few frames, a synthetic voice speaks them, noise is added, and it is
counted how often the word is missed in its place. No frame holds a word under test, so that nothing but the slot
decides. AequeVox does so at 2 dB, its loudest noise. Where a small recogniser misses nearly every word of a plain
voice, nothing can be told apart. The paper's grammars are made by hand for its words; here any word can stand in the
frame, because it is mentioned, in quotation marks, not used.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from speech_robust_bench.core.audio import RATE, Samples
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.names import parse
from speech_robust_bench.extensions.fairness.result import Validation, ValidationLevel
from speech_robust_bench.scoring.clip_sets import TranscribedSet, clip_sets
from speech_robust_bench.scoring.runs import Run
from speech_robust_bench.scoring.scoring import normalise
from speech_robust_bench.scoring.word_errors import Coded, Vocabulary, align

MOST = 5  # of what a word turned into
OMEGA = 3  # the paper's for two of its three recognisers


@dataclass(frozen=True)
class Faults:
    """Algorithm 2 for one recogniser, transformation and group: each word's count on clean speech and its least count.

    With transcripts, `became` says what a lost word turned into most often, over all levels; None is nothing at all.
    """

    recogniser: str
    form: str
    transformation: str
    group: str
    initial: Mapping[str, int]
    least: Mapping[str, int]
    became: Mapping[str, Sequence[tuple[str | None, int]]] = field(default_factory=dict)

    @cached_property
    def drops(self) -> dict[str, int]:
        """Drop_Count: for each word, how many are lost at the worst level."""
        return {word: max(count - self.least[word], 0) for word, count in self.initial.items()}

    @property
    def average_drop(self) -> float:
        """The mean drop over the words of the clean transcripts."""
        return float(np.mean(list(self.drops.values()))) if self.initial else 0.0

    def non_robust(self, omega: int = OMEGA) -> list[str]:
        """The words with a drop above omega, the largest drop first."""
        drops = self.drops
        return sorted((w for w, drop in drops.items() if drop > omega), key=lambda w: (-drops[w], w))

    def robust(self, minimum: int = 1) -> list[str]:
        """The words without any drop that occur at least so often, the most frequent first."""
        drops = self.drops
        chosen = [w for w, count in self.initial.items() if drops[w] == 0 and count >= minimum]
        return sorted(chosen, key=lambda w: (-self.initial[w], w))


def fault_localiser(
    initial: Mapping[str, int], levels: Iterable[Mapping[str, int]], omega: int = OMEGA
) -> tuple[list[str], dict[str, int]]:
    """Algorithm 2 on word counts: the non-robust words and the drop of every word.

    The paper's example, noise at an SNR of 2 dB:

    >>> fault_localiser({"brother": 16, "nice": 25, "is": 33}, [{"brother": 1, "nice": 23, "is": 32}])
    (['brother'], {'brother': 15, 'nice': 2, 'is': 1})
    """
    levels = list(levels)
    least = {word: min(level.get(word, 0) for level in levels) for word in initial}
    faults = Faults("", "", "", "", dict(initial), least)
    return faults.non_robust(omega), faults.drops


def localise(transcribed: TranscribedSet, groups: Mapping[str, np.ndarray], *, transcripts: bool) -> list[Faults]:
    """Algorithm 2 for each recogniser, transformation and group of a clip set."""
    names = transcribed.vocabulary.words
    scenarios: dict[str, list[str]] = {}
    for config in transcribed.clips.levels:
        scenarios.setdefault(parse(config).scenario, []).append(config)
    number = np.full(len(transcribed.clips.ids), -1)
    for place, clips in enumerate(groups.values()):
        number[clips] = place
    faults = []
    for model, coded in transcribed.transcripts.items():
        count = _Counter(transcribed.reference, number, len(groups), len(names), transcripts)
        initial, _ = count(coded[transcribed.clips.clean])
        for scenario, configs in scenarios.items():
            least: np.ndarray | None = None
            lost = []
            for config in configs:
                counts, confusions = count(coded[config])
                least = counts if least is None else np.minimum(least, counts)
                lost.append(confusions)
            assert least is not None
            became = _became(np.concatenate(lost), names, len(groups))
            for place, group in enumerate(groups):
                there = np.flatnonzero(initial[place])
                faults.append(
                    Faults(
                        model,
                        "transcripts" if transcripts else "alone",
                        scenario,
                        group,
                        {names[w]: int(initial[place, w]) for w in there},
                        {names[w]: int(least[place, w]) for w in there},
                        became[place],
                    )
                )
    return faults


@dataclass(frozen=True)
class _Counter:
    """Counts words by group: those written, or with transcripts those said and written, and then the confusions too."""

    reference: Coded
    group: np.ndarray
    groups: int
    words: int
    transcripts: bool

    def __call__(self, hypothesis: Coded) -> tuple[np.ndarray, np.ndarray]:
        """The counts (groups x words), and a number for each word that was lost, see `_became`."""
        if not self.transcripts:
            return self._by_group(self.group[hypothesis.owner], hypothesis.words), np.zeros(0, dtype=np.int64)
        alignment = align(self.reference, hypothesis)
        group, became = self.group[self.reference.owner], alignment.became
        hit = became == self.reference.words
        hits = self._by_group(np.where(hit, group, -1), self.reference.words)
        lost = ~hit & (group >= 0)
        said = group[lost] * self.words + self.reference.words[lost]
        return hits, said * (self.words + 1) + became[lost] + 1

    def _by_group(self, group: np.ndarray, words: np.ndarray) -> np.ndarray:
        kept = group >= 0
        flat = group[kept] * self.words + words[kept]
        return np.bincount(flat, minlength=self.groups * self.words).reshape(self.groups, self.words)


def _became(lost: np.ndarray, names: Sequence[str], groups: int) -> list[dict[str, list[tuple[str | None, int]]]]:
    """What the words of each group turned into, the most frequent first, `MOST` of each word.

    A lost word is one number made of its group, the word and what it became; a deletion is 0, other words count from 1.
    """
    values, times = np.unique(lost, return_counts=True)
    said = values // (len(names) + 1)
    order = np.lexsort((values, -times, said))
    values, times, said = values[order], times[order], said[order]
    first = np.concatenate([[True], said[1:] != said[:-1]]) if len(said) else np.zeros(0, dtype=bool)
    place = np.arange(len(said)) - np.flatnonzero(first)[np.cumsum(first) - 1] if len(said) else said
    kept = place < MOST
    became_by_group: list[dict[str, list[tuple[str | None, int]]]] = [{} for _ in range(groups)]
    rows = zip(said[kept].tolist(), (values[kept] % (len(names) + 1)).tolist(), times[kept].tolist(), strict=True)
    for pair, word_after, count in rows:
        group, word = divmod(pair, len(names))
        became_by_group[group].setdefault(names[word], []).append(
            (names[word_after - 1] if word_after else None, count)
        )
    return became_by_group


def table9(faults: Iterable[Faults]) -> dict[str, dict[str, dict[str, float]]]:
    """Average drop by group, in the layout of Table 9: by recogniser over all transformations, and the other way."""
    faults = list(faults)

    def mean(of) -> dict[str, dict[str, float]]:
        cells: dict[str, dict[str, list[float]]] = {}
        for fault in faults:
            cells.setdefault(of(fault), {}).setdefault(fault.group, []).append(fault.average_drop)
        return {row: {group: float(np.mean(values)) for group, values in cell.items()} for row, cell in cells.items()}

    return {
        "ASR sensitivity": mean(lambda f: f.recogniser),
        "transformation sensitivity": mean(lambda f: f.transformation),
    }


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


def validate_run(run: Run, model: str, options: ValidationOptions = ValidationOptions()) -> Validation:
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
            levels.append(
                ValidationLevel(
                    snr_db=snr_db,
                    sentences=kept.sentences,
                    p_value=p_value(kept, lost),
                    robust_missing=kept.errors,
                    non_robust_missing=lost.errors,
                )
            )
    finally:
        recogniser.close()
    texts = [sentence.text for part in tested for sentence in part]
    return Validation(
        model=model,
        tts=options.tts,
        robust=robust,
        non_robust=non_robust,
        levels=levels,
        grammar=grammar_validity(texts) if shutil.which("link-parser") else None,
    )


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
