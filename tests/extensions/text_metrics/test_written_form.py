"""Punctuation, capitals, semiotic classes and terms: worked by hand."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from speech_robust_bench.core.errors import UserError
from speech_robust_bench.extensions.text_metrics.text_formatting import (
    entities,
    formatting_scores,
    number_of_words,
    term_scores,
    word_pairs,
    written_words,
)

PAPER = "srb-paper-1"


def scores(reference: str, prediction: str) -> dict:
    return formatting_scores([reference], [prediction], PAPER)


def test_marks_count_after_the_same_word():
    """Two commas expected, one in its place and one after another word; the full stop is a question mark."""
    marks = scores("Yes, we came, we saw.", "Yes, we came we, saw?")["punctuation"]["marks"]
    assert marks[","] == {"precision": 50.0, "recall": 50.0, "f1": 50.0, "expected": 2}
    assert marks["."] == {"precision": None, "recall": 0.0, "f1": 0.0, "expected": 1}
    assert marks["?"] == {"precision": 0.0, "recall": None, "f1": 0.0, "expected": 0}
    assert marks["!"]["f1"] is None


def test_marks_of_missing_and_added_words_count_too():
    marks = scores("One. Two.", "One. Two. Three.")["punctuation"]["marks"]
    assert marks["."] == {"precision": pytest.approx(200 / 3), "recall": 100.0, "f1": 80.0, "expected": 2}
    assert scores("One. Two.", "One.")["punctuation"]["marks"]["."]["recall"] == 50


def test_capitals_are_judged_on_recognised_words():
    made = scores("Mary met NASA in Rome 42", "mary met Nasa on Rome 42")
    assert made["cased_words"] == 4  # Mary, met, NASA, Rome: not in (another word), nor 42 (no letters)
    assert made["case_error_rate"] == 50


def test_perfect_and_empty():
    text = "Well, it's 5:30 p.m. on May 3, 2021: call +1 555-012-3456!"
    made = scores(text, text)
    assert made["punctuation"]["f1"] == 100
    assert made["case_error_rate"] == 0
    assert {k: v["written"] for k, v in made["classes"].items() if v["expected"]} == dict.fromkeys(
        ("time", "date", "phone"), 100.0
    )
    nothing = scores("", "")
    assert nothing["punctuation"]["f1"] is None
    assert nothing["case_error_rate"] is None


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("at 5:30", "time", 330),
        ("at 5:30 pm", "time", 17 * 60 + 30),
        ("at 12 a.m.", "time", 0),
        ("2021-05-03", "date", (2021, 5, 3)),
        ("5/3/2021", "date", (2021, 5, 3)),
        ("May 3rd, 2021", "date", (2021, 5, 3)),
        ("the 3rd of May", "date", (None, 5, 3)),
        ("$1,200.50", "money", ("USD", Decimal("1200.50"))),
        ("3 million euros", "money", ("EUR", Decimal(3_000_000))),
        ("twenty five pounds", "money", ("GBP", Decimal(25))),
        ("221 Baker Street", "address", (221, "baker st")),
        ("221 baker st.", "address", (221, "baker st")),
        ("(555) 012-3456", "phone", "5550123456"),
        ("1,000", "number", Decimal(1000)),
        ("3.5", "number", Decimal("3.5")),
        ("two hundred and five", "number", Decimal(205)),
    ],
)
def test_things_and_their_values(text, kind, value):
    (found,) = entities(f"well {text} then")
    assert (found.kind, found.value) == (kind, value)


def test_right_class_right_value_right_form():
    made = formatting_scores(
        ["It costs $20.", "It costs $20.", "It costs $20.", "It costs $20.", "It costs little."],
        ["It costs $20.", "It costs twenty dollars.", "It costs $30.", "It costs a lot.", "It costs $5."],
        PAPER,
    )["classes"]["money"]
    assert made == {"expected": 4, "class": 75.0, "value": 50.0, "written": 25.0, "invented": 1}


def test_a_missing_thing_does_not_shift_those_after_it():
    made = scores("from 3 to 5 to 7", "from to 5 to 7")["classes"]["number"]
    assert (made["expected"], made["value"]) == (3, pytest.approx(200 / 3))


@pytest.mark.parametrize(
    ("words", "number"),
    [
        ("zero", 0),
        ("nineteen", 19),
        ("forty-two", 42),
        ("one hundred", 100),
        ("nine hundred and ninety-nine", 999),
        ("two thousand and twenty one", 2021),
        ("three hundred and twelve thousand four hundred and seven", 312_407),
        ("five million two", 5_000_002),
        ("one billion", 10**9),
    ],
)
def test_number_words(words, number):
    assert number_of_words(words) == number


def test_digits_one_by_one_are_no_number():
    assert number_of_words("eight four seven") is None
    assert number_of_words("twenty thirty") is None


@given(st.text(), st.text())
@settings(max_examples=200, deadline=None)
def test_any_text_is_taken(reference, prediction):
    made = scores(reference, prediction)
    f1 = made["punctuation"]["f1"]
    assert f1 is None or 0 <= f1 <= 100
    pairs = word_pairs(written_words(reference), written_words(prediction), PAPER)
    assert len([ours for ours, _ in pairs if ours]) == len(written_words(reference))


def test_terms_by_hand():
    made = term_scores(["call Ann Lee", "call Bob"], ["call ann lee", "call ann lee"], [["Ann Lee"], ["Bob"]], PAPER)
    assert (made["recall"], made["precision"]) == (50, 100)  # Ann Lee is no term of the second utterance
    assert made["terms"]["Bob"]["expected"] == 1
    both = term_scores(["call Ann Lee", "call Bob"], ["call ann lee", "call ann lee"], ["Ann Lee"], PAPER)
    assert (both["recall"], both["precision"], both["false_alarm_rate"]) == (100, 50, 100)
    assert (both["biased_utterances"], both["anti_biased_utterances"]) == (1, 1)


def test_words_of_terms_and_the_others_have_their_own_rates():
    """Of seven words two are of the term: one is wrong, and Ann is also inserted; of the other five one is lost."""
    made = term_scores(["so then we saw that Ann Lee"], ["Ann so then saw that Ann Lea"], ["Ann Lee"], PAPER)
    assert made["b_wer"] == 100
    assert made["u_wer"] == 20


def test_capitals_of_a_term():
    texts = ["in Rome, now"], ["in rome, now"]
    assert term_scores(*texts, ["Rome"], PAPER)["recall"] == 100
    assert term_scores(*texts, ["Rome"], PAPER, capitals=True)["recall"] == 0
    assert term_scores(["in Rome, now"], ["In Rome now"], ["Rome"], PAPER, capitals=True)["recall"] == 100


@pytest.mark.parametrize("terms", ["Rome", [["Rome"]], ["Rome", ["Bari"]]])
def test_terms_of_the_wrong_shape(terms):
    with pytest.raises(UserError, match="terms"):
        term_scores(["a", "b"], ["a", "b"], terms, PAPER)
