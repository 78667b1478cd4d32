"""The table holds what the papers say, and every row is usable."""

import csv
import json
import pickle
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

from speech_robust_bench.builders.scenario import VALUES, check_can_perturb
from speech_robust_bench.builders.scenarios import SCENARIOS, find, perturbations
from speech_robust_bench.core.categories import CATEGORIES
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.names import ConfigName, parse

PAPER = [row for row in SCENARIOS.values() if row.source.startswith("SRB") and row.name != "clean"]


def test_the_paper_has_114_scenarios():
    assert sum(len(row.levels) for row in PAPER) == 114
    simulated = [row for row in PAPER if row.function]
    assert len(simulated) == 25
    assert all(len(row.levels) == 4 for row in simulated)


def printed_in_table_2() -> dict[str, tuple[str, list[float]]]:
    """The unit and the values that the paper prints for each of its perturbations, by our name of it."""
    with (Path(__file__).parent / "data" / "paper_table2.csv").open() as file:
        return {
            name: (row["unit"], [float(row[f"sev{level}"]) for level in range(1, 5)])
            for row in csv.DictReader(file)
            for name in row["scenarios"].split()
        }


def as_we_say_it(name: str, unit: str, values: list[float]) -> list[float]:
    """The paper's values in the units of the table."""
    if name in ("rir", "real_rir"):  # mean RT60 and SRMR of four bins; the table counts the bins
        return [1, 2, 3, 4]
    if unit == "oct":
        return [12 * value * (-1 if name == "pitch_down" else 1) for value in values]
    if unit == "kHz":  # a misprint: all but the first are Hz
        return [1000 * value if value == 4 else value for value in values]
    return values


def test_severities_are_those_of_the_papers_table_2():
    expected = {name: as_we_say_it(name, *printed) for name, printed in printed_in_table_2().items()}
    assert {row.name: list(row.severities) for row in PAPER if row.graded} == expected


STORED = json.loads((Path(__file__).parent / "data" / "scenario_values.json").read_text())


@pytest.mark.parametrize("name", STORED)
def test_a_published_scenario_stays_as_it_is(name):
    """A config name means the same for ever: another value is another scenario, or a new version of it."""
    row = SCENARIOS[name]
    values = [value if isinstance(value, int | float | None) else str(value) for value in row.severities]
    assert [row.category, row.parameter, values, row.edition] == STORED[name]


def test_the_bounds_of_values_stay():
    """A value that a config name could have, it can always have."""
    stored = json.loads((Path(__file__).parent / "data" / "value_bounds.json").read_text())
    assert {name: list(bounds) for name, bounds in VALUES.items() if name in stored} == stored


def test_what_lies_between_severities():
    assert SCENARIOS["noise"].continuous is True
    assert SCENARIOS["rir"].continuous is SCENARIOS["clean"].continuous is False
    assert replace(SCENARIOS["noise"], severities=(30, 20)).levels == (1, 2)
    assert SCENARIOS["noise"].value(1.25) == 27.5


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("overlap", "needs a second clip"),
        ("pgd", "is made by attack, not by perturbing a clip"),
        ("noise", None),
    ],
)
def test_what_cannot_be_made_from_one_clip_says_why(name, told):
    with pytest.raises(UserError, match=told) if told else nullcontext():
        check_can_perturb(SCENARIOS[name])


def test_which_scenarios_stretch_a_clip():
    stretching = ["tempo_up", "tempo_down", "speedup", "slowdown", "fast", "slow", "aeq_scale"]
    assert [row.name for row in SCENARIOS.values() if row.stretches is True] == stretching


def test_a_severity_that_is_missing_or_unknown_is_named():
    assert SCENARIOS["clean"].value(0) is SCENARIOS["clean"].severities[0]
    for name, severity, told in (
        ("noise", 0, "scenario 'noise' needs a severity, 1 to 4"),
        ("noise", 5, "scenario 'noise' has no severity 5; it has 1 to 4"),
        ("clean", 1, "scenario 'clean' has no severity 1; it has none (leave it out)"),
    ):
        with pytest.raises(UserError) as refused:
            SCENARIOS[name].value(severity)
        assert str(refused.value) == told


UNITS = {"dB": {"snr_db"}, "ms": {"delay_ms"}, "x": {"factor", "fraction"}, "oct": {"semitones"}, "kHz": {"corner_hz"}}


def test_parameters_are_named_after_the_papers_units():
    printed = {name: unit for name, (unit, _) in printed_in_table_2().items() if unit in UNITS}
    assert {name for name, unit in printed.items() if SCENARIOS[name].parameter not in UNITS[unit]} == set()


def test_aequevox_has_8_transformations_in_5_levels():
    rows = [row for row in SCENARIOS.values() if row.source == "AequeVox Table 2" and row.graded]
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
