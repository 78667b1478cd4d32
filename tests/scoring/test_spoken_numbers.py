"""Numbers however written are the same words, in English and Spanish; other words are as in srb-paper-1."""

import pytest

from speech_robust_bench.scoring.scoring import align, normalise, versions

pytest.importorskip("text_to_num", reason="text2num turns number words into digits")
SAME = {
    "en": [
        ["8, 4, 7", "eight four seven", "847", "eight hundred forty-seven", "Eight hundred and forty seven"],
        ["1984", "nineteen eighty four", "nineteen eighty-four"],
        ["2020", "twenty twenty"],
        ["21st", "twenty first", "twenty-first"],
        ["7:30", "seven thirty"],
        ["$5.50", "five dollars and fifty cents"],
        ["$1", "one dollar"],
        ["£20", "twenty pounds"],
        ["3.5", "three point five"],
        ["5%", "five percent", "five per cent"],
        ["eight oh seven", "807", "8 0 7", "eight zero seven"],
        ["double seven", "77"],
        ["1,250", "one thousand two hundred fifty", "1250"],
        ["2 million", "two million", "2,000,000"],
        ["3.5 million", "3,500,000"],
        ["5 pm", "five p.m.", "5pm", "five pm"],
        ["zero one two", "012"],
    ],
    "es": [
        ["847", "ocho cuatro siete", "ochocientos cuarenta y siete"],
        ["1984", "mil novecientos ochenta y cuatro"],
        ["1º", "primero"],
        ["3,5", "tres coma cinco"],
        ["5 €", "cinco euros"],
        ["5%", "cinco por ciento"],
        ["1.250", "mil doscientos cincuenta"],
        ["7:30", "siete treinta"],
    ],
}
CASES = [(language, group) for language, groups in SAME.items() for group in groups]


@pytest.mark.parametrize(("language", "group"), CASES, ids=lambda value: value if isinstance(value, str) else value[0])
def test_the_same_number_is_the_same_words(language, group):
    assert len({normalise(text, "srb-numbers-1", language) for text in group}) == 1


@pytest.mark.parametrize(
    ("one", "other"), [("847", "874"), ("fourteen", "forty"), ("21st", "21"), ("$5", "€5"), ("3.5", "35")]
)
def test_other_numbers_stay_apart(one, other):
    assert normalise(one, "srb-numbers-1", "en") != normalise(other, "srb-numbers-1", "en")


def test_an_error_in_a_number_costs_its_digits():
    """One of three digits is wrong, however they are written: a third."""
    counts = align(["eight four seven"], ["857"], normaliser="srb-numbers-1", language="en")
    assert counts.totals() == {"hits": 2, "substitutions": 1, "deletions": 0, "insertions": 0}


def test_words_without_numbers_are_as_in_srb_paper_1():
    text = "Well-known:  “Don’t STOP!” he said, and went home"
    assert normalise(text, "srb-numbers-1", "en") == normalise(text)
    assert normalise("ニュース 3", "srb-numbers-1", "ja") == "ニュース 3"


def test_a_result_names_the_normaliser_and_its_package():
    assert versions("srb-numbers-1")["normaliser"].startswith("srb-numbers-1 (text2num ")
