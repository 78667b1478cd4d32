"""Which texts, names and codes may stand in a row."""

import pytest

from speech_robust_bench.core.names import is_language_code
from speech_robust_bench.core.rows import LONGEST, column_problem, forbidden_character


@pytest.mark.parametrize("text", ["", "plain", "naïve\t“quoted”\nline\r\n", "שלום\u200f", "\u200e", "日本語", "👍"])
def test_letters_of_every_script_and_direction_marks_are_text(text):
    assert forbidden_character(text) is None


@pytest.mark.parametrize(
    ("text", "character"),
    [
        ("a\x00", "U+0000"),
        ("\x08", "U+0008"),
        ("\x0b", "U+000B"),
        ("\x0c", "U+000C"),
        ("\x0e", "U+000E"),
        ("red \x1b[31m", "U+001B"),
        ("\x1f", "U+001F"),
        ("\x7f", "U+007F"),
        ("\x9f", "U+009F"),
        ("\u202a", "U+202A"),
        ("\u202e", "U+202E"),
        ("\u2066", "U+2066"),
        ("\u2069", "U+2069"),
        ("\ud800", "U+D800"),
        ("\udfff", "U+DFFF"),
        ("\x07 and \x1b", "U+0007"),
    ],
)
def test_the_first_character_that_steers_a_terminal_is_named(text, character):
    assert forbidden_character(text) == character


def test_the_bounds_of_fields_stay():
    """A smaller one would refuse data of today, a larger one lets more in than verification was tried with."""
    bounds = "id 300, text 200000, language 35, speaker 200, gender 100, age 100, accent 300, licence 300"
    assert bounds == ", ".join(f"{field} {characters}" for field, characters in LONGEST.items())


def test_values_of_a_corpus_are_bounded():
    assert column_problem((("region", "x" * 2000), ("device", "phone"))) is None
    assert column_problem((("region", "ok"), ("device", "x" * 2001))) == "its device is longer than 2000 characters"
    assert column_problem((("region", "\x1b"),)) == "its region has the control character U+001B"


@pytest.mark.parametrize(
    "code", ["en", "yue", "zh-Hant-TW", "sl-rozaj-biske-1994", "x" * 8, "eng-" + "-".join("a" * 16)]
)
def test_language_codes(code):
    assert is_language_code(code)


@pytest.mark.parametrize(
    "code", ["", "e", "x" * 9, "en_US", "en-", "-en", "e1", "en-123456789", "en; rm -rf", "engl-" + "-".join("a" * 16)]
)
def test_what_is_no_language_code(code):
    assert not is_language_code(code)
