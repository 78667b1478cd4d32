"""The scoring core: normalise, align once, keep the counts of every utterance. Every metric is arithmetic on them.

WER is the paper's Eq. 4: the edit operations of all utterances over the reference words of all utterances, in points
(per cent), never clipped at 100. It equals jiwer's `wer` times 100 on the same normalised text, empty text included: an
utterance with an empty reference adds its insertions to the numerator and nothing to the denominator, and where no
reference has a word the denominator is one. jiwer itself takes 14 times as long on a benchmark's worth of transcripts
(benchmarks/metrics.py), so the edits are counted by rapidfuzz (`scoring.word_alignment`), as jiwer does
too; a test holds that both are equal.

A reference of two talkers (`good morning <sc> is it you`) is scored permutation-invariantly (Yu et al. 2017): each
talker's words are aligned with one of the two texts of the prediction, whichever way has fewer errors, and a prediction
of one text leaves the words of the other talker deleted. Over all clips that is the cpWER of two talkers.
"""

from __future__ import annotations

import re
import string
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import metadata

import numpy as np

from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.rows import TALKER_CHANGE, one_talker, talkers
from speech_robust_bench.scoring.normalisers import (
    OPEN_ASR_PACKAGES,
    count_errors,
    has_compound,
    open_asr,
    open_asr_2026_08,
    spoken_numbers,
)
from speech_robust_bench.scoring.word_alignment import Operation, count_edits
from speech_robust_bench.scoring.word_alignment import operations as operations_of

UNITS = ("word", "char", "char-nospace")

# Languages whose writing does not put spaces between words (ISO 639-1 or -3), so that a "word" error rate would count
# whole sentences: Chinese and its spoken varieties, Japanese, Thai, Lao, Burmese, Khmer, Tibetan, Dzongkha, Shan.
_UNSPACED = {"zh", "cmn", "yue", "wuu", "nan", "hak", "lzh", "ja", "th", "lo", "my", "km", "bo", "dz", "shn"}


def default_unit(language: str | None) -> str:
    """What an error is counted in for a language: words, or characters where words are not separated by spaces.

    >>> default_unit("en"), default_unit("zh"), default_unit("th-TH"), default_unit(None)
    ('word', 'char-nospace', 'char-nospace', 'word')
    """
    base = re.split("[-_]", language.lower())[0] if language else ""
    return "char-nospace" if base in _UNSPACED else "word"


# --- normalisers -----------------------------------------------------------------------------------------------------


class _NoPunctuation(dict):
    """A table for `str.translate` that drops every character of Unicode category P, filled in as characters come."""

    def __missing__(self, code: int) -> int | None:
        self[code] = None if unicodedata.category(chr(code))[0] == "P" else code
        return self[code]


_NO_PUNCTUATION = _NoPunctuation()


def _srb_paper_1(text: str) -> str:
    """Paper, Appendix B: punctuation removed, lower case. NFC, so that the two ways of writing an accent are equal."""
    text = text.translate(_NO_PUNCTUATION).lower()
    return text if text.isascii() else unicodedata.normalize("NFC", text)


_NO_ASCII_PUNCTUATION = str.maketrans("", "", string.punctuation)


def _srb_paper_2(text: str) -> str:
    """As the authors' code has it: ASCII symbols go ($ + = too), other punctuation stays; by upper case, so ß is ss."""
    return text.upper().lower().translate(_NO_ASCII_PUNCTUATION)


def _whisper_basic(text: str) -> str:
    """Whisper's rules for languages other than English: bracketed text goes; marks, symbols, punctuation are spaces."""
    text = re.sub(r"[<\[][^>\]]*[>\]]", "", text.lower())
    text = unicodedata.normalize("NFKC", re.sub(r"\([^)]+?\)", "", text))
    return "".join(" " if unicodedata.category(c)[0] in "MSP" else c for c in text).lower()


@lru_cache(maxsize=1)
def _whisper_english() -> Callable[[str], str]:
    try:
        from whisper_normalizer.english import EnglishTextNormalizer
    except ImportError:
        raise UserError("the normaliser 'whisper-en' needs a package: pip install whisper-normalizer") from None
    return EnglishTextNormalizer()


