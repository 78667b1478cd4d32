"""The leaderboard's data: verified files only, the same significance as `srb compare`, and the paper's rows apart."""

from __future__ import annotations

import csv
import json
import os
import shutil
from pathlib import Path

import pytest
from support.built_data import make_built
from support.fake_runs import make_run
from support.many_models import write_models

from speech_robust_bench.cli.main import main
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.result_records import digest
from speech_robust_bench.push.leaderboard import board, model_page, pages, site
from speech_robust_bench.scoring import compare as pairs
from speech_robust_bench.scoring.runs import open_run

CONFIGS = ["en_clean", "en_noise_sev1", "en_noise_sev3", "en_gaussian_sev2", "en_rir_sev2", "en_silence"]


def _submit_and_verify(folder: Path) -> None:
    """Two models submitted and verified by the commands themselves."""
    data = make_built(folder / "srb", CONFIGS, clips=40)
    for name, rate in (("good", 0.1), ("poor", 0.4)):
        run, sent = make_run(folder / "runs" / name, data, name, rate), folder / "sent" / name
        where = ["--data", str(data), "--out"]
        facts = ["--params-m", "39", "--model-id", f"acme/{name}"]
        assert main(["submit", str(run), "--dry-run", *where, str(sent), *facts]) == 0
        assert main(["verify", str(sent), *where, str(folder / "verified")]) == 0


@pytest.fixture
def verified(made_once, tmp_path):
    """The verified files of two models, in a folder of this test's own."""
    shutil.copytree(made_once("verified", _submit_and_verify), tmp_path, dirs_exist_ok=True)
    return tmp_path / "verified"


def test_the_ranking_is_that_of_the_results(verified, tmp_path):
    made = board.load(verified)
    rows = made.rows("en")
    assert [row.entry.name for row in rows] == ["acme/good", "acme/poor"]
    said = json.loads((tmp_path / "sent" / "poor" / "results.json").read_text())["languages"]["en"]
    assert rows[1].score is not None
    assert rows[1].score == pytest.approx(_flat(said["overall"]["nwer"]), abs=0.01)
    assert rows[1].average == pytest.approx(_flat(said["overall"]["nwerd"]), abs=0.01)
    assert rows[0].score[0] < rows[1].score[0]
    assert rows[1].clean == pytest.approx(said["clean"]["en_clean"]["wer"]["value"], abs=0.01)
    cell = rows[1].cells["noise_env"]
    assert cell == pytest.approx(_flat(said["categories"]["noise_env"]["nwerd"]), abs=0.01)


def _flat(score):
    return [score["value"], *score["interval"]]


def test_significance_is_that_of_srb_compare(verified, tmp_path):
    """Student's t from the stored replicates gives nearly the intervals of the predictions, and the same verdicts."""
    runs = [open_run(tmp_path / "runs" / name) for name in ("good", "poor")]
    speech = [config for config in CONFIGS if config != "en_silence"]
    theirs = {row.name: row for row in pairs.compare(*(run.counts(speech) for run in runs))}
    made = board.load(verified)
    ours = {row.name: row for row in board.compare([made.find("acme/good"), made.find("acme/poor")], "en")}
    assert set(ours) == set(theirs) >= {"noise_env", "overall"}
    for name, row in ours.items():
        low, high = theirs[name].interval
        assert row.interval == pytest.approx((low, high), abs=0.25 * (high - low))
        assert (row.p < 0.05) == (theirs[name].p_corrected < 0.05)
        assert row.better() == {"a": "acme/good", "b": "acme/poor", None: None}[theirs[name].better()]
    assert ours["overall"].better() == "acme/good"


def test_a_models_page_shows_other_normalisers(verified, tmp_path):
    pytest.importorskip("kaldialign")
    entry = board.load(verified).find("acme/poor")
    runs = open_run(tmp_path / "runs" / "poor")
    clean = runs.read("en_clean").count("open-asr-1").counts.rate
    assert entry.content.by_normaliser["open-asr-1"]["en"].clean == pytest.approx(clean, abs=0.01)
    page = str(model_page.model(entry, "en"))
    for normaliser in ("srb-paper-1", "srb-numbers-1", "open-asr-1"):
        assert f">{normaliser}</th>" in page


def test_an_edited_file_is_left_out(verified):
    path = verified / "acme--poor.json"
    path.write_text(path.read_text().replace('"failed": 0', '"failed": 1'))
    made = board.load(verified)
    assert [entry.name for entry in made.entries] == ["acme/good"]
    assert "acme--poor.json" in made.problems[0]


def test_a_results_file_that_nobody_verified_is_left_out(verified, tmp_path):
    text = (tmp_path / "sent" / "poor" / "results.json").read_text()
    (verified / "acme--poor.json").write_text(text)
    assert [entry.name for entry in board.load(verified).entries] == ["acme/good"]


