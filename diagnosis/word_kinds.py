"""Which kinds of words are missed: by how common a word is, and numbers, names and rare words.

Aksenova et al., Section 3: an average WER hides the words that matter most. A word is in a frequency band by how much
of the running text is made of more common words: the first band holds the words that make up half of what is said, the
last one the rarest twentieth. So the bands need no list from outside; a list of one's own can be given instead. In a
small set half of the words may be said just once, which no band can take apart: these are a kind of their own.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from speech_robust_bench.core.csv_tables import csv_cells, read_text
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.diagnosis.word_ids import Alignment
from speech_robust_bench.scoring.scoring import normalise

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
