"""The error rates are jiwer's, on words and characters, whatever the text."""

import random

import jiwer
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from speech_robust_bench.scoring.scoring import align, normalise

WORDS = st.sampled_from(
    ["a", "b", "the", "don't", "naïve", "naïve", "Straße", "İstanbul", "日本", "да", "—", "😀", "x\u00a0y"]
)
SENTENCE = st.one_of(st.text(max_size=40), st.lists(WORDS, max_size=12).map(" ".join))
PAIRS = st.lists(st.tuples(SENTENCE, SENTENCE), min_size=1, max_size=8)


def check(references, predictions, normaliser):
    ours = align(references, predictions, normaliser=normaliser)
    references = [normalise(text, normaliser) for text in references]
    predictions = [normalise(text, normaliser) for text in predictions]
    assert ours.rate / 100 == pytest.approx(jiwer.wer(references, predictions), abs=1e-12)
    chars = align(references, predictions, normaliser="none", unit="char")
    assert chars.rate / 100 == pytest.approx(jiwer.cer(references, predictions), abs=1e-12)
    for counts, theirs in (
        (ours, jiwer.process_words(references, predictions)),
        (chars, jiwer.process_characters(references, predictions)),
    ):
        assert counts.errors.sum() == theirs.substitutions + theirs.deletions + theirs.insertions
        assert counts.lengths.sum() == theirs.hits + theirs.substitutions + theirs.deletions
        assert counts.hits.sum() >= theirs.hits  # of alignments with as few errors, the one with the most hits
        assert all((column >= 0).all() for column in (counts.hits, counts.deletions, counts.insertions))


@settings(max_examples=400, deadline=None)
@given(PAIRS, st.sampled_from(["srb-paper-1", "none"]))
def test_hypothesis_pairs(pairs, normaliser):
    check([r for r, _ in pairs], [p for _, p in pairs], normaliser)


def test_thousands_of_random_pairs_one_by_one():
    rng = random.Random(0)
    vocabulary = [*(f"w{i}" for i in range(50)), "Ünï", "cödé", "ß", "ﬁ", "Ω", "it's"]
    for _ in range(5000):
        reference = " ".join(rng.choices(vocabulary, k=rng.randrange(0, 25)))
        kept = [w if rng.random() > 0.3 else rng.choice([*vocabulary, ""]) for w in reference.split()]
        prediction = " ".join(kept[rng.randrange(3) :] + rng.choices(vocabulary, k=rng.randrange(3)))
        ours = align([reference], [prediction])
        theirs = jiwer.wer(normalise(reference), normalise(prediction))
        assert abs(ours.rate / 100 - theirs) < 1e-12


def test_counts_are_those_of_the_best_alignment_by_brute_force():
    def best(ref, hyp):
        """Fewest errors, then most hits, over all alignments."""
        if not ref or not hyp:
            return len(ref) + len(hyp), 0
        match = best(ref[1:], hyp[1:])
        same = ref[0] == hyp[0]
        options = [(match[0] + (not same), match[1] - same)]
        options += [(e + 1, h) for e, h in (best(ref[1:], hyp), best(ref, hyp[1:]))]
        return min(options)

    rng = random.Random(1)
    for _ in range(150):
        ref, hyp = (rng.choices("abc", k=rng.randrange(6)) for _ in range(2))
        counts = align([" ".join(ref)], [" ".join(hyp)])
        errors, hits = best(ref, hyp)
        assert (counts.errors[0], counts.hits[0]) == (errors, -hits)
        assert counts.insertions[0] - counts.deletions[0] == len(hyp) - len(ref)