@pytest.mark.parametrize("said", ["does not belong", "missing"])
def test_a_model_without_its_replicates_is_left_out(verified, said):
    (replicates,) = verified.glob("acme--poor--*.npz")
    replicates.unlink()
    if said == "does not belong":
        replicates.write_bytes(next(verified.glob("acme--good--*.npz")).read_bytes())
    made = board.load(verified)
    assert [entry.name for entry in made.entries] == ["acme/good"]
    assert said in made.problems[0]


def test_filters(tmp_path):
    made = board.load(write_models(tmp_path / "verified", models=20, configs=60))
    small = made.rows("en", size="under 100 M")
    assert small
    assert all(row.entry.params_m in (39, 74) for row in small)
    assert [row.entry.name for row in made.rows("en", text="ER-007")] == ["acme/recogniser-007"]
    by_noise = made.rows("en", categories=["noise_white"])
    values = [row.score[0] for row in by_noise if row.score]
    assert values == sorted(values)
    assert list(by_noise[0].cells) == ["noise_white"]
    with pytest.raises(UserError):
        made.find("nobody")


def test_a_language_has_its_own_models_and_categories(tmp_path):
    made = board.load(write_models(tmp_path / "verified", models=20, configs=60))
    assert made.languages == ["en", "es"]
    assert {row.entry.name for row in made.rows("es")} == {f"acme/recogniser-{n:03d}" for n in range(0, 20, 4)}
    assert made.categories("es") == ["noise_white"]
    assert list(board.grid(made.find("acme/recogniser-004"), "es")) == ["noise_white"]
    assert "was not run in this language" in model_page.model(made.find("acme/recogniser-001"), "es")
    pair = [made.find("acme/recogniser-000"), made.find("acme/recogniser-004")]
    assert {row.name for row in board.compare(pair, "es")} == {"noise_white", "overall"}
    assert board.compare([made.find("acme/recogniser-000"), made.find("acme/recogniser-001")], "es") == []


def test_a_leaderboard_without_models_says_so(tmp_path):
    (tmp_path / "verified").mkdir()
    assert b"No verified model" in site.files(board.load(tmp_path / "verified"))["index.html"]


def test_the_papers_rows_stand_as_published():
    with (board.DATA / "paper_table1.csv").open() as file:
        table = list(csv.DictReader(file))
    rows = board.published()
    assert [row.average for row in rows] == [float(line["avg"]) for line in table]
    assert {row.model for row in rows} >= {"whisper-large-v2"}
    page = pages.published("en")
    assert "measured by its authors" in page
    assert "have not been verified" in page


def _changed(folder, name, change):
    """Edit a verified file and seal it again, as somebody who may write to the folder could."""
    path = folder / f"acme--{name}.json"
    content = json.loads(path.read_text())
    change(content)
    content["sha256"] = digest(content)
    path.write_text(json.dumps(content))


def test_whatever_a_file_says_is_escaped(tmp_path):
    folder = write_models(tmp_path / "verified", models=2, configs=60)
    evil = "<script>alert(1)</script>"

    def spoil(content):
        content["model"].update(owner=evil, name=evil, licence=evil, training_data=evil)
        content["model"].update(url=f'https://x/"><img src=x onerror={evil}>')
        content.update(reproduce=evil, revision=evil, predictions=f'https://x/"{evil}', flags=[evil])
        content["history"] = [{"version": 1, "revision": evil, "nwerd": {"en": [1.0, 0.5, 2.0]}}]

    _changed(folder, "recogniser-000", spoil)
    for path, page in site.files(board.load(folder)).items():
        if path.endswith(".html"):
            text = page.decode()
            assert text.count("<script") == 1  # ours, in the head
            assert "<img" not in text


def test_one_bad_file_never_takes_the_board_down(tmp_path):
    """Whatever a verified file lacks or says, the others are shown and it is named."""
    folder = write_models(tmp_path / "verified", models=7, configs=60)
    _changed(folder, "recogniser-000", lambda content: content.update(benchmark_version="99"))
    _changed(folder, "recogniser-001", lambda content: content["scoring"].update(normaliser="whisper-en"))
    _changed(folder, "recogniser-002", lambda content: content.pop("languages"))
    _changed(folder, "recogniser-003", lambda content: content["configs"].update(en_noise_sev1=None))
    (folder / "acme--recogniser-004.json").write_text("[" * 100_000)
    os.mkfifo(folder / "acme--pipe.json")  # nobody ever writes to it
    (folder / "acme--folder.json").mkdir()
    (folder / "acme--link.json").symlink_to("nowhere")
    loaded = board.load(folder)
    assert [entry.name for entry in loaded.entries] == ["acme/recogniser-005", "acme/recogniser-006"]
    assert len(loaded.problems) == 8
    assert all(f"recogniser-00{n}" in " ".join(loaded.problems) for n in range(5))
    assert b"8 files left out" in site.files(loaded)["index.html"]


