"""The table holds what the papers say, and every row is usable."""

import pickle

import pytest

from srb.builders.errors import UserError
from srb.builders.names import ConfigName, parse
from srb.builders.scenarios import CATEGORIES, SCENARIOS, find, perturbations

PAPER = [row for row in SCENARIOS.values() if row.source.startswith("SRB") and row.name != "clean"]


def test_the_paper_has_114_scenarios():
    assert sum(len(row.levels) for row in PAPER) == 114
    simulated = [row for row in PAPER if row.function]
    assert len(simulated) == 25
    assert all(len(row.levels) == 4 for row in simulated)


def test_aequevox_has_8_transformations_in_5_levels():
    rows = [row for row in SCENARIOS.values() if row.category == "aequevox" and row.graded]
    assert [len(row.levels) for row in rows] == [5] * 8


def test_categories_are_those_of_the_papers_table_1():
    published = "accent audio_proc noise_env noise_white sfx social_far social_near spatial synth_speech adv_ua adv_us"
    assert {row.category for row in PAPER} == set(published.split())
    assert {row.category for row in SCENARIOS.values()} <= set(CATEGORIES)


@pytest.mark.parametrize("name", SCENARIOS)
def test_config_names_come_apart_and_together_again(name):
    for level in SCENARIOS[name].levels:
        config = ConfigName("en", name, level, "tedlium")
        assert parse(str(config)) == config


def test_the_default_corpus_is_left_out_of_a_name():
    assert str(ConfigName("en", "noise", 3, "librispeech")) == "en_noise_sev3"
    assert parse("es_rir_sev2").corpus == "mls"
    assert parse("en_pgd_sev2-whisper-tiny.en").model == "whisper-tiny.en"


@pytest.mark.parametrize("scenario", perturbations(), ids=lambda scenario: scenario.name)
def test_a_row_can_be_sent_to_another_process(scenario):
    assert pickle.loads(pickle.dumps(scenario)) == scenario


def test_an_unknown_scenario_is_answered_with_the_nearest():
    with pytest.raises(UserError, match="did you mean noise_musan"):
        find("noise_mussan")


@pytest.mark.parametrize("severity", [0, 5, -1])
def test_a_severity_out_of_range_says_the_range(severity):
    with pytest.raises(UserError, match="1 to 4"):
        SCENARIOS["echo"].value(severity)


@pytest.mark.parametrize("name", ["noise", "EN_noise_sev3", "en noise", "en_noise_sev3/..", ""])
def test_a_name_outside_the_grammar_is_refused(name):
    with pytest.raises(UserError, match="not a config name"):
        parse(name)
