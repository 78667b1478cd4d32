"""Algorithm 2: the paper's example, words that are known to be lost, and Table 9's layout."""

from __future__ import annotations

import numpy as np
import pytest

from speech_robust_bench.extensions.fairness.fault_localisation import fault_localiser, localise, table9
from speech_robust_bench.scoring.clip_sets import ClipSet, TranscribedSet
from speech_robust_bench.scoring.word_errors import Vocabulary

LEVELS = ("en_aeq_noise_sev1", "en_aeq_noise_sev5", "en_aeq_drop_sev1")
SAID = ["my brother is nice", "his brother is here", "nice brother", "is he nice"]


def heard(transcripts: dict[str, list[str]]) -> TranscribedSet:
    vocabulary = Vocabulary()
    reference = vocabulary.encode(SAID)
    coded = {"m": {config: vocabulary.encode(transcripts.get(config, SAID)) for config in ("en_clean", *LEVELS)}}
    ids = ("1", "2", "3", "4")
    clips = ClipSet("en_clean", LEVELS, ids, (None,) * 4, {})
    return TranscribedSet(clips, vocabulary, reference, coded, np.ones(4, dtype=bool))


def test_the_papers_example():
    clean = {"brother": 16, "nice": 25, "is": 33}
    assert fault_localiser(clean, [{"brother": 1, "nice": 23, "is": 32}], omega=3)[0] == ["brother"]


def test_the_least_count_over_levels_counts():
    words, drops = fault_localiser({"a": 5, "b": 2}, [{"a": 5, "b": 9}, {"a": 1, "b": 4}, {"a": 3, "b": 4}], omega=3)
    assert words == ["a"]
    assert drops == {"a": 4, "b": 0}
    assert fault_localiser({"a": 5}, [{"a": 1}], omega=4)[0] == []  # strictly above omega


def test_lost_words_by_group_and_transformation():
    noisy = ["my mother is nice", "his mother is here", "nice", "is he nice"]
    groups = {"x": np.array([0, 1]), "y": np.array([2, 3])}
    made = {(f.transformation, f.group): f for f in localise(heard({LEVELS[1]: noisy}), groups, transcripts=False)}
    assert made["aeq_noise", "x"].non_robust(1) == ["brother"]
    assert made["aeq_noise", "y"].non_robust(0) == ["brother"]
    assert made["aeq_drop", "x"].non_robust(0) == []
    assert made["aeq_noise", "x"].average_drop == pytest.approx(2 / 6)  # my, brother, is, nice, his, here
    assert made["aeq_drop", "x"].robust(2) == ["brother", "is"]
    assert made["aeq_noise", "x"].became == {}


def test_transcripts_tell_what_a_word_turned_into():
    noisy = ["my mother is nice", "his mother is here", "nice", "is he nice"]
    groups = {"x": np.array([0, 1]), "y": np.array([2, 3])}
    x, y, *_ = localise(heard({LEVELS[0]: noisy, LEVELS[1]: noisy}), groups, transcripts=True)
    assert (x.transformation, x.group, y.group) == ("aeq_noise", "x", "y")
    assert x.became == {"brother": [("mother", 4)]}
    assert y.became == {"brother": [(None, 2)]}


def test_invented_words_hide_lost_ones_without_references():
    noisy = ["my mother is nice", "his mother is here", "nice brother", "brother brother nice"]
    everyone = {"all": np.arange(4)}
    alone, _ = localise(heard({LEVELS[1]: noisy}), everyone, transcripts=False)
    known, _ = localise(heard({LEVELS[1]: noisy}), everyone, transcripts=True)
    assert alone.drops["brother"] == 0
    assert known.drops["brother"] == 2


def test_table_9_averages_over_the_other_axis(simulated):
    made = simulated(
        {"a": 60, "b": 60}, lambda model, config, group: 0 if config == "en_clean" or group == "b" else 0.3
    )
    groups = {"a": np.arange(60), "b": np.arange(60, 120)}
    faults = localise(made, groups, transcripts=True)
    table = table9(faults)
    assert table["ASR sensitivity"].keys() == {"one", "two"}
    assert table["transformation sensitivity"].keys() == {"aeq_noise", "aeq_drop"}
    drops = [f.average_drop for f in faults if f.recogniser == "one" and f.group == "a"]
    assert table["ASR sensitivity"]["one"] == pytest.approx({"a": np.mean(drops), "b": 0})
    assert np.mean(drops) > 0


def test_nothing_heard_at_all():
    made = localise(heard({config: [""] * 4 for config in LEVELS}), {"all": np.arange(4)}, transcripts=True)
    assert made[0].least["brother"] == 0
    assert made[0].became["is"] == [(None, 6)]