@dataclass(frozen=True)
class Normaliser:
    """A function of text and language, the packages it comes from, and whether compounds may be written either way."""

    function: Callable[[str, str | None], str]
    packages: tuple[str, ...] = ()
    free_compounds: bool = False


NORMALISERS = {
    "srb-paper-1": Normaliser(lambda text, language: _srb_paper_1(text)),
    "srb-paper-2": Normaliser(lambda text, language: _srb_paper_2(text)),
    "srb-numbers-1": Normaliser(lambda text, language: spoken_numbers(text, language, _srb_paper_1), ("text2num",)),
    "open-asr-2026-08": Normaliser(open_asr_2026_08, OPEN_ASR_PACKAGES, free_compounds=True),
    "open-asr-1": Normaliser(open_asr, OPEN_ASR_PACKAGES, free_compounds=True),
    "whisper-en": Normaliser(lambda text, language: _whisper_english()(text), ("whisper_normalizer",)),
    "whisper-basic": Normaliser(lambda text, language: _whisper_basic(text)),
    "none": Normaliser(lambda text, language: text),
}


def normalise(text: str, normaliser: str = "srb-paper-1", language: str | None = None) -> str:
    """Normalise a transcript; words end up separated by single spaces.

    >>> normalise("Well-known:  “Don’t STOP!”")
    'wellknown dont stop'
    """
    _known(normaliser)
    return " ".join(_normalised(one_talker(text), normaliser, language).split())


def versions(normaliser: str, unit: str | None = None, language: str | None = None) -> dict[str, str]:
    """What a result has to say about how it was scored: normaliser and its version, unit.

    >>> versions("srb-paper-1")
    {'normaliser': 'srb-paper-1', 'unit': 'word'}
    """
    packages = _known(normaliser).packages
    try:
        made_by = ", ".join(f"{package} {metadata.version(package)}" for package in packages)
    except metadata.PackageNotFoundError as missing:
        raise UserError(f"the normaliser '{normaliser}' needs a package: pip install {missing.name}") from None
    label = f"{normaliser} ({made_by})" if made_by else normaliser
    return {"normaliser": label, "unit": _unit(unit, language)}


def _unit(unit: str | None, language: str | None) -> str:
    unit = unit or default_unit(language)
    if unit not in UNITS:
        raise UserError(f"there is no unit '{unit}'; choose one of {', '.join(UNITS)}")
    return unit


def _known(normaliser: str) -> Normaliser:
    if normaliser not in NORMALISERS:
        raise UserError(f"there is no normaliser '{normaliser}'; choose one of {', '.join(NORMALISERS)}")
    return NORMALISERS[normaliser]


def _split(text: str, unit: str) -> Sequence[str]:
    """Words, or a string of characters. rapidfuzz compares words by their 64-bit hashes."""
    words = text.split()
    if unit == "word":
        return words
    return (" " if unit == "char" else "").join(words)


@lru_cache(maxsize=1 << 16)  # a recogniser writes the same for most configs of a clip
def _normalised(text: str, normaliser: str, language: str | None) -> str:
    return NORMALISERS[normaliser].function(text, language)


@lru_cache(maxsize=1 << 14)  # the same references come back with every config of a corpus
def _reference(text: str, normaliser: str, unit: str, language: str | None) -> tuple[str, Sequence[str]]:
    text = _normalised(text, normaliser, language)
    return text, _split(text, unit)


