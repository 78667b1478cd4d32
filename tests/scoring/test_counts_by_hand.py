"""The scoring core on sentences that can be counted by eye; thousands of others are in test_wer_equals_jiwer.py."""

from dataclasses import FrozenInstanceError
from importlib import metadata

import numpy as np
import pytest

from speech_robust_bench.core.errors import UserError
from speech_robust_bench.scoring import scoring
from speech_robust_bench.scoring.scoring import align, check_texts, default_unit, error_rate, normalise, versions


@pytest.mark.parametrize(
    ("reference", "prediction", "hits", "substitutions", "deletions", "insertions"),
    [
        ("the cat sat", "the cat sat", 3, 0, 0, 0),
        ("The cat, sat!", "the CAT sat.", 3, 0, 0, 0),
        ("the cat sat", "the bat sat", 2, 1, 0, 0),
        ("the cat sat", "the sat", 2, 0, 1, 0),
        ("the cat sat", "the cat sat on it", 3, 0, 0, 2),
        ("the cat sat", "", 0, 0, 3, 0),
        ("", "a b", 0, 0, 0, 2),
        ("a b c d", "b c d e", 3, 0, 1, 1),  # not four substitutions
        ("a b", "b a", 1, 0, 1, 1),  # two errors either way: the alignment with a hit counts
        ("a b c", "x b", 1, 1, 1, 0),
        ("one two three four five", "two three x five six seven", 3, 1, 1, 2),
    ],
)
def test_counts_of_one_utterance(reference, prediction, hits, substitutions, deletions, insertions):
    counts = align([reference], [prediction])
    expected = {"hits": hits, "substitutions": substitutions, "deletions": deletions, "insertions": insertions}
    assert counts.totals() == expected
    assert counts.errors.tolist() == [substitutions + deletions + insertions]
    assert counts.lengths.tolist() == [hits + substitutions + deletions]


def test_counts_of_several_utterances_are_kept_apart():
    counts = align(["a b c d", "x", "", "good night"], ["a b c d", "y z", "w", "good"])
    assert counts.errors.tolist() == [0, 2, 1, 1]
    assert counts.lengths.tolist() == [4, 1, 0, 2]
    assert counts.rate == pytest.approx(100 * 4 / 7)
    assert counts.rates.tolist() == [0, 200, 100, 50]
    assert len(counts) == 4
    some = counts.take(np.array([3, 1]))
    assert some.errors.tolist() == [1, 2]
    assert counts.take(np.array([True, False, False, True])).lengths.tolist() == [4, 2]
    with pytest.raises(FrozenInstanceError):
        counts.hits = counts.errors


@pytest.mark.parametrize(
    ("unit", "errors", "lengths"), [("word", 2, 2), ("char", 1, 5), ("char-nospace", 0, 4), (None, 2, 2)]
)
def test_units(unit, errors, lengths):
    """`ab cd` written together: two words are wrong, or one space, or nothing."""
    counts = align(["ab cd"], ["abcd"], unit=unit)
    assert (counts.errors.tolist(), counts.lengths.tolist()) == ([errors], [lengths])


def test_the_unit_is_that_of_the_language():
    assert align(["你好 吗"], ["你好吗"], language="zh-CN").errors.tolist() == [0]
    assert align(["你好吗"], ["你好"], language="zh").totals()["deletions"] == 1
    unspaced = ["zh", "cmn", "yue", "wuu", "nan", "hak", "lzh", "ja", "th", "lo", "my", "km", "bo", "dz", "shn"]
    assert [code for code in unspaced if default_unit(code) != "char-nospace"] == []
    assert [default_unit(code) for code in ("en", "ZH_tw", "th-TH", "ko", "", None)] == [
        "word", "char-nospace", "char-nospace", "word", "word", "word"
    ]  # fmt: skip


def test_an_empty_reference_has_length_one():
    assert error_rate(1, 4) == 25
    assert error_rate([1, 3, 0], [4, 0, 0]).tolist() == [25, 300, 0]


@pytest.mark.parametrize(
    ("normaliser", "text", "expected"),
    [
        ("srb-paper-1", "Don’t  STOP – $5!", "dont stop $5"),
        ("srb-paper-1", "cafe\u0301", "caf\u00e9"),
        ("srb-paper-2", "Don’t STOP – $5! Straße", "don’t stop – 5 strasse"),
        ("whisper-basic", "<noise> Ça [laughs] (cough) va ½+1", "ça va 1 2 1"),
        ("none", " A  b! ", "A b!"),
        ("srb-numbers-1", "Eight four seven", "8 4 7"),
    ],
)
def test_normalisers_by_example(normaliser, text, expected):
    assert normalise(text, normaliser, "en") == expected


def test_a_result_says_how_it_was_scored():
    assert versions("srb-paper-1") == {"normaliser": "srb-paper-1", "unit": "word"}
    assert versions("none", "char", "en") == {"normaliser": "none", "unit": "char"}
    assert versions("none", None, "ja")["unit"] == "char-nospace"
    assert versions("srb-numbers-1")["normaliser"] == f"srb-numbers-1 (text2num {metadata.version('text2num')})"


def test_a_normaliser_without_its_package_says_how_to_get_it(monkeypatch):
    def missing(package):
        raise metadata.PackageNotFoundError(package)

    monkeypatch.setattr(scoring.metadata, "version", missing)
    with pytest.raises(UserError, match="the normaliser 'srb-numbers-1' needs a package: pip install text2num"):
        versions("srb-numbers-1")


def test_unknown_names_are_answered_with_those_there_are():
    with pytest.raises(UserError, match="no normaliser 'mine'; choose one of srb-paper-1, srb-paper-2"):
        align(["a"], ["a"], normaliser="mine")
    with pytest.raises(UserError, match="no unit 'syllable'; choose one of word, char, char-nospace"):
        align(["a"], ["a"], unit="syllable")


@pytest.mark.parametrize(
    ("columns", "why"),
    [
        ({"references": "a b", "predictions": ["a"]}, "references must be a list of strings, not one str"),
        ({"references": ["a"], "predictions": iter(["a"])}, "predictions must be a list of strings, not one list_iter"),
        (
            {"references": ["a", None], "predictions": ["a", "b"]},
            r"references\[1\] is None \(NoneType\), not a string; pass '' for a clip without a transcript",
        ),
        ({"references": ["a"], "predictions": [3]}, r"predictions\[0\] is 3 \(int\), not a string$"),
        ({"references": ["a", "b"], "predictions": ["a"]}, "2 references but 1 predictions; they must pair"),
        ({"a": ["x"], "b": ["x"], "c": []}, "1 a but 0 c"),
    ],
)
def test_mistakes_are_one_line(columns, why):
    with pytest.raises(UserError, match=why):
        check_texts(**columns)


def test_texts_may_be_of_a_kind_of_string():
    class Text(str):
        """As numpy and others have it."""

    check_texts(references=[Text("a")], predictions=["b"])
    check_texts(references=[], predictions=[])
