"""Numbers however written: "847", "8, 4, 7", "eight four seven" and "eight hundred forty-seven" become the same words.

A recogniser that writes digits and one that writes words understood the same; with a normaliser that does not know
numbers the difference between them is their spelling. Here number words become digits (package text2num, for the
languages that it knows), and every digit is a word of its own, so that an error in a number costs as many words as
digits are wrong. Then the rules of `srb-paper-1`: punctuation out, lower case. What is covered, in English and Spanish:
digit by digit (with "oh", "double"), cardinals, ordinals, years, times, decimals, per cent, money.

Not told apart, on purpose: "fourteen" and "one four", "twenty twenty" and "2020", "one" the number and the pronoun.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache

from speech_robust_bench.core.errors import UserError

PACKAGE = "text2num"
# The language's word for a decimal mark, its marks, its per cent, and its currencies: sign -> unit, hundredth.
_MONEY = {"$": ("dollar", "cent"), "€": ("euro", "cent"), "£": ("pound", "penny")}
_MONEY_ES = {"$": ("dólar", "centavo"), "€": ("euro", "céntimo"), "£": ("libra", "penique")}
_WORDS = {"en": ("point", "percent", "and", _MONEY), "es": ("coma", "por ciento", "con", _MONEY_ES)}
_SINGULAR = {
    "dollars": "dollar",
    "cents": "cent",
    "euros": "euro",
    "pounds": "pound",
    "pence": "penny",
    "pennies": "penny",
    "dólares": "dólar",
    "dolares": "dólar",
    "centavos": "centavo",
    "céntimos": "céntimo",
    "centimos": "céntimo",
    "libras": "libra",
    "peniques": "penique",
}
_SCALES = {"thousand": 3, "million": 6, "billion": 9, "mil": 3, "millón": 6, "millones": 6}
_REPEATS = {"double": 2, "triple": 3, "doble": 2}
_DIGIT = re.compile(r"\d")
_BETWEEN_DIGITS = re.compile(r"(?<=\d)(?=\d)")
KNOWN = ("en", "es", "fr", "de", "it", "nl", "pt")


def spoken_numbers(text: str, language: str | None, finish: Callable[[str], str]) -> str:
    """The text with every number in separate digits; `finish` removes case and punctuation.

    >>> spoken_numbers("Room 847, please", "en", str.lower)
    'room 8 4 7, please'
    """
    base = re.split("[-_]", (language or "en").lower())[0]
    text = text.lower()
    text = _written_to_spoken(text, base) if _DIGIT.search(text) else text.replace("per cent", "percent")
    if base in KNOWN:
        text = _to_digits()(text, base, 0.0)
    if _DIGIT.search(text):
        text = _digits_apart(text, base)
    text = finish(text)
    words = [_SINGULAR.get(word, word) for word in _BETWEEN_DIGITS.sub(" ", text).split()]
    text = " ".join(words)
    return re.sub(r"\b([ap]) m\b", r"\1m", text) if " m" in text else text


def _digits_apart(text: str, base: str) -> str:
    """Decimals, zeros, repeats, ordinals and times in a text that has digits."""
    text = _decimals(text, base)
    if base == "en":
        text = _english_zeros(text)
    text = re.sub(r"\b(double|triple|doble) (\d)\b", lambda m: " ".join([m[2]] * _REPEATS[m[1]]), text)
    text = re.sub(r"(\d)(?:st|nd|rd|th|º|ª|\.º|\.ª)(?!\w)", r"\1 th", text)
    text = re.sub(r"(?<=\d)(?=[^\W\d_])|(?<=[^\W\d_])(?=\d)", " ", text)  # 5pm, mp3
    return re.sub(r"(?<=\d)[:/.,–-]+(?=\d)", " ", text)  # 7:30, 12/5: what is left between digits keeps them apart


def _written_to_spoken(text: str, language: str) -> str:
    """Thousands together, signs as words: "$1,250.50" -> "1250 dollar and 50 cent", "5%" -> "5 percent"."""
    point, percent, and_, money = _WORDS.get(language, _WORDS["en"])
    thousands = r"[.\u00a0\u202f ]" if language != "en" else r"[,\u00a0\u202f]"
    text = re.sub(rf"(?<=\d){thousands}(?=\d{{3}}(?!\d))", "", text)
    text = re.sub(r"(?<=\d)\s*%", f" {percent}", text).replace("per cent", "percent")
    mark = "," if point == "coma" else "."
    scaled = rf"\b(\d+)(?:\{mark}(\d+))? ({'|'.join(_SCALES)})\b"
    text = re.sub(scaled, lambda match: _scaled(match[1], match[2] or "", _SCALES[match[3]]), text)
    for sign, (unit, hundredth) in money.items():
        amount = rf"(\d+)(?:\{mark}(\d\d))?(?!\d)"
        either = rf"\{sign}\s*{amount}|{amount}\s*\{sign}"

        def spell(match: re.Match, unit: str = unit, hundredth: str = hundredth) -> str:
            whole, part = match[1] or match[3], match[2] or match[4]
            return f"{whole} {unit}" + (f" {and_} {int(part)} {hundredth}" if part and int(part) else "")

        text = re.sub(either, spell, text)
    return text


def _scaled(whole: str, part: str, zeros: int) -> str:
    """ "3.5 million" -> "3500000"; left as it is if the fraction is longer than the scale."""
    return whole + part + "0" * (zeros - len(part)) if len(part) <= zeros else f"{whole} {part}"


def _decimals(text: str, language: str) -> str:
    """ "3.5" and "three point five" -> "3 point 5"; a mark without a digit behind it is punctuation."""
    point = _WORDS.get(language, _WORDS["en"])[0]
    mark = r"," if point == "coma" else r"\."
    return re.sub(rf"(?<=\d){mark}(?=\d)", f" {point} ", text)


def _english_zeros(text: str) -> str:
    """ "oh" beside digits is zero: "eight oh seven"."""
    previous = None
    while previous != text:
        previous = text
        text = re.sub(r"(?<=\d )(?:oh|o)\b(?= \d)|\b(?:oh|o)\b(?= \d)|(?<=\d )oh\b", "0", text)
    return text


@cache
def _to_digits() -> Callable[[str, str, float], str]:
    try:
        from text_to_num import alpha2digit
    except ImportError:
        raise UserError(f"the normaliser 'srb-numbers-1' needs a package: pip install {PACKAGE}") from None
    return alpha2digit
