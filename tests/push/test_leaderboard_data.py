"""The leaderboard's data: verified files only, the same significance as `srb compare`, and the paper's rows apart."""

from __future__ import annotations

import csv
import json
import time
from pathlib import Path

import pytest
from built_data import make_built
from fake_runs import make_run
from many_models import write_models

from srb.builders.errors import UserError
from srb.metrics import compare as pairs
from srb.metrics.aggregate import ADVERSARIAL, CATEGORIES
from srb.metrics.runs import open_run
from srb.push.leaderboard import board, early, views

CONFIGS = ["en_clean", "en_noise_sev1", "en_noise_sev3", "en_gaussian_sev2", "en_rir_sev2", "en_silence"]


@pytest.fixture
def verified(srb, tmp_path):
    """Two models submitted and verified by the commands themselves."""
    data = make_built(tmp_path / "srb", CONFIGS, clips=40)
    for name, rate in (("good", 0.1), ("poor", 0.4)):
        run = make_run(tmp_path / "runs" / name, data, name, rate)
        facts = ("--params-m", 39, "--model-id", f"acme/{name}")
        srb("submit", run, "--data", data, "--dry-run", "--out", tmp_path / "sent" / name, *facts)
        srb("verify", tmp_path / "sent" / name, "--data", data, "--out", tmp_path / "verified")
    return tmp_path / "verified"


def test_the_ranking_is_that_of_the_results(verified, tmp_path):
    made = board.load(verified)
    rows = made.rows("en")
    assert [row.entry.name for row in rows] == ["good", "poor"]
    said = json.loads((tmp_path / "sent" / "poor" / "results.json").read_text())["languages"]["en"]
    assert rows[1].score is not None
    assert rows[1].score[0] == pytest.approx(said["overall"]["nwerd"]["value"], abs=0.01)
    assert rows[1].clean == pytest.approx(said["clean"]["en_clean"]["wer"]["value"], abs=0.01)
    cell = rows[1].cells["noise_env"]
    assert cell == pytest.approx(_flat(said["categories"]["noise_env"]["nwerd"]), abs=0.01)


def _flat(score):
    return [score["value"], *score["interval"]]


def test_significance_is_that_of_srb_compare(verified, tmp_path):
    """The stored replicates give what the paired bootstrap over the predictions gives."""
    runs = [open_run(tmp_path / "runs" / name) for name in ("good", "poor")]
    speech = [config for config in CONFIGS if config != "en_silence"]
    theirs = {row.name: row for row in pairs.compare(*(run.counts(speech) for run in runs))}
    made = board.load(verified)
    ours = {row.name: row for row in board.compare([made.find("good"), made.find("poor")], "en")}
    assert set(ours) == set(theirs) >= {"noise_env", "overall"}
    for name, row in ours.items():
        assert row.interval == pytest.approx(theirs[name].interval, abs=1e-3)
        assert row.p == pytest.approx(theirs[name].p_corrected)
        assert row.better() == {"a": "good", "b": "poor", None: None}[theirs[name].better()]
    assert ours["overall"].better() == "good"


def test_an_edited_file_is_left_out(verified):
    path = verified / "poor.json"
    path.write_text(path.read_text().replace('"failed": 0', '"failed": 1'))
    made = board.load(verified)
    assert [entry.name for entry in made.entries] == ["good"]
    assert "poor.json" in made.problems[0]


def test_a_results_file_that_nobody_verified_is_left_out(verified, tmp_path):
    text = (tmp_path / "sent" / "poor" / "results.json").read_text()
    (verified / "poor.json").write_text(text)
    assert [entry.name for entry in board.load(verified).entries] == ["good"]


def test_replicates_of_another_file_are_refused(verified):
    (verified / "poor.npz").write_bytes((verified / "good.npz").read_bytes())
    with pytest.raises(UserError, match="does not belong"):
        _ = board.load(verified).find("poor").draws


