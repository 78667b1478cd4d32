"""Scenarios of the user's own, from YAML."""

import random

import numpy as np
import pytest
from support.speech import RATE

from speech_robust_bench.builders.apply import apply
from speech_robust_bench.builders.banks import Banks
from speech_robust_bench.builders.custom import load_table
from speech_robust_bench.core.errors import UserError

am = pytest.importorskip("audiomentations")

GOOD = """
scenarios:
  - name: bitcrush
    transform: BitCrush
    parameters: {min_bit_depth: $value, max_bit_depth: $value}
    parameter: bits
    severities: [10, 8, 6, 4]
  - name: band
    transform: BandPassFilter
    severities:
      - {min_center_freq: 1000, max_center_freq: 1000}
      - {min_center_freq: 500, max_center_freq: 500}
"""


@pytest.fixture
def table(tmp_path):
    (tmp_path / "own.yaml").write_text(GOOD)
    return load_table(tmp_path / "own.yaml")


def test_a_few_lines_add_a_scenario(table, speech):
    made = apply(table["bitcrush"], 4, speech, np.random.default_rng(0), Banks())
    theirs = am.BitCrush(min_bit_depth=4, max_bit_depth=4, p=1)(samples=speech, sample_rate=RATE)
    assert np.array_equal(made.samples, np.clip(theirs, -1, 1))
    assert made.parameters == {"bits": 4}


def test_the_draw_depends_on_the_stream_alone(table, speech):
    def once():
        return apply(table["band"], 2, speech, np.random.default_rng(5), Banks()).samples

    random.seed(1)
    first, state = once(), random.getstate()
    random.seed(2)
    assert np.array_equal(first, once())
    random.seed(1)
    assert random.getstate() == state, "the global state is put back"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("scenarios: [{name: a}]", "needs `name`, `transform` and `severities`"),
        ("scenarios: [{name: echo, transform: Gain, severities: [1]}]", "is taken"),
        ("scenarios: [{name: a, transform: Gian, severities: [1]}]", "did you mean Gain"),
        ("scenarios: [{name: A b, transform: Gain, severities: [1]}]", "may hold only"),
        ("scenarios: [{name: a, transform: Gain, severities: []}]", "one to nine"),
        ("scenarios: [{name: a, transform: Gain, severities: [1], paramters: {}}]", "unknown key 'paramters'"),
        ("scenarios: [{name: a, transform: Gain, parameters: {loudness: 3}, severities: [1]}]", "refuses severity 1"),
        ("scenario: []", "needs a list"),
        ("{", "is not YAML"),
    ],
)
def test_mistakes_name_the_file_and_the_row(tmp_path, text, complaint):
    (tmp_path / "own.yaml").write_text(text)
    with pytest.raises(UserError, match=r"own\.yaml") as caught:
        load_table(tmp_path / "own.yaml")
    assert complaint in str(caught.value)
    assert "\n" not in str(caught.value)
