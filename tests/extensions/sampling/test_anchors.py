"""Anchors: what is said of a recogniser from few clips, against what `aggregate` says from all."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import speech_robust_bench as srb
from speech_robust_bench.builders.suites import load as load_suite
from speech_robust_bench.cli.main import main
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.extensions.sampling import anchors
from speech_robust_bench.scoring import aggregate
from speech_robust_bench.scoring.runs import open_run

CLIPS, WORDS = 50, 10
CATEGORY = {"noise_sev1": "noise_env", "noise_sev3": "noise_env", "rir_sev3": "spatial", "gaussian_sev2": "noise_white"}
MODELS = {"a": 0.8, "b": 1.0, "c": 1.3, "d": 1.6, "new": 1.2}  # how many more errors one makes than another


def lost_words() -> dict[str, dict[str, np.ndarray]]:
    """Words lost by model, config and clip. A cell that is hard is hard for all of them."""
    rng = np.random.default_rng(0)
    hard = {config: rng.gamma(0.5, 0.4, CLIPS) for config in CATEGORY}
    lost: dict[str, dict[str, np.ndarray]] = {}
    for model, factor in MODELS.items():
        lost[model] = {"clean": rng.binomial(WORDS, 0.03 * factor, CLIPS)}
        lost[model] |= {c: rng.binomial(WORDS, np.clip(factor * h, 0, 1)) for c, h in hard.items()}
    return lost


def write_run(
    folder: Path, lost: dict[str, np.ndarray], only: dict[str, list[str]] | None = None, label: str = ""
) -> Path:
    """A run folder; `only` names the clips of each config where it is not all of them."""
    folder.mkdir(parents=True)
    entries = {}
    for level, counts in lost.items():
        config, texts = f"en-x_{level}", " ".join(["word"] * WORDS)
        lines = [
            {"id": f"c{clip:02d}", "text": texts, "pred_text": " ".join(["word"] * (WORDS - int(count)))}
            for clip, count in enumerate(counts)
        ]
        lines = [line for line in lines if not only or level == "clean" or line["id"] in only.get(config, ())]
        if not lines:
            continue
        (folder / f"{config}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        entry = {"category": CATEGORY.get(level, "clean"), "source": None if level == "clean" else "en-x_clean"}
        entries[config] = entry | ({"suite": label} if label and level != "clean" else {})
    (folder / "run.json").write_text(json.dumps({"model": folder.name, "data": "nowhere", "configs": entries}))
    return folder


def anchors_file(cells: dict[str, dict[str, float]]) -> dict:
    """A file of anchors on the demo corpus."""
    about = {"version": "1", "normaliser": "srb-paper-1", "clean": "en-demo_clean", "models": ["a"]}
    return {**about, "configs": sorted(cells), "clips_sha256": "", "cells": cells}


def change(run: Path, edit) -> None:
    """Change the run.json of a run folder."""
    about = json.loads((run / "run.json").read_text())
    edit(about["configs"])
    (run / "run.json").write_text(json.dumps(about))


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    for model, lost in lost_words().items():
        write_run(folder / model, lost)
    return folder


@pytest.fixture(scope="module")
def cells(runs) -> anchors.CellErrors:
    return anchors.cell_errors([open_run(runs / model) for model in MODELS])


def summary(run: Path) -> aggregate.Summary:
    return aggregate.summarise(aggregate.score(open_run(run).counts(), replicates=0))["en"]


def test_the_scores_are_those_of_aggregate(runs, cells):
    for model, by_category in zip(cells.models, cells.by_category, strict=True):
        told = summary(runs / model)
        assert by_category.tolist() == pytest.approx([told.categories[c].values["nwerd"] for c in cells.averaged])
        assert by_category.mean() == pytest.approx(told.overall.values["nwerd"])


def test_from_all_cells_it_says_what_is_true(cells):
    others, new = cells.of([0, 1, 2, 3]), 4
    everything = anchors.Drawn(np.arange(cells.errors[0].size), np.ones(cells.errors[0].size))
    said = anchors.estimate(others, everything, cells.errors[new].ravel(), cells.clean[new])
    assert said.by_category.tolist() == pytest.approx(cells.by_category[new].tolist())
    assert said.error == 0


def test_it_is_nearly_unbiased_and_its_intervals_hold(cells):
    truth = cells.by_category.mean(axis=1)
    estimates = anchors.left_out(cells, 60, draws=60)
    off = np.array([[said.average for said in row] for row in estimates]) - truth
    width = np.array([[said.error for said in row] for row in estimates])
    assert abs(off.mean()) < 0.15 * np.abs(off).mean() + 3 * off.std() / np.sqrt(off.size)
    for held in (np.abs(off) < anchors.Z * width).mean(axis=0):  # of each model
        assert 0.85 < held <= 1


def test_it_is_nearer_than_as_many_clips_by_chance(cells):
    truth, rng = cells.by_category.mean(axis=1), np.random.default_rng(1)
    estimates = anchors.left_out(cells, 60, draws=60)
    off = np.array([[said.average for said in row] for row in estimates]) - truth
    chance = []
    for _ in range(60):
        parts = [rng.choice(CLIPS, 60 // len(cells.configs), replace=False) for _ in cells.configs]
        for model in range(len(cells.models)):
            lost = [cells.lost[model, c, part].sum() / cells.words[part].sum() for c, part in enumerate(parts)]
            chance.append(float((cells.members @ (cells.points * np.array(lost))).mean()) - truth[model])
    assert np.abs(off).mean() < 0.75 * np.abs(chance).mean()


def test_no_chance_is_above_one_and_as_many_are_drawn(cells):
    for count in (20, 150):
        drawn = anchors.draw(cells, count, np.random.default_rng(0))
        assert len(drawn.cells) == pytest.approx(count, abs=1)
        assert (drawn.chances <= 1).all()
        assert len(set(drawn.cells.tolist())) == len(drawn.cells)


def test_from_the_choice_to_the_prediction(runs, tmp_path, capsys):
    known, file = [str(runs / model) for model in "abcd"], tmp_path / "anchors.json"
    assert main(["anchors", *known, "--clips", "80", "--suite", str(file)]) == 0
    assert "each of 4 runs predicted from the others" in capsys.readouterr().out
    suite = load_suite(str(file))
    assert suite.configs([])[0] == "en-x_clean"
    assert sum(map(len, suite.about.cells.values())) == pytest.approx(80, abs=1)
    only = {config: list(clips) for config, clips in suite.about.cells.items()}
    new = write_run(tmp_path / "new", lost_words()["new"], only, suite.label)
    assert main(["anchors", *known, "--suite", str(file), "--predict", str(new), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    truth = summary(runs / "new").overall.values["nwerd"]
    assert abs(said["average"]["nwerd"] - truth) < 3 * said["average"]["standard_error"]
    assert main(["anchors", *known, "--suite", str(file), "--predict", str(new)]) == 0
    assert "sfx" in capsys.readouterr().out.split("not in this average:")[1]
    by_python = srb.predict_from_anchors(new, known, file)
    assert by_python.scores["average"] == (said["average"]["nwerd"], said["average"]["standard_error"])
    off = srb.choose_anchors(known, tmp_path / "again.json", srb.AnchorOptions(clips=80))
    assert set(off) == set("abcd")
    assert (tmp_path / "again.json").read_bytes() == file.read_bytes()
    assert main(["score", str(new)]) == 2  # their mean is no score
    assert "srb anchors" in capsys.readouterr().err


def test_a_run_takes_the_clips_that_the_file_names(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cells = {"en-demo_bass_sev1": {"en-reader-01": 0.5}, "en-demo_gain_sev2": {"en-reader-01": 0.5}}
    about = anchors_file(cells)
    Path("anchors.json").write_text(json.dumps(about))
    build = ["build", "en-demo_clean", *cells, "--corpus", "en-demo", "--limit", "8", "--workers", "1"]
    assert main(build) == 0
    command = ["run", "--model", "cmd:echo {}", "--name", "echo", "--quiet"]
    assert main([*command, "--suite", "anchors.json"]) == 0
    entries = json.loads(Path("runs/echo/run.json").read_text())["configs"]
    assert {name: entry["rows"] for name, entry in entries.items()} == {
        "en-demo_clean": 8,
        "en-demo_bass_sev1": 1,
        "en-demo_gain_sev2": 1,
    }
    assert entries["en-demo_bass_sev1"]["suite"] == "anchors-1"
    assert main(["ls", "--suite", "anchors.json"]) == 0
    # more clips of it do not make its mean a score, until it has all
    assert main([*command, "--limit", "2"]) == 0
    entries = json.loads(Path("runs/echo/run.json").read_text())["configs"]
    assert entries["en-demo_bass_sev1"]["suite"] == "anchors-1"
    for words in (["score", "runs/echo"], ["diagnose", "runs/echo"], ["compare", "runs/echo", "runs/echo"]):
        assert main(words) == 2


@pytest.mark.parametrize(
    "wrong",
    [
        {"clean": "en-demo_bass_sev1"},
        {"cells": {}},
        {"cells": {"en-demo_b*": {"en-reader-01": 0.5}}},
        {"cells": {"en-demo_clean": {"en-reader-01": 0.5}}},
        {"cells": {"es-demo_bass_sev1": {"en-reader-01": 0.5}}},
        {"cells": {"en-demo_bass_sev1": {}}},
        {"cells": {"en-demo_bass_sev1": {"en-reader-01": 1e400}}},
        {"cells": {"en-demo_bass_sev1": {"en-reader-01": 10**400}}},
        {"cells": {"en-demo_bass_sev1": {"en-reader-01": 0}}},
        {"cells": {"en-demo_bass_sev1": {"elsewhere": 0.5}}},
    ],
)
def test_a_file_that_cannot_be_is_one_line(wrong, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    cells = {"en-demo_bass_sev1": {"en-reader-01": 0.5}}
    about = anchors_file(cells)
    Path("anchors.json").write_text(json.dumps({**about, "pool": 3, **wrong}))
    command = ["run", "--model", "cmd:echo {}", "--name", "echo", "--corpus", "en-demo", "--limit", "8", "--quiet"]
    assert main([*command, "--suite", "anchors.json"]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_mistakes_are_one_line(runs, tmp_path, capsys):
    known, file = [str(runs / model) for model in "abcd"], tmp_path / "anchors.json"
    assert main(["anchors", *known[:2], "--suite", str(file)]) == 2
    assert main(["anchors", *known[:2], known[0], "--suite", str(file)]) == 2
    assert main(["anchors", *known, "--suite", "lite", "--predict", known[0]]) == 2
    assert main(["anchors", *known, "--suite", str(file), "--clean", "es_clean"]) == 2
    assert main(["anchors", *known, "--suite", str(file), "--clips", "40"]) == 2
    assert main(["anchors", *known, "--suite", str(tmp_path / "anchors")]) == 2
    assert main(["anchors", *known, "--suite", str(file), "--predict", known[0]]) == 2  # there is no file yet
    assert main(["anchors", *known, "--suite", str(file), "--predict", known[0], "--clips", "50"]) == 2
    file.write_text('{"cells": {"en-x_noise_sev1": {"c01": "often"}}}')
    assert main(["anchors", *known, "--suite", str(file), "--predict", known[0]]) == 2
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 9
    assert all(line.startswith("srb anchors: ") for line in said)


def test_what_does_not_belong_together_is_refused(runs, cells, tmp_path):
    with pytest.raises(UserError, match="1 clips of perturbed speech"):
        anchors.from_suite(SimpleNamespace(cells={"en-x_noise_sev1": {"c01": 0.5}}), cells)
    with pytest.raises(UserError, match="c99"):
        anchors.from_suite(SimpleNamespace(cells={"en-x_noise_sev1": {"c99": 0.5}}), cells)
    lost = lost_words()["new"]
    shorter = write_run(tmp_path / "shorter", {config: counts[:-1] for config, counts in lost.items()})
    with pytest.raises(UserError, match="other clips"):
        anchors.cell_errors([*(open_run(runs / model) for model in "abc"), open_run(shorter)])
    fewer = write_run(tmp_path / "fewer", {"clean": lost["clean"], "noise_sev1": lost["noise_sev1"]})
    with pytest.raises(UserError, match="the same configs"):
        anchors.cell_errors([*(open_run(runs / model) for model in "abc"), open_run(fewer)])


@pytest.fixture
def predicted(runs, tmp_path):
    """Copies of four known runs, a file of their anchors, and a run on these."""
    for model in "abcd":
        shutil.copytree(runs / model, tmp_path / model)
    known, file = [tmp_path / model for model in "abcd"], tmp_path / "anchors.json"
    srb.choose_anchors(known, file, srb.AnchorOptions(clips=80))
    suite = load_suite(str(file))
    only = {config: list(clips) for config, clips in suite.about.cells.items()}
    return known, file, write_run(tmp_path / "new", lost_words()["new"], only, suite.label)


def test_a_run_on_other_data_is_refused(predicted):
    known, file, new = predicted
    for run, digest in ((known[0], "1"), (new, "2")):
        change(run, lambda configs, digest=digest: configs["en-x_noise_sev1"].update(content_sha256=digest * 64))
    with pytest.raises(UserError, match="other data"):
        srb.predict_from_anchors(new, known, file)


@pytest.mark.parametrize("config", ["en-x_clean", "en-x_noise_sev1"])
def test_a_run_with_other_references_is_refused(config, predicted):
    known, file, new = predicted
    lines = (new / f"{config}.jsonl").read_text().replace('"text": "word ', '"text": "one more word ')
    (new / f"{config}.jsonl").write_text(lines)
    with pytest.raises(UserError, match="other references"):
        srb.predict_from_anchors(new, known, file)


def test_configs_that_came_later_change_nothing(predicted):
    """The anchors stand for the configs that there were when they were drawn."""
    known, file, new = predicted
    before = srb.predict_from_anchors(new, known, file)
    for run in known:
        (run / "en-x_rir_sev4.jsonl").write_text((run / "en-x_rir_sev3.jsonl").read_text())
        change(run, lambda configs: configs.update({"en-x_rir_sev4": configs["en-x_rir_sev3"]}))
    assert srb.predict_from_anchors(new, known, file) == before


def test_runs_with_fewer_clips_are_refused(predicted):
    known, file, new = predicted
    named = {clip for clips in load_suite(str(file)).about.cells.values() for clip in clips}
    spare = next(clip for clip in (f"c{number:02d}" for number in range(CLIPS)) if clip not in named)
    for path in (path for run in known for path in run.glob("*.jsonl")):
        lines = path.read_text().splitlines(keepends=True)
        path.write_text("".join(line for line in lines if f'"{spare}"' not in line))
    with pytest.raises(UserError, match="other clips or references"):
        srb.predict_from_anchors(new, known, file)


def test_a_known_run_is_not_predicted_and_a_file_is_not_replaced(predicted):
    known, file, _ = predicted
    with pytest.raises(UserError, match="one of the runs"):
        srb.predict_from_anchors(known[0], known[1:], file)
    content = file.read_bytes()
    with pytest.raises(UserError, match="there already"):
        srb.choose_anchors(known, file, srb.AnchorOptions(clips=90))
    assert file.read_bytes() == content


def test_recognisers_without_an_error_are_no_trouble(tmp_path):
    perfect = {config: np.zeros(CLIPS, int) for config in ("clean", *CATEGORY)}
    for model in "abc":
        write_run(tmp_path / model, perfect)
    assert main(["anchors", *(str(tmp_path / model) for model in "abc"), "--suite", str(tmp_path / "a.json")]) == 2
    assert (
        main(["anchors", *(str(tmp_path / m) for m in "abc"), "--suite", str(tmp_path / "a.json"), "--clips", "60"])
        == 0
    )


def test_only_what_is_made_from_the_same_clean_clips_counts(tmp_path):
    """Values of one's own and recordings are left out; of two corpora one is named."""
    lost = lost_words()
    for model in "abc":
        folder = write_run(tmp_path / model, lost[model])
        about = json.loads((folder / "run.json").read_text())
        lines = (folder / "en-x_noise_sev1.jsonl").read_text()
        for config, category, source in (
            ("en-x_noise_snr-7", "noise_env", "en-x_clean"),
            ("en_accent", "accent", None),
            ("en-y_noise_sev1", "noise_env", "en-y_clean"),
        ):
            (folder / f"{config}.jsonl").write_text(lines)
            about["configs"][config] = {"category": category, "source": source}
        (folder / "run.json").write_text(json.dumps(about))
    runs = [open_run(tmp_path / model) for model in "abc"]
    with pytest.raises(UserError, match="choose one with --clean"):
        anchors.cell_errors(runs)
    assert sorted(anchors.cell_errors(runs, clean="en-x_clean").configs) == sorted(
        f"en-x_{level}" for level in CATEGORY
    )