def test_filters(tmp_path):
    made = board.load(write_models(tmp_path / "verified", models=20, configs=60))
    small = made.rows("en", size="under 100 M")
    assert small
    assert all(row.entry.params_m in (39, 74) for row in small)
    assert [row.entry.name for row in made.rows("en", text="ER-007")] == ["recogniser-007"]
    by_noise = made.rows("en", categories=["noise_white"])
    values = [row.score[0] for row in by_noise if row.score]
    assert values == sorted(values)
    assert list(by_noise[0].cells) == ["noise_white"]
    with pytest.raises(UserError):
        made.find("nobody")


def test_a_language_has_its_own_models_and_categories(tmp_path):
    made = board.load(write_models(tmp_path / "verified", models=20, configs=60))
    assert made.languages == ["en", "es"]
    assert {row.entry.name for row in made.rows("es")} == {f"recogniser-{n:03d}" for n in range(0, 20, 4)}
    assert made.categories("es") == ["noise_white"]
    assert list(board.grid(made.find("recogniser-004"), "es")) == ["noise_white"]
    assert "was not run in this language" in views.model(made.find("recogniser-001"), "es")
    pair = [made.find("recogniser-000"), made.find("recogniser-004")]
    assert {row.name for row in board.compare(pair, "es")} == {"noise_white", "overall"}
    assert board.compare([made.find("recogniser-000"), made.find("recogniser-001")], "es") == []


def test_two_hundred_models_are_read_and_drawn_in_under_two_seconds(tmp_path):
    folder = write_models(tmp_path / "verified", models=200, configs=114)
    best = min(_seconds(folder) for _ in range(3))
    assert best < 2


def _seconds(folder):
    begin = time.perf_counter()
    made = board.load(folder)
    assert len(made.entries) == 200
    assert len(made.entries[1].made["configs"]) == 114
    views.ranking(made.rows("en"))
    return time.perf_counter() - begin


def test_a_leaderboard_without_models_has_no_early_rows():
    assert early.fragment("", "", views.ranking([])) == b""


def test_the_papers_rows_stand_as_published():
    with (board.DATA / "paper_table1.csv").open() as file:
        table = list(csv.DictReader(file))
    rows = board.published()
    assert [row.average for row in rows] == [float(line["avg"]) for line in table]
    assert {row.model for row in rows} >= {"whisper-large-v2"}
    page = views.published("en")
    assert "As published" in page
    assert "Not verified here" in page


def test_categories_are_those_of_the_metrics():
    assert tuple(board.PAPER) == tuple(CATEGORIES)
    assert tuple(board.ADVERSARIAL) == tuple(ADVERSARIAL)


def test_whatever_a_file_says_is_escaped(tmp_path):
    folder = write_models(tmp_path / "verified", models=2, configs=60)
    from srb.push.leaderboard.files import digest

    path = folder / "recogniser-000.json"
    made = json.loads(path.read_text())
    evil = "<script>alert(1)</script>"
    made["model"].update(name=evil, licence=evil, training_data=evil, url=f'https://x/"><img src=x onerror={evil}>')
    made.update(reproduce=evil, revision=evil, predictions=f'https://x/"{evil}')
    made["sha256"] = digest(made)
    path.write_text(json.dumps(made))
    loaded = board.load(folder)
    entry = loaded.find(evil)
    for text in (
        views.ranking(loaded.rows("en")),
        views.model(entry, "en"),
        views.comparison(board.compare(loaded.entries, "en")),
    ):
        assert "<script" not in text
        assert "<img" not in text


def test_different_scorings_are_not_mixed(tmp_path):
    folder = write_models(tmp_path / "verified", models=2, configs=60)
    from srb.push.leaderboard.files import digest

    path = folder / "recogniser-000.json"
    made = json.loads(path.read_text())
    made["scoring"]["normaliser"] = "whisper-en"
    made["sha256"] = digest(made)
    path.write_text(json.dumps(made))
    with pytest.raises(UserError, match="different scorings"):
        board.load(folder)


def test_no_folder_says_how_to_make_one():
    with pytest.raises(UserError, match="srb verify SUBMISSION --out"):
        board.load(Path("nowhere"))
