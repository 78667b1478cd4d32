"""Rank stability: Spearman against scipy, random parts, and the recommended subset against the paper's table."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest
from msgspec import to_builtins
from scipy import stats

from speech_robust_bench.builders.scenarios import find
from speech_robust_bench.builders.suites import load
from speech_robust_bench.cli.main import main
from speech_robust_bench.core.names import parse
from speech_robust_bench.extensions.sampling.stability import (
    PartStability,
    enough,
    of_parts,
    sizes_of,
    spearman,
    subsets,
)

ROOT = Path(__file__).parents[3]


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
    rows = [PartStability(size, 9, 1, low, 1) for size, low in ((1, 0.5), (2, 0.96), (5, 0.9), (9, 1.0))]
    assert enough(rows) == 9
    assert enough(rows, 0.9) == 2
    assert enough(rows[:1]) is None


def test_a_subset_is_judged_without_each_model():
    """One model far behind makes any column look right; without it only the first column is."""
    scores = np.array([[1.0, 3.0], [2.0, 2.0], [3.0, 1.5], [90.0, 90.0]])
    found = {columns: rho for rho, columns in subsets(scores, 1)}
    assert spearman(scores[:, 1].tolist(), scores.mean(axis=1).tolist()) > 0
    assert found[(1,)] < found[(0,)]


def test_the_fast_subset_is_what_the_script_finds(script):
    stored = load("fast").about
    _, scores, _ = script.table1("en")
    best = script.best_of_each_size(scores)
    for kept, now in zip(stored.measured["best_of_each_size"], best, strict=True):
        assert {key: kept[key] for key in now} == now
    categories = list(stored.configs)
    assert stored.configs == {category: script.choose_configs(category) for category in categories}
    part = scores[:, [script.AVERAGED.index(c) for c in categories]].mean(axis=1)
    measured = stats.spearmanr(part, np.nanmean(scores, axis=1)).statistic
    assert stored.measured["spearman"] == pytest.approx(measured, abs=0.001)
    assert measured > 0.95


def test_the_simulation_is_what_was_stored(script):
    stored = load("fast").about
    row = next(r for r in stored.simulated["rows"] if r["deviation"] == 0.2 and r["clips"] == 200)
    rng = np.random.default_rng(5)
    again = np.mean([script.simulate(stored.configs, 0.2, 200, rng) for _ in range(60)])
    assert again == pytest.approx(row["spearman_mean"], abs=0.03)


def test_every_config_of_it_can_be_built():
    for configs in load("fast").about.configs.values():
        for config in configs:
            name = parse(f"en_{config}")
            assert name.severity in find(name.scenario).levels


def test_srb_ls_shows_it(capsys):
    assert main(["ls", "--suite", "fast"]) == 0
    shown = capsys.readouterr().out
    assert f"{load('fast').about.measured['spearman']:.2f}" in shown
    assert "srb run --suite fast" in shown
    assert main(["ls", "--suite", "fast", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == to_builtins(load("fast").about)
    assert main(["ls", "--suite", "tiny"]) == 2
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
    assert "needed for a rho of 0.95:" in capsys.readouterr().out
    assert main(["stability", *runs[:2]]) == 2
    assert "needs three recognisers or more, not 2" in capsys.readouterr().err


WORDS = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"]


def said_with(wrong: int) -> str:
    return " ".join(["x"] * wrong + WORDS[wrong:])


def test_by_nwerd_the_clean_errors_and_the_difficulty_count(write_run, capsys):
    """`even` has more errors everywhere and loses least: last by WER, first by NWERD. Worked out by hand below."""
    said = [" ".join(WORDS)] * 6
    wrong = {"even": (5, 6, 6), "good": (0, 2, 1), "poor": (1, 4, 5)}
    runs = []
    for model, (clean, noise, rir) in wrong.items():
        texts = {"en_clean": clean, "en_noise_sev3": noise, "en_rir_sev2": rir}
        runs.append(write_run(model, {name: [said_with(count)] * 6 for name, count in texts.items()}, said))
    from speech_robust_bench.extensions.sampling.stability import ranked_scores
    from speech_robust_bench.scoring.difficulty import load as load_table
    from speech_robust_bench.scoring.runs import open_run

    opened = [open_run(run) for run in runs]
    by_wer, by_werd, by_nwerd = (ranked_scores(opened, by) for by in ("wer", "werd", "nwerd"))
    assert by_wer.overall.argsort().tolist() == [1, 2, 0]
    assert by_werd.configs == by_nwerd.configs == ["en_noise_sev3", "en_rir_sev2"]
    assert by_werd.of_configs.tolist() == [[10, 10], [20, 10], [30, 40]]
    levels = [load_table().of(config) for config in by_nwerd.configs]
    expected = [
        [100 * d / level for d, level in zip(row, levels, strict=True)] for row in ((10, 10), (20, 10), (30, 40))
    ]
    assert by_nwerd.of_configs == pytest.approx(np.array(expected))
    everything = np.arange(6)
    assert by_nwerd.of_clips(everything) == pytest.approx(by_nwerd.overall)
    assert by_werd.of_clips(everything[:2]) == pytest.approx([10, 15, 35])
    assert main(["stability", *map(str, runs), "--measure", "nwerd", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["by"] == "nwerd"
    assert main(["stability", *map(str, runs), "--measure", "nwerd"]) == 0
    assert "by NWERD" in capsys.readouterr().out


def test_probes_are_ranked_across_their_heads(write_run, capsys):
    said = [" ".join(WORDS)] * 4
    scores = {("medium", "one"): 1, ("medium", "two"): 2, ("medium", "three"): 3}
    scores |= {("small", "one"): 2, ("small", "two"): 5, ("small", "three"): 4}
    runs = []
    for (head, upstream), wrong in scores.items():
        folder = write_run(
            f"{head}-{upstream}", {"en-x_clean": said, "en-x_aeq_noise_sev1": [said_with(wrong)] * 4}, said
        )
        about = json.loads((folder / "run.json").read_text())
        about["options"] = {"upstream": upstream, "head": {"size": head}, "train_hours_asked": None}
        (folder / "run.json").write_text(json.dumps(about))
        runs.append(str(folder))
    assert main(["stability", *runs, "--measure", "werd", "--json"]) == 0
    settings = json.loads(capsys.readouterr().out)["settings"]
    assert [(one["setting"], one["spearman"]) for one in settings] == [
        ("medium head, all data", pytest.approx(1)),
        ("small head, all data", pytest.approx(0.5)),
    ]
    assert settings[1]["scores"] == {"one": 20, "two": 50, "three": 40}
