"""Written form: punctuation, capitals, numbers, dates, times, money, telephone numbers, addresses, and given terms.

Everything is computed from raw transcripts, before any normaliser. Words are aligned as for WER, and marks and capitals
are compared between aligned words. Numbers, dates and the like ("semiotic classes" in Taylor, "Text-to-Speech
Synthesis", 2009; Sproat and Jaitly, "RNN approaches to text normalization", 2016) are found by their form, with English
names of months and streets and English number words, and compared by class, by value, and as written.

Names and terms: a recogniser with a list of expected terms is tested on clips in which one of them is said (biased) and
on clips in which none is (anti-biased), where the list can only do harm. B-WER and U-WER, the error rates of the words
in the terms and of all others, follow Le et al., "Contextualized streaming end-to-end speech recognition with trie-
based deep biasing and shallow fusion", Interspeech 2021.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from speech_robust_bench.core.errors import UserError
from speech_robust_bench.scoring.scoring import error_rate, normalise
from speech_robust_bench.scoring.word_alignment import HIT, Operation, align_words, operations

MARKS = ".,?!:;"
Scores = dict[str, float | None]  # by name, in points; counts too


@dataclass(frozen=True)
class WrittenWord:
    """A word as it is written, without the punctuation around it, and the marks that follow it."""

    text: str
    marks: str = ""


def written_words(text: str) -> list[WrittenWord]:
    """The words of a transcript with the marks after them; a mark between spaces belongs to the word before.

    >>> [(w.text, w.marks) for w in written_words('“Stop!” he said, at 5:30 .')]
    [('Stop', '!'), ('he', ''), ('said', ','), ('at', ''), ('5:30', '.')]
    """
    words: list[WrittenWord] = []
    for token in text.split():
        start = next((i for i, c in enumerate(token) if _belongs(c)), len(token))
        end = next((i for i in range(len(token), start, -1) if _belongs(token[i - 1])), start)
        marks = "".join(c for c in token[end if start < end else 0 :] if c in MARKS)
        if start < end:
            words.append(WrittenWord(token[start:end], marks))
        elif words:
            words[-1] = WrittenWord(words[-1].text, words[-1].marks + marks)
    return words


def _belongs(character: str) -> bool:
    """Whether a character is part of a word: letters, digits, signs of money and per cent."""
    return character in "%+" or unicodedata.category(character)[0] in "LNM" or unicodedata.category(character) == "Sc"


# --- punctuation and capitals ----------------------------------------------------------------------------------------


@dataclass
class Tally:
    """Counts of something in both transcripts, in the prediction alone, and in the reference alone."""

    both: int = 0
    invented: int = 0
    missed: int = 0

    def add(self, expected: int, written: int) -> None:
        """Count something that the reference has `expected` times and the prediction `written` times."""
        both = min(expected, written)
        self.both += both
        self.invented += written - both
        self.missed += expected - both

    def scores(self) -> Scores:
        """Precision, recall and F1 in points; None where a denominator is zero.

        >>> Tally(both=3, invented=1, missed=3).scores()
        {'precision': 75.0, 'recall': 50.0, 'f1': 60.0, 'expected': 6}
        """
        predicted, expected = self.both + self.invented, self.both + self.missed
        return {
            "precision": 100 * self.both / predicted if predicted else None,
            "recall": 100 * self.both / expected if expected else None,
            "f1": 200 * self.both / (predicted + expected) if predicted + expected else None,
            "expected": expected,
        }


def word_pairs(
    reference: Sequence[WrittenWord], prediction: Sequence[WrittenWord], normaliser: str
) -> list[tuple[WrittenWord | None, WrittenWord | None]]:
    """The words of two transcripts side by side, None where one of them has none."""
    texts = [[normalise(word.text, normaliser) for word in words] for words in (reference, prediction)]
    return [
        (None if place is None else reference[place], None if position is None else prediction[position])
        for _, place, position in align_words(*texts)
    ]


def tally_marks(pairs: Iterable[tuple[WrittenWord | None, WrittenWord | None]], tallies: dict[str, Tally]) -> None:
    """Add for each mark whether it follows the same word in both."""
    for reference, prediction in pairs:
        expected, written = (Counter(word.marks if word else "") for word in (reference, prediction))
        for mark, tally in tallies.items():
            tally.add(expected[mark], written[mark])


def case_errors(pairs: Iterable[tuple[WrittenWord | None, WrittenWord | None]], normaliser: str) -> tuple[int, int]:
    """The recognised words with a wrong case, and all recognised words of a script with capitals."""
    wrong = total = 0
    for reference, prediction in pairs:
        if not (reference and prediction) or reference.text.lower() == reference.text.upper():
            continue
        if normalise(reference.text, normaliser) == normalise(prediction.text, normaliser):
            letters = ("".join(c for c in word.text if c.isalpha()) for word in (reference, prediction))
            wrong += len(set(letters)) > 1
            total += 1
    return wrong, total


# --- semiotic classes ------------------------------------------------------------------------------------------------

_MONTH_NAMES = (
    "january jan|february feb|march mar|april apr|may|june jun|july jul|august aug|september sept sep|october oct|"
    "november nov|december dec"
)
_MONTHS = {name: number for number, names in enumerate(_MONTH_NAMES.split("|"), 1) for name in names.split()}
_MONTH = "|".join(sorted(_MONTHS, key=len, reverse=True))
_STREETS = dict(
    pair.split()
    for pair in ["street st", "avenue ave", "road rd", "lane ln", "drive dr", "boulevard blvd", "court ct", "square sq"]
)
_STREET = "|".join([*_STREETS, *_STREETS.values()])
_CURRENCIES = {
    **dict.fromkeys(("$", "dollar", "dollars"), "USD"),
    **dict.fromkeys(("€", "euro", "euros"), "EUR"),
    **dict.fromkeys(("£", "pound", "pounds"), "GBP"),
    **dict.fromkeys(("¥", "yen"), "JPY"),
}
_SCALES = {"thousand": 10**3, "million": 10**6, "billion": 10**9}
_BELOW_20 = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
)
_SMALL = {word: number for number, word in enumerate(_BELOW_20.split())}
_TENS = {
    word: 10 * number
    for number, word in enumerate(["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"], 2)
}
_NUMBER_WORD = "|".join([*_SMALL, *_TENS, "hundred", *_SCALES])
_SPOKEN = rf"\b(?:{_NUMBER_WORD})(?:(?:[\s-]+and)?[\s-]+(?:{_NUMBER_WORD}))*\b"
_FIGURES = r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?"
_AMOUNT = rf"(?:{_FIGURES})(?:\s+(?:thousand|million|billion)\b)?"


@dataclass(frozen=True)
class Entity:
    """Something of a semiotic class in a transcript: its class, its value, and how it is written."""

    kind: str
    value: Any
    text: str


def number_of_words(text: str) -> int | None:
    """The value of a cardinal number in English words; None for single digits in a row.

    >>> number_of_words("two hundred and five"), number_of_words("ninety-nine thousand"), number_of_words("one two")
    (205, 99000, None)
    """
    total = part = 0
    last = 10**12  # the unit of the last word: twenty takes a two, two takes nothing
    for word in re.split(r"[\s-]+", text.lower()):
        if word == "and":
            continue
        if word in _SCALES:
            total, part, last = total + (part or 1) * _SCALES[word], 0, _SCALES[word]
        elif word == "hundred":
            part, last = (part or 1) * 100, 100
        else:
            value = _SMALL.get(word, _TENS.get(word, 0))
            if last <= 10 or (last < 100 and word not in _SMALL) or (last < 100 and not 0 < value < 10):
                return None
            part, last = part + value, 10 if word in _SMALL else 20
    return total + part


def _amount(text: str) -> Decimal:
    figures, _, scale = text.replace(",", "").partition(" ")
    return Decimal(figures) * _SCALES.get(scale.strip().lower(), 1)


def _time(match: re.Match[str]) -> int | None:
    hour, minute, half = int(match["hour"]), int(match["minute"] or 0), (match["half"] or "").lower()[:1]
    if hour > 24 or minute > 59 or (half and not 1 <= hour <= 12):
        return None
    return (hour % 12 + 12 * (half == "p") if half else hour % 24) * 60 + minute


def _date(match: re.Match[str]) -> tuple[int | None, int, int] | None:
    parts = {key: value for key, value in match.groupdict().items() if value}
    month = _MONTHS[parts["name"].lower()] if "name" in parts else int(parts["month"])
    day, year = int(parts["day"]), int(parts["year"]) if "year" in parts else None
    return (year, month, day) if 1 <= month <= 12 and 1 <= day <= 31 else None


def _money(match: re.Match[str]) -> tuple[str, Decimal] | None:
    unit = match["sign"] or match["unit"]
    amount = match["amount"] or match["amount2"]
    if amount is None:
        spoken = number_of_words(match["spoken"])
        return None if spoken is None else (_CURRENCIES[unit.lower()], Decimal(spoken))
    return _CURRENCIES[unit.lower()], _amount(amount)


def _phone(match: re.Match[str]) -> str | None:
    figures = re.sub(r"\D", "", match[0])
    return figures if 7 <= len(figures) <= 15 else None


def _address(match: re.Match[str]) -> tuple[int, str]:
    kind = match["kind"].lower().rstrip(".")
    return int(match["house"]), " ".join([*match["street"].lower().split(), _STREETS.get(kind, kind)])


def _number(match: re.Match[str]) -> Decimal | None:
    if match["spoken"]:
        spoken = number_of_words(match["spoken"])
        return None if spoken is None else Decimal(spoken)
    return _amount(match["figures"])


# The more specific first: a match of one is hidden from the next.
_CLASSES: tuple[tuple[str, re.Pattern[str], Callable[[re.Match[str]], Any]], ...] = tuple(
    (kind, re.compile(pattern, re.IGNORECASE), value)
    for kind, pattern, value in (
        ("time", r"\b(?P<hour>\d{1,2}):(?P<minute>\d{2})(?:\s?(?P<half>[ap])\.?m\b\.?)?", _time),
        ("time", r"\b(?P<hour>\d{1,2})(?P<minute>)\s?(?P<half>[ap])\.?m\b\.?", _time),
        ("date", r"\b(?P<year>\d{4})-(?P<month>\d{1,2})-(?P<day>\d{1,2})\b", _date),
        ("date", r"\b(?P<month>\d{1,2})/(?P<day>\d{1,2})(?:/(?P<year>\d{4}))?\b", _date),
        ("date", rf"\b(?P<name>{_MONTH})\.?\s+(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\b(?:,?\s+(?P<year>\d{{4}}))?", _date),
        (
            "date",
            rf"\b(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?(?P<name>{_MONTH})\b(?:,?\s+(?P<year>\d{{4}}))?",
            _date,
        ),
        (
            "money",
            rf"(?P<sign>[$€£¥])\s?(?P<amount>{_AMOUNT})|(?:(?P<amount2>{_AMOUNT})|(?P<spoken>{_SPOKEN}))"
            r"\s+(?P<unit>dollars?|euros?|pounds?|yen)\b",
            _money,
        ),
        (
            "address",
            rf"\b(?P<house>\d{{1,5}})\s+(?P<street>(?:[^\W\d_]+\s+){{1,3}}?)(?P<kind>{_STREET})\b\.?",
            _address,
        ),
        ("phone", r"(?<![\w.])(?:\+?\d{1,3}[\s.-])?(?:\(\d{2,4}\)\s?|\d{2,4}[\s.-])?\d{3,4}[\s.-]\d{3,4}\b", _phone),
        ("number", rf"(?<![\w.])(?P<figures>{_FIGURES})(?:st|nd|rd|th|\s?%)?(?![\w])|(?P<spoken>{_SPOKEN})", _number),
    )
)
CLASSES = tuple(dict.fromkeys(kind for kind, _, _ in _CLASSES))


def entities(text: str) -> list[Entity]:
    """The entities of semiotic classes in a transcript, in order.

    >>> [(e.kind, e.text) for e in entities("Call 555-0123 before 5 p.m. on May 3, it costs $20 for 2.")]
    [('phone', '555-0123'), ('time', '5 p.m.'), ('date', 'May 3'), ('money', '$20'), ('number', '2')]
    >>> entities("twenty dollars")[0].value == entities("$20")[0].value
    True
    """
    by_place: dict[int, Entity] = {}
    left = text
    for kind, pattern, value_of in _CLASSES:
        for match in pattern.finditer(left):
            value = value_of(match)
            if value is not None:
                by_place[match.start()] = Entity(kind, value, " ".join(match[0].split()))
                left = left[: match.start()] + "\0" * len(match[0]) + left[match.end() :]
    return [by_place[place] for place in sorted(by_place)]


@dataclass
class ClassTally:
    """The entities of one class in the references, and those with its class, value and form in the predictions."""

    expected: int = 0
    right_class: int = 0
    right_value: int = 0
    as_written: int = 0
    invented: int = 0

    def scores(self) -> Scores:
        """The shares of the expected entities, in points; None where there are none."""
        shares = {"class": self.right_class, "value": self.right_value, "written": self.as_written}
        of = {name: 100 * count / self.expected if self.expected else None for name, count in shares.items()}
        return {"expected": self.expected, **of, "invented": self.invented}


def tally_classes(reference: str, prediction: str, tallies: dict[str, ClassTally]) -> None:
    """Add one pair of transcripts, whose entities are aligned in order at the least cost."""
    expected, written = entities(reference), entities(prediction)
    for entity in expected:
        tallies[entity.kind].expected += 1
    for reference_entity, written_entity in _side_by_side(expected, written):
        if reference_entity is None and written_entity is not None:
            tallies[written_entity.kind].invented += 1
        elif reference_entity is not None and written_entity is not None:
            tally = tallies[reference_entity.kind]
            tally.right_class += 1
            tally.right_value += reference_entity.value == written_entity.value
            tally.as_written += reference_entity.text == written_entity.text


def _side_by_side(expected: Sequence[Entity], written: Sequence[Entity]) -> list[tuple[Entity | None, Entity | None]]:
    """The alignment that pairs entities of one class, of the same value and form where possible."""
    table: list[list[tuple[int, tuple]]] = [[(0, ())] * (len(written) + 1) for _ in range(len(expected) + 1)]
    for i in range(len(expected) + 1):
        for j in range(len(written) + 1):
            options = []
            if i:
                cost, pairs = table[i - 1][j]
                options.append((cost + 4, (*pairs, (expected[i - 1], None))))
            if j:
                cost, pairs = table[i][j - 1]
                options.append((cost + 4, (*pairs, (None, written[j - 1]))))
            if i and j and expected[i - 1].kind == written[j - 1].kind:
                reference_entity, written_entity = expected[i - 1], written[j - 1]
                cost, pairs = table[i - 1][j - 1]
                step = 2 * (reference_entity.value != written_entity.value) + (
                    reference_entity.text != written_entity.text
                )
                options.append((cost + step, (*pairs, (reference_entity, written_entity))))
            if options:
                table[i][j] = min(options, key=lambda option: option[0])
    return list(table[-1][-1][1])


# --- all of it -------------------------------------------------------------------------------------------------------


def formatting_scores(references: Sequence[str], predictions: Sequence[str], normaliser: str) -> dict[str, Any]:
    """Punctuation, capitals and semiotic classes of all transcripts together."""
    marks = {mark: Tally() for mark in MARKS}
    classes = {kind: ClassTally() for kind in CLASSES}
    wrong_case = cased = 0
    for reference, prediction in zip(references, predictions, strict=True):
        pairs = word_pairs(written_words(reference), written_words(prediction), normaliser)
        tally_marks(pairs, marks)
        wrong, total = case_errors(pairs, normaliser)
        wrong_case, cased = wrong_case + wrong, cased + total
        tally_classes(reference, prediction, classes)
    counts = ((tally.both, tally.invented, tally.missed) for tally in marks.values())
    together = Tally(*map(sum, zip(*counts, strict=True)))
    return {
        "punctuation": {**together.scores(), "marks": {mark: tally.scores() for mark, tally in marks.items()}},
        "case_error_rate": 100 * wrong_case / cased if cased else None,
        "cased_words": cased,
        "classes": {kind: tally.scores() for kind, tally in classes.items()},
    }


Words = tuple[str, ...]


def terms_of_clips(terms: Sequence[str] | Sequence[Sequence[str]], clips: int) -> list[Sequence[str]]:
    """The terms of each clip: one list for all of them, or a list for each."""
    if isinstance(terms, str):
        raise UserError("terms must be a list of strings, or a list of such lists, one for each utterance")
    if all(isinstance(term, str) for term in terms):
        return [list(map(str, terms))] * clips
    if len(terms) != clips or any(isinstance(those, str) for those in terms):
        raise UserError(f"{clips} utterances but {len(terms)} lists of terms; give one list for all, or one for each")
    return list(terms)


def count_term(words: Sequence[str], term: Words) -> int:
    """The number of times a term is in a transcript, word by word.

    >>> count_term("new york is not new yorkshire".split(), ("new", "york"))
    1
    """
    return sum(tuple(words[i : i + len(term)]) == term for i in range(len(words) - len(term) + 1)) if term else 0


def term_scores(
    references: Sequence[str],
    predictions: Sequence[str],
    terms: Sequence[str] | Sequence[Sequence[str]],
    normaliser: str,
    capitals: bool = False,
) -> dict[str, Any]:
    """Precision and recall of terms, B-WER and U-WER, and false alarms where no term is said."""

    def split(text: str) -> list[str]:
        if capitals:
            return [word.text for word in written_words(text)]
        return normalise(text, normaliser).split()

    total, by_term = Tally(), dict[str, Tally]()
    biased = anti_biased = alarms = 0
    inside, outside = [0, 0], [0, 0]  # errors and words, of the words of terms and of the others
    texts = [split(text) for text in references], [split(text) for text in predictions]
    clips = zip(*texts, operations(*texts), terms_of_clips(terms, len(references)), strict=True)
    for said, written, steps, those in clips:
        counts = {term: (count_term(said, w), count_term(written, w)) for term in those if (w := tuple(split(term)))}
        for term, (expected, there) in counts.items():
            for tally in (total, by_term.setdefault(term, Tally())):
                tally.add(expected, there)
        if any(expected for expected, _ in counts.values()):
            biased += 1
        else:
            anti_biased += 1
            alarms += any(there for _, there in counts.values())
        _add_errors(said, written, steps, {word for term in those for word in split(term)}, inside, outside)
    return {
        **total.scores(),
        "terms": {term: tally.scores() for term, tally in by_term.items()},
        "b_wer": float(error_rate(*inside)) if inside[1] else None,
        "u_wer": float(error_rate(*outside)) if outside[1] else None,
        "biased_utterances": biased,
        "anti_biased_utterances": anti_biased,
        "false_alarm_rate": 100 * alarms / anti_biased if anti_biased else None,
    }


def _add_errors(
    said: Sequence[str],
    written: Sequence[str],
    steps: Sequence[Operation],
    of_terms: set[str],
    inside: list[int],
    outside: list[int],
) -> None:
    """Add the errors and words of one clip; an inserted word counts by itself, as in Le et al."""
    for word in said:
        (inside if word in of_terms else outside)[1] += 1
    for _, place, position in (step for step in steps if step.kind != HIT):
        word = written[position] if place is None and position is not None else said[place or 0]
        (inside if word in of_terms else outside)[0] += 1
