"""Normalisers, named and versioned, and the unit in which a language is counted."""

import importlib.util
import json
import string
import unicodedata
from importlib import metadata
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from speech_robust_bench.core.errors import UserError
from speech_robust_bench.scoring.scoring import align, default_unit, normalise, versions

needs_transformers = pytest.mark.skipif(
    importlib.util.find_spec("transformers") is None, reason="transformers has the reference implementation"
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Hello, World!", "hello world"),
        ("“Don’t” — ¿qué?", "dont qué"),
        ("well-known", "wellknown"),
        ("a\u00a0b\tc\n", "a b c"),
        ("cafe\u0301", "café"),
        ("。你好！", "你好"),
        ("£5 + 3", "£5 + 3"),  # symbols are no punctuation
        ("...", ""),
    ],
)
def test_the_papers_normaliser(text, expected):
    assert normalise(text) == expected


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=60))
def test_the_second_edition_is_what_the_authors_code_does(text):
    theirs = text.upper().lower()  # evaluate_single.py: upper case when read, then lower case and no string.punctuation
    for mark in string.punctuation:
        theirs = theirs.replace(mark, "")
    assert normalise(text, "srb-paper-2") == " ".join(theirs.split())


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=60))
def test_the_papers_normaliser_is_idempotent(text):
    once = normalise(text)
    assert not any(unicodedata.category(c).startswith("P") for c in once)
    assert normalise(once) == once


SPOKEN_WORDS = """Mr. colour twenty-five don't [noise] (laughs) £20 10% o'clock naïve um 1,000 two hundred and one oh
five thousand realise it's — Ωmega <unk> he"""
SPOKEN = st.lists(st.sampled_from(SPOKEN_WORDS.split()), max_size=10).map(" ".join)


@needs_transformers
@settings(max_examples=200, deadline=None)
@given(st.one_of(st.text(max_size=40), SPOKEN))
def test_whisper_basic_is_transformers(text):
    from transformers.models.whisper.english_normalizer import BasicTextNormalizer

    assert normalise(text, "whisper-basic") == " ".join(BasicTextNormalizer()(text).split())


@needs_transformers
@settings(max_examples=200, deadline=None)
@given(SPOKEN)
def test_whisper_en_is_transformers(text):
    package = pytest.importorskip("whisper_normalizer")
    from transformers.models.whisper.english_normalizer import EnglishTextNormalizer

    spelling = json.loads((Path(package.__file__).parent / "normalizers" / "english.json").read_text("utf-8"))
    assert normalise(text, "whisper-en") == EnglishTextNormalizer(spelling)(text).strip()


def test_versions_name_the_normaliser():
    assert versions("srb-paper-1") == {"normaliser": "srb-paper-1", "unit": "word"}
    assert versions("none", language="ja") == {"normaliser": "none", "unit": "char-nospace"}
    pytest.importorskip("whisper_normalizer")
    version = metadata.version("whisper_normalizer")
    assert versions("whisper-en")["normaliser"] == f"whisper-en (whisper_normalizer {version})"


def test_whisper_en_says_what_to_install(monkeypatch):
    import sys

    from speech_robust_bench.scoring import scoring

    monkeypatch.setitem(sys.modules, "whisper_normalizer.english", None)
    scoring._whisper_english.cache_clear()
    with pytest.raises(UserError, match="pip install whisper-normalizer"):
        normalise("a", "whisper-en")
    scoring._whisper_english.cache_clear()


def test_unknown_names():
    with pytest.raises(
        UserError,
        match="no normaliser 'whisper'; choose one of srb-paper-1, srb-paper-2, srb-numbers-1, open-asr",
    ):
        align(["a"], ["a"], normaliser="whisper")
    with pytest.raises(UserError, match="no unit 'words'; choose one of word, char"):
        align(["a"], ["a"], unit="words")


@pytest.mark.parametrize("language", ["zh", "ja", "th", "lo", "my", "km", "yue", "zh-CN", "ZH_tw"])
def test_characters_where_words_are_not_separated(language):
    assert default_unit(language) == "char-nospace"
    counts = align(["我 爱你"], ["我爱 他"], language=language)
    assert counts.totals() == {"hits": 2, "substitutions": 1, "deletions": 0, "insertions": 0}


@pytest.mark.parametrize("language", ["en", "es", "ko", "vi", "de", None])
def test_words_elsewhere(language):
    assert default_unit(language) == "word"