def test_a_flagged_model_and_a_worthless_one_are_not_ranked(tmp_path):
    folder = write_models(tmp_path / "verified", models=4, configs=60)
    _changed(folder, "recogniser-000", lambda content: content.update(flags=["en_noise_sev3: copied"]))

    def spoil_clean(content):
        """The best NWERD of all: nothing right in clean speech, everything as before elsewhere."""
        content["languages"]["en"]["clean"]["en_clean"]["wer"] = [2000.0, 1900.0, 2100.0]
        content["configs"]["en_clean"]["wer"] = [2000.0, 1900.0, 2100.0]
        content["languages"]["en"]["overall"]["nwerd"] = [-91_774.0, -92_000.0, -91_000.0]
        for entry in content["configs"].values():
            entry["clean_wer"] = None if entry["scenario"] == "clean" else 2000.0

    _changed(folder, "recogniser-001", spoil_clean)
    rows = board.load(folder).rows("en")
    assert [row.place for row in rows] == [1, 2, None, None]
    assert {row.entry.name: row.why for row in rows[2:]} == {
        "acme/recogniser-000": "flagged: en_noise_sev3: copied",
        "acme/recogniser-001": "WER on clean speech is 2000.0, above 50",
    }
    assert "tr class" not in "".join(pages.ranking(rows[:2], "en"))
    assert "".join(pages.ranking(rows, "en")).count('class="unranked"') == 2


def test_the_ranking_has_intervals_and_says_what_each_column_is(tmp_path):
    loaded = board.load(write_models(tmp_path / "verified", models=2, configs=60))
    rows = loaded.rows("en")
    text = "".join(pages.ranking(rows, "en"))
    low, high = (f"{value:.1f}" for value in rows[0].score[1:])
    assert f"{low} to {high}" in text
    for head in ("Average NWERD", "Median NWERD", "NWER", "Clean WER", "noise_<wbr>white NWERD"):
        assert f">{head}<small>" in text
    assert "reproduces" in text


def test_the_built_in_bank_is_named_where_scores_are_shown(tmp_path):
    from speech_robust_bench.builders.banks import builtin

    folder = write_models(tmp_path / "verified", models=1, configs=60)
    _changed(folder, "recogniser-000", lambda content: content["configs"]["en_noise_sev1"].update(bank=builtin.TITLE))
    page = site.files(board.load(folder))["index.html"].decode()
    assert f"noise: {builtin.TITLE}. Not the paper" in page


def test_no_folder_says_how_to_make_one():
    with pytest.raises(UserError, match="srb verify SUBMISSION --out"):
        board.load(Path("nowhere"))


def test_private_editions_have_a_tab_and_a_ranking_of_their_own(tmp_path):
    folder = write_models(tmp_path / "verified", models=4, configs=60)

    def make_private(content):
        for entry in content["configs"].values():
            entry["scenario_version"] = "1-private-3fa1c2d4"

    for name in ("recogniser-001", "recogniser-003"):
        _changed(folder, name, make_private)
    loaded = board.load(folder)
    assert not loaded.problems
    assert loaded.private_editions == ["private-3fa1c2d4"]
    pages_of = {path: content.decode() for path, content in site.files(loaded).items() if path.endswith(".html")}
    for path, here in (("index.html", (0, 2)), ("private.html", (1, 3))):
        shown = {n for n in range(4) if f">acme/recogniser-00{n}</a>" in pages_of[path]}
        assert shown == set(here), path
        assert '<a href="private.html"' in pages_of[path]
    assert [row.place for row in loaded.edition("private-3fa1c2d4").rows("en")] == [1, 2]
    every = [loaded.find(f"acme/recogniser-00{n}") for n in range(4)]
    compared = {(pair.a, pair.b) for pair in board.compare(every, "en")}
    assert compared == {("acme/recogniser-000", "acme/recogniser-002"), ("acme/recogniser-001", "acme/recogniser-003")}
    keys = json.loads(site.files(loaded)["data/acme--recogniser-001.json"])["rows"]
    assert all(key.startswith("en private-3fa1c2d4/") for key in keys)


def test_a_file_with_configs_of_several_editions_is_left_out(tmp_path):
    folder = write_models(tmp_path / "verified", models=2, configs=60)
    later = {"scenario_version": "1-private-3fa1c2d4"}
    _changed(folder, "recogniser-001", lambda content: content["configs"]["en_clean"].update(later))
    assert board.load(folder).problems == (
        "acme--recogniser-001.json: has configs of several editions: private-3fa1c2d4, public",
    )
