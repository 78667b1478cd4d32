"""jiwer's words in and out, its transforms as normalisers, and audiomentations' transforms as scenarios from Python."""

from __future__ import annotations

import numpy as np
import pytest

import speech_robust_bench as srb
from speech_robust_bench.core.errors import UserError

SAID = ["the cat sat down", "I don't know", "good morning"]
WRITTEN = ["a cat sat", "i do not know", "good morning everyone"]


def test_the_output_of_process_words_is_scored():
    jiwer = pytest.importorskip("jiwer")
    theirs = jiwer.process_words(SAID, WRITTEN)
    ours = srb.score(theirs, replicates=100)
    assert ours.value == pytest.approx(100 * theirs.wer)
    assert ours.counts["hits"] == theirs.hits


def test_a_score_gives_the_output_of_process_words():
    jiwer = pytest.importorskip("jiwer")
    output = srb.score(SAID, WRITTEN, replicates=0).to_jiwer()
    expected = jiwer.process_words(["the cat sat down", "i dont know", "good morning"], WRITTEN)
    assert output == expected
    assert "cat" in jiwer.visualize_alignment(output)


def test_scores_that_jiwer_does_not_count_alike_are_refused():
    pytest.importorskip("jiwer")
    with pytest.raises(UserError, match="counted in characters"):
        srb.score(["ab"], ["ac d"], unit="char", replicates=0).to_jiwer()


@pytest.mark.parametrize("words", [False, True])
def test_a_transform_of_jiwer_is_a_normaliser(words):
    jiwer = pytest.importorskip("jiwer")
    steps = [jiwer.ExpandCommonEnglishContractions(), jiwer.ToLowerCase(), jiwer.RemoveMultipleSpaces(), jiwer.Strip()]
    whole = jiwer.Compose([*steps, jiwer.ReduceToListOfListOfWords()])
    ours = srb.score(SAID, WRITTEN, normaliser=whole if words else jiwer.Compose(steps), replicates=0)
    theirs = jiwer.process_words(SAID, WRITTEN, reference_transform=whole, hypothesis_transform=whole)
    assert ours.value == pytest.approx(100 * theirs.wer)
    assert ours.counts["hits"] == theirs.hits == 8


def test_a_transform_that_drops_sentences_is_refused():
    jiwer = pytest.importorskip("jiwer")
    with pytest.raises(UserError, match="one for each"):
        srb.score(["a", ""], ["a", "b"], normaliser=jiwer.RemoveEmptyStrings(), replicates=0)


def test_predictions_are_needed():
    with pytest.raises(UserError, match="predictions are missing"):
        srb.score(["a"])


def test_a_transform_of_audiomentations_is_a_scenario(tmp_path):
    am = pytest.importorskip("audiomentations")
    clip = np.sin(np.arange(16_000) / 20).astype(np.float32)
    quieter = srb.perturb(clip, 16_000, am.Gain(min_gain_db=-6, max_gain_db=-6, p=0.1))
    assert quieter.scenario == "gain"
    assert quieter.samples == pytest.approx(clip * 10 ** (-6 / 20), abs=1e-4)

    levels = [am.Gain(min_gain_db=-db, max_gain_db=-db) for db in (6, 12)]
    file = srb.write_scenarios(tmp_path / "own.yaml", {"quieter": levels})
    again = srb.perturb(clip, 16_000, "quieter", 2, scenario_file=file)
    assert again.samples == pytest.approx(clip * 10 ** (-12 / 20), abs=1e-4)
    row = next(iter(srb.load("en-demo_quieter_sev1", limit=1, scenario_file=file)))
    clean = next(iter(srb.load("en-demo_clean", limit=1)))
    assert row["audio"]["array"] == pytest.approx(clean["audio"]["array"] * 10 ** (-6 / 20), abs=1e-4)


def test_a_chance_of_a_transform_is_reproducible():
    am = pytest.importorskip("audiomentations")
    clip = np.zeros(8_000, dtype=np.float32) + 0.1
    noise = am.AddGaussianNoise(min_amplitude=0.01, max_amplitude=0.02)
    first, second = (srb.perturb(clip, 16_000, noise).samples for _ in range(2))
    assert np.array_equal(first, second)
    assert np.std(first) > 0.005


def test_transforms_that_no_file_can_hold_are_refused(tmp_path):
    am = pytest.importorskip("audiomentations")
    with pytest.raises(UserError, match="transforms of one kind"):
        srb.write_scenarios(tmp_path / "own.yaml", {"mixed": [am.Gain(), am.BitCrush()]})
    with pytest.raises(UserError, match="Lambda: its transform cannot be written"):
        srb.perturb(np.zeros(99), 16_000, am.Lambda(transform=lambda samples, sample_rate: samples))
