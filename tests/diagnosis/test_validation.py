"""RQ3: sentences from the grammar, spoken, with noise, to a recogniser that fails on known words."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from srb.builders.errors import UserError
from srb.builders.perturb.noise import snr_db
from srb.diagnosis.coding import Vocabulary
from srb.diagnosis.gather import ClipSet, Heard
from srb.diagnosis.validate import sentences, validate, voices, words_to_test


def test_every_sentence_holds_its_word_and_words_take_turns():
    made = sentences(["brother", "nice"], 10, np.random.default_rng(0))
    assert [word for word, _ in made] == ["brother", "nice"] * 5
    assert all(f" {word} " in f" {sentence} " for word, sentence in made)
    assert len({sentence for _, sentence in made}) > 5


def test_errors_are_counted_where_the_word_is_missing():
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

    robust = validate(["nice", "is"], speak, deaf_to_brothers, count=20, snr_db=2)
    weak = validate(["brother", "nice"], speak, deaf_to_brothers, count=20, snr_db=2)
    assert (robust.errors, weak.errors, weak.rate) == (0, 10, 0.5)
    assert np.median(levels) == pytest.approx(2, abs=0.2)


def test_the_words_come_from_the_localiser():
    vocabulary = Vocabulary()
    said = ["one two three four five six"] * 5
    lost = ["one two three"] * 5
    coded = {"m": {"en_clean": vocabulary.encode(said), "en_aeq_noise_sev1": vocabulary.encode(lost)}}
    clips = ClipSet("en_clean", ("en_aeq_noise_sev1",), tuple("abcde"), (None,) * 5, {})
    heard = Heard(clips, vocabulary, vocabulary.encode(said), coded)
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