# --- counts ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Counts:
    """Hits, substitutions, deletions and insertions of every utterance, as integer arrays of one length.

    Of the alignments with the fewest errors they describe the one with the most hits, which makes them unique.
    """

    hits: np.ndarray
    substitutions: np.ndarray
    deletions: np.ndarray
    insertions: np.ndarray
    operations: list[list[Operation]] | None = field(
        default=None, kw_only=True
    )  # of every utterance, where they were asked for

    @property
    def errors(self) -> np.ndarray:
        """Edit distance of every utterance."""
        return self.substitutions + self.deletions + self.insertions

    @property
    def lengths(self) -> np.ndarray:
        """Reference length of every utterance."""
        return self.hits + self.substitutions + self.deletions

    @property
    def rate(self) -> float:
        """Error rate of all utterances together, in points."""
        return float(error_rate(self.errors.sum(), self.lengths.sum()))

    @property
    def rates(self) -> np.ndarray:
        """Error rate of every utterance on its own, in points."""
        return error_rate(self.errors, self.lengths)

    def as_arrays(self) -> tuple[np.ndarray, ...]:
        """Hits, substitutions, deletions and insertions."""
        return self.hits, self.substitutions, self.deletions, self.insertions

    def take(self, index: np.ndarray) -> Counts:
        """The counts of some utterances, by position or by mask."""
        return Counts(*(array[index] for array in self.as_arrays()))

    def totals(self) -> dict[str, int]:
        """Hits, substitutions, deletions and insertions of all utterances together."""
        names = ("hits", "substitutions", "deletions", "insertions")
        return {name: int(array.sum()) for name, array in zip(names, self.as_arrays(), strict=True)}

    def __len__(self) -> int:
        return len(self.hits)


def error_rate(errors, lengths):
    """100 x errors / lengths, elementwise; an empty reference counts as length one (jiwer's convention).

    >>> float(error_rate(1, 4)), float(error_rate(2, 0)), float(error_rate(0, 0))
    (25.0, 200.0, 0.0)
    """
    return 100.0 * np.asarray(errors, dtype=float) / np.maximum(lengths, 1)


def align(
    references: Sequence[str],
    predictions: Sequence[str],
    *,
    normaliser: str = "srb-paper-1",
    unit: str | None = None,
    language: str | None = None,
    operations: bool = False,
    errors_only: bool = False,
) -> Counts:
    """Normalise and align each prediction with its reference, once; the unit is the language's unless it is given.

    With `errors_only` just the sum of an utterance's errors is meant, which is faster where compounds are free.

    With `operations` the counts also have the steps of every alignment: which word is hit, substituted by which,
    deleted or inserted, by their places in the normalised texts (those of two talkers one after the other).

    >>> align(["The cat sat."], ["the cat sat on it"]).totals()
    {'hits': 3, 'substitutions': 0, 'deletions': 0, 'insertions': 2}
    >>> align(["good morning <sc> is it you"], ["it is <sc> good morning"]).totals()
    {'hits': 3, 'substitutions': 1, 'deletions': 1, 'insertions': 0}
    >>> [tuple(step) for step in align(["The cat sat."], ["a cat sat on"], operations=True).operations[0]]
    [('substitution', 0, 0), ('hit', 1, 1), ('hit', 2, 2), ('insertion', None, 3)]
    """
    check_texts(references=references, predictions=predictions)
    _known(normaliser)
    unit = _unit(unit, language)
    if any(TALKER_CHANGE in text for texts in (references, predictions) for text in texts):
        return _align_talkers(references, predictions, normaliser, unit, language, operations)
    return _align(references, predictions, normaliser, unit, language, operations, errors_only)


def _align_talkers(
    references: Sequence[str],
    predictions: Sequence[str],
    normaliser: str,
    unit: str,
    language: str | None,
    operations: bool,
) -> Counts:
    """The counts where some texts are of two talkers; against a reference of one talker a prediction is one text."""
    two = np.array([TALKER_CHANGE in text for text in references])
    said = [talkers(text) for text in references]
    pairs = zip(predictions, two, strict=True)
    written = [talkers(text) if of_two else (one_talker(text), "") for text, of_two in pairs]

    def both(first: int, second: int) -> Counts:
        """Both talkers' counts, with these texts of the prediction."""
        columns = (
            ([t[talker] for t in said], [t[text] for t in written]) for talker, text in enumerate((first, second))
        )
        parts = [_align(*texts, normaliser, unit, language, operations) for texts in columns]
        arrays = zip(*(c.as_arrays() for c in parts), strict=True)
        steps = _one_after_the_other(parts[0], parts[1], crossed=first > second)
        return Counts(*(a + b for a, b in arrays), operations=steps)

    straight, crossed = both(0, 1), both(1, 0)
    better = two & (crossed.errors < straight.errors)
    arrays = zip(straight.as_arrays(), crossed.as_arrays(), strict=True)
    steps = zip(better, straight.operations or (), crossed.operations or (), strict=False)
    chosen = [b if other else a for other, a, b in steps] if operations else None
    return Counts(*(np.where(better, b, a) for a, b in arrays), operations=chosen)


