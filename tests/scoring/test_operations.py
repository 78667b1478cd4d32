"""One alignment of words: its operations have the counts of the scores, and nothing else aligns words."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from speech_robust_bench.core.errors import UserError
from speech_robust_bench.scoring import word_alignment
from speech_robust_bench.scoring.scoring import Counts, align
from speech_robust_bench.scoring.word_alignment import align_words, operations

ROOT = Path(__file__).parents[2]
NOT_THE_PRODUCT = {"tests", "benchmarks", "docs", "results", "tools", "build", "dist"}
ALIGNS = re.compile(r"^\s*(from|import) rapidfuzz(?!\.distance import Prefix$)", re.M)  # a common prefix aligns nothing
texts = st.lists(st.sampled_from(["a", "b", "c", "d"]), max_size=9).map(" ".join)


def counted(counts: Counts) -> list[list[int]]:
    kinds = [Counter(step.kind for step in steps) for steps in counts.operations or ()]
    return [[kind[name] for kind in kinds] for name in word_alignment.KINDS]


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(texts, texts), min_size=1, max_size=5))
def test_operations_have_the_counts_of_the_scores(pairs):
    counts = align(*map(list, zip(*pairs, strict=True)), operations=True)
    assert counted(counts) == [array.tolist() for array in counts.as_arrays()]


@settings(max_examples=100, deadline=None)
@given(texts, texts, texts, texts)
def test_operations_of_two_talkers(first, second, one, other):
    said, written = first.split() + second.split(), one.split() + other.split()
    counts = align([f"{first} <sc> {second}"], [f"{one} <sc> {other}"], operations=True)
    assert counted(counts) == [array.tolist() for array in counts.as_arrays()]
    for steps in counts.operations or ():
        assert [step.reference for step in steps if step.reference is not None] == list(range(len(said)))
        places = [step.hypothesis for step in steps if step.hypothesis is not None]
        assert sorted(places) == list(range(len(written)))
        for step in steps:
            if step.kind == word_alignment.HIT:
                assert said[step.reference] == written[step.hypothesis]


@settings(max_examples=200, deadline=None)
@given(texts, texts)
def test_operations_rebuild_both_texts(one, other):
    said, written = one.split(), other.split()
    steps = align_words(said, written)
    assert [step.reference for step in steps if step.reference is not None] == list(range(len(said)))
    assert [step.hypothesis for step in steps if step.hypothesis is not None] == list(range(len(written)))
    both = [(said[s.reference], written[s.hypothesis], s.kind) for s in steps if None not in s]
    assert all((kind == word_alignment.HIT) == (a == b) for a, b, kind in both)


def test_compiled_operations_are_those_of_plain_python(monkeypatch):
    rng = np.random.default_rng(0)
    said, written = ([list(rng.choice(list("abcd"), rng.integers(0, 30))) for _ in range(400)] for _ in range(2))
    plain = [align_words(*pair) for pair in zip(said, written, strict=True)]
    monkeypatch.setattr(word_alignment, "MOST_IN_PYTHON", 0)
    assert operations(said, written) == plain
    monkeypatch.setattr(word_alignment, "_can_compile", lambda: False)  # as in a Space
    assert operations(said, written) == plain


def test_the_alignment_with_the_most_hits_is_taken():
    steps = align_words(["a", "b"], ["b", "a"])  # two substitutions are as many errors, without a hit
    assert Counter(step.kind for step in steps) == {"hit": 1, "deletion": 1, "insertion": 1}


def test_texts_that_cannot_be_aligned(monkeypatch):
    with pytest.raises(ValueError, match="2 references and 1 transcripts"):
        operations([["a"], ["b"]], [["a"]])
    monkeypatch.setattr(word_alignment, "MOST_PAIRS", 3)
    with pytest.raises(UserError, match="transcript 0 has 2 words and its reference 2"):
        align_words(["a", "b"], ["b", "a"])


def test_only_one_module_aligns_with_rapidfuzz():
    product = [
        path.relative_to(ROOT)
        for path in ROOT.rglob("*.py")
        if not NOT_THE_PRODUCT & set(path.relative_to(ROOT).parts[:1])
        and not path.relative_to(ROOT).parts[0].startswith(".")
    ]
    using = [path for path in product if ALIGNS.search((ROOT / path).read_text("utf-8"))]
    assert using == [Path("scoring/word_alignment.py")]
