"""A chain is its steps, one after the other: nothing more, in the table and in a user's own file."""

import json

import numpy as np
import pytest
from support.speech import speech_like

from speech_robust_bench.builders.apply import apply, perturb_clip
from speech_robust_bench.builders.banks import Banks
from speech_robust_bench.builders.custom import load_table
from speech_robust_bench.builders.scenarios import SCENARIOS, chain
from speech_robust_bench.cli.main import main
from speech_robust_bench.core.errors import UserError

CLIP, BANKS = speech_like(2), Banks()


def rng():
    return np.random.default_rng(7)


def test_a_chain_is_its_steps_with_one_stream():
    made = apply(SCENARIOS["street_call"], 3, CLIP, rng(), BANKS)
    stream, by_hand = rng(), CLIP
    for name, severity in (("rir", 3), ("noise", 3), ("telephone", 0)):
        by_hand = apply(SCENARIOS[name], severity, by_hand, stream, BANKS).samples
    np.testing.assert_array_equal(made.samples, by_hand)
    steps = made.parameters["chain"]
    assert [step["scenario"] for step in steps] == ["rir", "noise", "telephone"]
    assert steps[1]["snr_db"] == 10
    assert steps[1]["noise"]
    json.dumps(made.parameters)


def test_clipped_samples_of_all_steps_are_counted():
    made = apply(SCENARIOS["hot_microphone"], 4, CLIP, rng(), BANKS)
    assert made.clipped >= apply(SCENARIOS["gain"].at(40), 0, CLIP, rng(), BANKS).clipped > 0


def test_a_chain_needs_the_banks_and_packages_of_its_steps():
    assert set(SCENARIOS["street_call"].banks) == {"rir", "noise"}
    assert chain("x", "", "", ["amr_sev1 + lc3_sev1"], SCENARIOS).packages == ("av", "lc3")
    assert BANKS.describe(*SCENARIOS["street_call"].banks) == BANKS.describe("noise")


@pytest.mark.parametrize(
    ("steps", "complaint"),
    [
        ("noise_sev1 + tellephone", "unknown scenario 'tellephone'; did you mean telephone"),
        ("noise_sev9", "no severity 9"),
        ("noise", "needs a severity"),
        ("noise_snr500", "is not in -50 to 100"),
        ("silence", "does not change speech"),
        ("pgd_sev1", "does not change speech"),
        ("noise_sev1+telephone", "not a config name"),
        ("", "not a config name"),
    ],
)
def test_a_step_that_cannot_be_is_one_clear_error(steps, complaint):
    with pytest.raises(UserError, match=complaint):
        chain("mine", "", "", [steps], SCENARIOS)


OWN = """
scenarios:
  - name: kitchen
    chain: [rir_sev1 + noise_snr15, rir_sev3 + noise_snr5 + telephone]
  - name: kitchen_call
    chain: [kitchen_sev2 + gsm]
    version: 3
"""


def test_a_users_chain_may_hold_an_earlier_one(tmp_path, capsys):
    (tmp_path / "own.yaml").write_text(OWN)
    table = load_table(tmp_path / "own.yaml")
    assert table["kitchen_call"].edition == "3"
    made = perturb_clip(table["kitchen_call"], 0, CLIP, BANKS, corpus="c", clip_id="i")
    assert [step["scenario"] for step in made.parameters["chain"]] == ["kitchen", "gsm"]
    build = ["build", "en-demo_kitchen_sev2", "--limit", "1", "--out", str(tmp_path / "srb")]
    assert main([*build, "--scenario-file", str(tmp_path / "own.yaml")]) == 0
    manifest = json.loads((tmp_path / "srb/en-demo_kitchen_sev2/_manifest.json").read_text())
    assert manifest["parameters"] == {"chain": "rir_sev3 + noise_snr5 + telephone"}
    assert manifest["bank"] == "built-in bank (synthesised)"
    assert manifest["stand_in"] is True


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("chain: noise_sev1", "list of one to nine"),
        ("chain: [[noise_sev1]]", "are text"),
        ("chain: [kitchen]", "unknown scenario 'kitchen'"),
        ("chain: [mulaw]\n    transform: Gain", "has no `transform`"),
        ("chain: [mulaw]\n    version: 0", "whole number from 1"),
    ],
)
def test_a_users_mistake_is_one_line(tmp_path, text, complaint):
    (tmp_path / "own.yaml").write_text(f"scenarios:\n  - name: kitchen\n    {text}\n")
    with pytest.raises(UserError, match=complaint):
        load_table(tmp_path / "own.yaml")
