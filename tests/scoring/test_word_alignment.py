"""The compiled alignment against the scoring core, jiwer and rapidfuzz."""

from __future__ import annotations

import jiwer
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rapidfuzz.distance import Levenshtein

from speech_robust_bench.scoring import scoring
from speech_robust_bench.scoring.word_errors import Vocabulary, align

texts = st.lists(st.sampled_from(["a", "b", "c", "d"]), max_size=9).map(" ".join)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(texts, texts), min_size=1, max_size=5))
def test_counts_are_those_of_the_scoring_core(pairs):
    said, heard = ([pair[i] for pair in pairs] for i in (0, 1))
    vocabulary = Vocabulary()
    ours = align(vocabulary.encode(said), vocabulary.encode(heard))
    theirs = scoring.align(said, heard)
    assert ours.counts.totals() == theirs.totals()
    assert (ours.counts.errors == theirs.errors).all()
    assert ours.hit.sum() == theirs.hits.sum()
    assert ours.inserted.sum() == theirs.insertions.sum()
    assert (ours.partner < 0).sum() == theirs.deletions.sum()


def test_partners_run_forward_and_stay_within_their_clip():
    vocabulary = Vocabulary()
    said = vocabulary.encode(["a b c", "", "d e"])
    heard = vocabulary.encode(["a x c", "y", "e"])
    found = align(said, heard)
    assert found.partner.tolist() == [0, 1, 2, -1, 4]
    assert [vocabulary.words[w] if w >= 0 else None for w in found.became] == ["a", "x", "c", None, "e"]
    assert found.inserted.tolist() == [False, False, False, True, False]


def test_wer_is_jiwers_on_long_texts():
    rng = np.random.default_rng(0)
    said = [" ".join(rng.choice(list("abcdefgh"), 60)) for _ in range(50)]
    heard = [" ".join(rng.choice(list("abcdefgh"), rng.integers(0, 90))) or "x" for _ in said]
    vocabulary = Vocabulary()
    counts = align(vocabulary.encode(said), vocabulary.encode(heard)).counts
    assert counts.rate == 100 * jiwer.wer(said, heard) or abs(counts.rate - 100 * jiwer.wer(said, heard)) < 1e-9


@settings(max_examples=200, deadline=None)
@given(texts, texts)
def test_errors_are_rapidfuzz_distances_either_way(one, other):
    vocabulary = Vocabulary()
    errors = align(vocabulary.encode([one]), vocabulary.encode([other])).counts.errors[0]
    assert errors == Levenshtein.distance(one.split(), other.split())
    assert errors == align(vocabulary.encode([other]), vocabulary.encode([one])).counts.errors[0]


def test_failed_clips_and_characters_are_encoded():
    assert Vocabulary().encode([None, "A b."]).lengths.tolist() == [0, 2]
    assert Vocabulary.of("zh").encode(["你好 吗"]).lengths.tolist() == [3]


@settings(deadline=None)
@given(st.lists(st.none() | st.text() | st.text(" a-Σς\u0301é.İ\u2003\x1c\u200b")))
def test_words_are_those_of_the_normaliser(texts):
    vocabulary = Vocabulary()
    coded = vocabulary.encode(texts)
    heard = [[vocabulary.words[number] for number in words] for words in np.split(coded.words, coded.starts[1:-1])]
    assert heard[: len(texts)] == [scoring.normalise(text or "").split() for text in texts]


@pytest.mark.parametrize("normaliser", scoring.NORMALISERS)
def test_every_normaliser_gives_its_own_words(normaliser):
    text = " Mr. Smith's twenty-one -- (um) colours [noise], it's £5 "
    vocabulary = Vocabulary(normaliser)
    coded = vocabulary.encode(["", text])
    assert [vocabulary.words[number] for number in coded.words] == scoring.normalise(text, normaliser).split()