def _one_after_the_other(first: Counts, second: Counts, crossed: bool) -> list[list[Operation]] | None:
    """The operations of both talkers, whose words stand one after the other; crossed: with each other's text."""
    if first.operations is None or second.operations is None:
        return None
    written = [part.hits + part.substitutions + part.insertions for part in (first, second)]
    none = np.zeros_like(first.hits)
    return [
        [step.shifted(0, behind) for step in ours] + [step.shifted(length, ahead) for step in theirs]
        for ours, theirs, length, behind, ahead in zip(
            first.operations,
            second.operations,
            first.lengths.tolist(),
            (written[1] if crossed else none).tolist(),
            (none if crossed else written[0]).tolist(),
            strict=True,
        )
    ]


CLIPS_AT_A_TIME = 10_000


def _align(
    references: Sequence[str],
    predictions: Sequence[str],
    normaliser: str,
    unit: str,
    language: str | None,
    operations: bool,
    errors_only: bool = False,
) -> Counts:
    """The alignment of one reference with one hypothesis, CLIPS_AT_A_TIME at a time, so that memory stays small."""
    if len(references) > CLIPS_AT_A_TIME:
        how = (normaliser, unit, language, operations)
        cuts = [slice(start, start + CLIPS_AT_A_TIME) for start in range(0, len(references), CLIPS_AT_A_TIME)]
        parts = [_align(references[cut], predictions[cut], *how) for cut in cuts]
        steps = [each for part in parts for each in part.operations or ()] if operations else None
        return Counts(*map(np.concatenate, zip(*(part.as_arrays() for part in parts), strict=True)), operations=steps)
    rules = NORMALISERS[normaliser]
    known = [_reference(text, normaliser, unit, language) for text in references]
    length = np.fromiter((len(units) for _, units in known), dtype=np.int64, count=len(known))
    raw = normaliser == "none"
    hypotheses = predictions if raw else [_normalised(text, normaliser, language) for text in predictions]
    wrong = [i for i, text in enumerate(hypotheses) if text != known[i][0]]
    ref = [known[i][1] for i in wrong]
    hyp = [_split(hypotheses[i], unit) for i in wrong]
    counts = np.zeros((3, len(known)), dtype=np.int64)
    counts[:, wrong] = count_edits(ref, hyp)
    if rules.free_compounds and unit == "word":
        if operations and wrong:
            raise UserError(f"the normaliser '{normaliser}' joins compounds while it counts; it has no operations")
        for place, *pair in zip(wrong, ref, hyp, strict=True):
            if not errors_only or has_compound(*pair):
                counts[:, place] = count_errors(*pair)
    steps = operations_of([u for _, u in known], [_split(t, unit) for t in hypotheses]) if operations else None
    return Counts(length - counts[0] - counts[1], *counts, operations=steps)


def check_texts(**columns: Sequence[str]) -> None:
    """One clear error unless every column is a list of strings and all have the same length."""
    for name, texts in columns.items():
        if isinstance(texts, str) or not hasattr(texts, "__len__"):
            raise UserError(f"{name} must be a list of strings, not one {type(texts).__name__}")
        if set(map(type, texts)) - {str}:
            wrong = next((i for i, text in enumerate(texts) if not isinstance(text, str)), None)
            if wrong is None:
                continue
            bad = texts[wrong]
            hint = "; pass '' for a clip without a transcript" if bad is None else ""
            raise UserError(f"{name}[{wrong}] is {bad!r} ({type(bad).__name__}), not a string{hint}")
    (first, texts), *others = columns.items()
    for name, other in others:
        if len(other) != len(texts):
            raise UserError(f"{len(texts)} {first} but {len(other)} {name}; they must pair one to one")
