"""YAML from outside is read within bounds: aliases, merge keys, long numbers and endless files end in one line."""

import os
import time

import pytest

from speech_robust_bench.builders.custom import load_table
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.untrusted_files import MOST_YAML_BYTES, read_text, read_yaml
from speech_robust_bench.models.run_plan import parse_models


def billion_laughs(last):
    """Nine levels of ten aliases each: a billion values in a few lines."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    return "\n".join([*lines, last]) + "\n"


def merge_keys():
    """The same with mappings that are merged, which a loader expands while it reads."""
    lines = ["a0: &a0 {x: 1}"]
    lines += [f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 10)}]}}" for n in range(1, 9)]
    return "\n".join(lines) + "\n"


BOMBS = {
    "aliases": billion_laughs("end: *a8"),
    "merge keys": merge_keys(),
    "a list in itself": "a: &a [1, *a]\n",
    "a number of many parts": "a: 1" + ":1" * 90_000 + "\n",
    "deep nesting": "[" * 90_000,
    "a large file": "a: b\n" + "#" * MOST_YAML_BYTES,
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_one_line_within_seconds(tmp_path, name):
    path = tmp_path / "file.yaml"
    path.write_text(BOMBS[name])
    start = time.process_time()
    with pytest.raises(UserError, match=r"file\.yaml") as refusal:
        read_yaml(path)
    assert time.process_time() - start < 10
    assert len(str(refusal.value)) < 500


@pytest.mark.parametrize("tagged", ['!!int ""', "!!timestamp x", "2001-99-99", "{[a]: b}", "\x00"])
def test_values_that_the_loader_stumbles_over_are_one_line(tmp_path, tagged):
    path = tmp_path / "file.yaml"
    path.write_text(f"a: {tagged}\n")
    with pytest.raises(UserError, match="is not YAML"):
        read_yaml(path)


def test_aliases_within_bounds_are_read(tmp_path):
    path = tmp_path / "file.yaml"
    path.write_text("common: &c {p: 1}\nrows: [{<<: *c, q: 2}, *c]\n")
    assert read_yaml(path)["rows"] == [{"p": 1, "q": 2}, {"p": 1}]


def test_scenario_and_model_files_are_read_within_the_bounds(tmp_path):
    scenarios, models = tmp_path / "scenarios.yaml", tmp_path / "models.yaml"
    scenarios.write_text(billion_laughs("scenarios: [{name: a, transform: BitCrush, severities: *a8}]"))
    models.write_text(billion_laughs("models: [{spec: 'hf:x', name: *a8}]"))
    with pytest.raises(UserError, match="aliases"):
        load_table(scenarios)
    with pytest.raises(UserError, match="aliases"):
        parse_models(models)


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="no such device here")
def test_a_device_without_an_end_is_larger_than_any_table():
    with pytest.raises(UserError, match="/dev/zero: it is larger than 1000 bytes"):
        read_text("/dev/zero", 1000)
