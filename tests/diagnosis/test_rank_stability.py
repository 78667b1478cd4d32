"""Rank stability: Spearman against scipy, random parts, and the recommended subset against the paper's table."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from srb.builders.scenarios import find
from srb.cli.main import main
from srb.core.names import parse
from srb.diagnosis.rank_stability import Stability, enough, of_parts, sizes_of, spearman, subsets
from srb.diagnosis.suites import load

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("fast_subset", ROOT / "benchmarks/fast_subset.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_spearman_is_scipys_ties_and_all():
    rng = np.random.default_rng(0)
    for _ in range(50):
        one, other = rng.integers(0, 6, (2, 9))
        assert spearman(one, other) == pytest.approx(stats.spearmanr(one, other).statistic)
    assert spearman([1, 1], [1, 2]) == 0


def test_more_clips_keep_the_ranking_better():
    rng = np.random.default_rng(0)
    lengths = np.full((6, 2000), 20)
    errors = rng.binomial(20, np.linspace(0.1, 0.15, 6)[:, None], lengths.shape)
    found = of_parts(errors, lengths, sizes_of(2000), trials=60)
    means = [one.mean for one in found]
    assert found[-1].mean == found[-1].low == found[-1].same_order == 1
    assert means[0] < 0.5 < 0.9 < means[-2]
    assert enough(found, 0.95) in (1000, 2000, 500)


def test_enough_is_where_every_larger_size_does_too():
    rows = [Stability(size, 9, 1, low, 1) for size, low in ((1, 0.5), (2, 0.96), (5, 0.9), (9, 1.0))]
    assert enough(rows) == 9
    assert enough(rows, 0.9) == 2
    assert enough(rows[:1]) is None


def test_a_subset_is_judged_without_each_model():
    """One model far behind makes any column look right; without it only the first column is."""
    scores = np.array([[1.0, 3.0], [2.0, 2.0], [3.0, 1.5], [90.0, 90.0]])
    found = {columns: rho for rho, columns in subsets(scores, 1)}
    assert spearman(scores[:, 1].tolist(), scores.mean(axis=1).tolist()) > 0
    assert found[(1,)] < found[(0,)]


def test_the_fast_subset_is_what_the_script_finds_on_the_papers_table(script):
    stored = load("fast").about
    _, scores, _ = script.table1("en")
    best = script.best_of_each_size(scores)
    for kept, now in zip(stored["measured"]["best_of_each_size"], best, strict=True):
        assert {key: kept[key] for key in now} == now
    categories = list(stored["configs"])
    assert stored["configs"] == {category: script.choose_configs(category) for category in categories}
    part = scores[:, [script.AVERAGED.index(c) for c in categories]].mean(axis=1)
    measured = stats.spearmanr(part, np.nanmean(scores, axis=1)).statistic
    assert stored["measured"]["spearman"] == pytest.approx(measured, abs=0.001)
    assert measured > 0.95


def test_the_simulation_is_what_was_stored(script):
    stored = load("fast").about
    row = next(r for r in stored["simulated"]["rows"] if r["deviation"] == 0.2 and r["clips"] == 200)
    rng = np.random.default_rng(5)
    again = np.mean([script.simulate(stored["configs"], 0.2, 200, rng) for _ in range(60)])
    assert again == pytest.approx(row["spearman_mean"], abs=0.03)


def test_every_config_of_it_can_be_built():
    for configs in load("fast").about["configs"].values():
        for config in configs:
            name = parse(f"en_{config}")
            assert name.severity in find(name.scenario).levels


def test_srb_ls_shows_it(capsys):
    assert main(["ls", "--subset", "fast"]) == 0
    shown = capsys.readouterr().out
    assert f"{load('fast').about['measured']['spearman']:.2f}" in shown
    assert "srb run --suite fast" in shown
    assert main(["ls", "--subset", "fast", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == load("fast").about
    assert main(["ls", "--subset", "tiny"]) == 2
    assert "there is no suite 'tiny'" in capsys.readouterr().err


def test_the_command_on_runs(write_run, capsys):
    said = ["a b c d e f"] * 12
    runs = []
    for model, wrong in (("good", 1), ("fair", 2), ("poor", 4)):
        text = " ".join(["x"] * wrong + ["a", "b", "c", "d", "e", "f"][wrong:])
        runs.append(str(write_run(model, {"en-x_clean": said, "en-x_aeq_noise_sev1": [text] * 12}, said)))
    assert main(["stability", *runs, "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert [row["mean"] for row in made["clips"]] == [1] * len(made["clips"])
    assert main(["stability", *runs]) == 0
    assert "enough for 0.95" in capsys.readouterr().out
    assert main(["stability", *runs[:2]]) == 2
    assert "needs three recognisers or more, not 2" in capsys.readouterr().err
