"""Loops and bursts of inserted words, counted by hand."""

from __future__ import annotations

import pytest

from speech_robust_bench.scoring import word_errors
from speech_robust_bench.scoring.word_errors import Vocabulary, align

SAID = ["Then Mary saw seven dogs.", "the dogs ran to the sea", "the sea is cold", "go to Rome now"]
NOISY = [
    "then mary saw eleven dogs",
    "the dogs ran to the sea sea sea sea sea",
    "",
    "go to roam now and then and then and then",
]


def pair(said, heard):
    vocabulary = Vocabulary()
    return align(vocabulary.encode(said), vocabulary.encode(heard)), vocabulary.words


def test_a_repetition_loop_is_found_once_with_its_period():
    found, _ = pair(SAID, NOISY)
    found_loops = word_errors.invented_loops(found)
    assert [(span.clip, span.period, span.length) for span in found_loops] == [(1, 1, 5), (3, 2, 6)]


def test_what_the_speaker_repeats_is_no_loop():
    said = ["no no no no no", "five five", "row row row your boat"]
    found, _ = pair(said, said)
    assert word_errors.invented_loops(found) == []
    found, _ = pair(["hm", "hm"], ["a b", "a b"])  # the same words in two clips are not one loop
    assert word_errors.loops(found.hypothesis) == []


def test_bursts_are_runs_of_inserted_words():
    found, _ = pair(["a b", "c"], ["a v w x y b", "c d e f"])
    assert [(s.clip, s.start, s.length) for s in word_errors.bursts(found)] == [(0, 1, 4)]
    assert len(word_errors.bursts(found, least=3)) == 2


@pytest.mark.parametrize(
    ("said", "heard", "looped"),
    [
        ("more", "more more more", 0),  # three are no loop
        ("more", "more more more more", 3),  # the fourth is the word that was said
        ("go on", "go on and then and then and then", 6),
        ("go on", "go on and then and then", 0),
        ("go on", "go on and then and then and then and", 7),  # the loop's last turn may be cut
        ("no no no no no", "no no no no no no", 0),  # the speaker repeats it
        ("a b c d", "more " * 441, 437),  # four of them stand for the words that were said
        ("a", "one two three four five six", 0),  # a burst, but no loop
    ],
)
def test_inserted_words_in_loops(said, heard, looped):
    found, _ = pair([said, "x"], [heard, "x"])
    assert word_errors.looped_insertions(found).tolist() == [looped, 0]


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("", []),
        ("so it is", [("so it is", 1)]),
        ("more " * 441, [("more", 441)]),
        ("and then and then and then and", [("and then", 3), ("and", 1)]),
        ("a a a a b b b b", [("a", 4), ("b", 4)]),
    ],
)
def test_a_loop_is_folded_to_its_phrase_and_a_number(text, pieces):
    folded = word_errors.fold(text.split())
    assert folded == pieces
    assert " ".join(word for word, times in folded for _ in range(times)).split() == text.split()
