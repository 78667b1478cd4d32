"""RQ3: sentences from the grammar, spoken, with noise, to a recogniser that fails on known words."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from speech_robust_bench.builders.perturb.environment import snr_db
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.extensions.fairness.fault_localisation import (
    Sentence,
    grammar_validity,
    sentences,
    slot_is_hit,
    validate,
    voices,
    words_to_test,
)
from speech_robust_bench.scoring.clip_sets import ClipSet, TranscribedSet
from speech_robust_bench.scoring.scoring import normalise
from speech_robust_bench.scoring.word_errors import Vocabulary


def test_every_sentence_holds_its_word():
    drawn = sentences(["brother", "nice"], 10, np.random.default_rng(0))
    assert [s.word for s in drawn] == ["brother", "nice"] * 5
    assert all(normalise(s.text).split()[s.slot] == s.word for s in drawn)
    assert len({s.text for s in drawn}) > 5


def test_no_frame_holds_a_word_under_test():
    tested = ["the", "to", "said", "mary", "word", "for", "was"]
    for sentence in sentences(tested[:3], 60, np.random.default_rng(0), avoid=tested):
        rest = normalise(sentence.text).split()
        assert rest.pop(sentence.slot) == sentence.word
        assert not set(rest) & set(tested)
    with pytest.raises(UserError, match="test fewer words"):
        sentences(["again", "today", "yesterday", "twice", "slowly"], 1, np.random.default_rng(0))


def test_a_word_elsewhere_in_the_transcript_is_no_hit():
    """Mary's "to" is lost; the "to" that the recogniser invents further on does not make up for it."""
    sentence = Sentence("Mary said to again", "to", 2)
    assert slot_is_hit(sentence, "mary said to again")
    assert not slot_is_hit(sentence, "mary said do again")
    assert not slot_is_hit(sentence, "to mary said again")
    assert not slot_is_hit(sentence, "")


def test_errors_are_counted_where_the_word_is_missed():
    spoken: list[str] = []

    def speak(text, place):
        spoken.append(text)
        return np.sin(np.arange(16_000) / 20).astype(np.float32) * 0.3

    clean = speak("", 0)
    spoken.clear()
    levels = []

    def deaf_to_brothers(noisy):
        levels.append(snr_db(clean, noisy))
        return spoken[-1].replace("brother", "mother") + "."

    robust, weak = (
        validate(sentences(words, 20, np.random.default_rng(0)), speak, deaf_to_brothers, snr_db=2)
        for words in (["nice", "is"], ["brother", "nice"])
    )
    assert (robust.errors, weak.errors, weak.rate) == (0, 10, 0.5)
    assert np.median(levels) == pytest.approx(2, abs=0.2)


@pytest.mark.skipif(not shutil.which("link-parser"), reason="needs link-parser")
def test_the_sentences_are_grammatical_and_a_jumble_is_not():
    drawn = [s.text for s in sentences(["brother", "nice", "is", "conference"], 40, np.random.default_rng(0))]
    assert grammar_validity(drawn) > 0.9
    assert grammar_validity(["again Mary the wrote wrote nice", "the the of of is is"]) == 0


def test_the_words_come_from_the_localiser():
    vocabulary = Vocabulary()
    said = ["one two three four five six"] * 5
    lost = ["one two three"] * 5
    coded = {"m": {"en_clean": vocabulary.encode(said), "en_aeq_noise_sev1": vocabulary.encode(lost)}}
    clips = ClipSet("en_clean", ("en_aeq_noise_sev1",), tuple("abcde"), (None,) * 5, {})
    heard = TranscribedSet(clips, vocabulary, vocabulary.encode(said), coded, np.ones(5, dtype=bool))
    strong, weak = words_to_test(heard, "m", "aeq_noise")
    assert (sorted(strong), sorted(weak)) == (["one", "three", "two"], ["five", "four", "six"])
    with pytest.raises(UserError, match="lower --omega"):
        words_to_test(heard, "m", "aeq_noise", omega=5)
    with pytest.raises(UserError, match="aeq_drop was not run; there is aeq_noise"):
        words_to_test(heard, "m", "aeq_drop")


@pytest.mark.skipif(not shutil.which("flite"), reason="needs flite")
def test_a_synthetic_voice_speaks():
    speak = voices("flite")
    one, other = speak("Mary said brother again", 0), speak("Mary said brother again", 1)
    assert len(one) > 8_000
    assert len(one) != len(other)  # another voice
    with pytest.raises(UserError, match="no voice for 'fi'"):
        voices("flite", "fi")
