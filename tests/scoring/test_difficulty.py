"""Difficulty: the paper's table as printed, how it came about, `srb-1`, and tables of one's own."""

import statistics
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from speech_robust_bench.cli.main import main
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.scoring.difficulty import compute, differences, load, read_quality, resolve
from speech_robust_bench.scoring.quality_scores import POLLUTED, QUALITY_FILE, paper_table, quality_scores, srb_1


@pytest.mark.parametrize(("measure", "cells"), [("avg", 98), ("dnsmos", 100), ("pesq", 98)])
def test_table_3_follows_from_the_authors_scores(measure, cells):
    paper, again = load("paper-table3"), paper_table(quality_scores())
    off = {key: abs(getattr(row, measure) - getattr(paper.rows[key], measure)) for key, row in again.rows.items()}
    assert len(off) == 100
    assert sum(error <= 0.3 for error in off.values()) == cells >= 95
    if measure != "dnsmos":
        assert {key for key, error in off.items() if error > 0.3} == set(POLLUTED)


def test_srb_1_is_what_the_rule_gives():
    again = srb_1(quality_scores())
    assert differences(load("srb-1"), again).keys() == again.rows.keys()
    assert max(map(abs, differences(load("srb-1"), again).values())) < 0.001


@pytest.mark.parametrize("measure", ["dnsmos", "pesq"])
def test_srb_1_has_mean_50_and_sd_25_over_the_scenarios(measure):
    rows = srb_1(quality_scores()).rows
    values = [getattr(row, measure) for row in rows.values() if row.dnsmos is not None and row.pesq is not None]
    assert len(values) == 101  # 25 x 4 and synthetic speech
    assert statistics.mean(values) == pytest.approx(50)
    assert statistics.pstdev(values) == pytest.approx(25)


def test_where_srb_1_differs_from_table_3():
    off = differences(load("srb-1"), load("paper-table3"))
    assert off["gaussian_sev4"] == pytest.approx(15.8, abs=0.05)
    assert off["pitch_down_sev3"] == pytest.approx(8.0, abs=0.05)
    assert statistics.mean(off[key] for key in off if "_sev" in key) < -5  # without the offset of 12.5 / 2


def test_every_difficulty_that_ships_is_positive():
    assert min(row.avg for name in ("paper-table3", "srb-1") for row in load(name).rows.values()) > 0


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("noise_sev3", 77.0),
        ("en_noise_sev3", 77.0),
        ("es-mls_noise_sev3", 77.0),
        ("en-tedlium_rir_sev1", 51.1),
        ("rir_sev1", 51.1),
        ("en_accent", 33.1),
        ("es_accent", 29.3),
        ("en_tts", 50.3),
        ("en_social_ami_far", 85.9),
        ("clean", 23.1),
    ],
)
def test_lookup_by_key_or_config(name, expected):
    assert load("paper-table3").of(name) == expected


def test_unknown_key_names_the_nearest_and_the_way_out():
    with pytest.raises(UserError, match=r"'srb-1' has no entry for 'en_nosie_sev3' .*noise_sev3.*srb difficulty"):
        load("srb-1").of("en_nosie_sev3")
    with pytest.raises(UserError, match=r"no entry for 'en_aeq_drop_sev3'.*give the difficulty as a number"):
        load("srb-1").of("en_aeq_drop_sev3")
    with pytest.raises(UserError, match="no difficulty table 'srb-2'; shipped are paper-table3, srb-1"):
        load("srb-2")


@pytest.mark.parametrize("name", ["en_pgd_sev2-whisper-tiny.en", "pgd_sev1", "en_universal_sev4-m", "universal_sev1"])
def test_adversarial_is_refused_with_the_reason(name):
    with pytest.raises(UserError, match=r"made for one model.*use WERD"):
        resolve(name)


@pytest.mark.parametrize("value", [0, -3.0, float("nan")])
def test_only_a_positive_difficulty_divides(value):
    with pytest.raises(UserError, match="positive"):
        resolve(value)


def test_a_table_of_ones_own_goes_through_a_file(tmp_path, capsys):
    out = tmp_path / "difficulty_libri-1.csv"
    assert (
        main(["difficulty", str(QUALITY_FILE), "--dataset", "LibriSpeech", "--name", "libri-1", "--out", str(out)]) == 0
    )
    table = load(out)
    assert table.name == "libri-1"
    assert table.of("en_noise_sev3") == pytest.approx(load("srb-1").of("en_noise_sev3"), abs=0.001)
    assert main(["difficulty", str(QUALITY_FILE), "--dataset", "Libri"]) == 2
    assert "has no data set 'Libri'; it has LibriSpeech" in capsys.readouterr().err


def test_too_little_to_normalise():
    with pytest.raises(UserError, match="at least two scenarios that differ"):
        compute({"a_sev1": {"dnsmos": 3.0, "pesq": 2.0}}, "x-1")


def test_unreadable_files(tmp_path):
    with pytest.raises(UserError, match=r"cannot read .*nowhere"):
        read_quality(tmp_path / "nowhere.csv")
    bad = tmp_path / "bad.csv"
    bad.write_text("a,b\n1,2\n")
    with pytest.raises(UserError, match="its columns are dataset, augmentation"):
        read_quality(bad)
    with pytest.raises(UserError, match="its columns are scenario, severity"):
        load(bad)


def build(folder, config, **columns):
    (folder / config).mkdir(parents=True)
    rows = len(next(iter(columns.values())))
    pq.write_table(
        pa.table({"id": [str(i) for i in range(rows)], **columns}), folder / config / "test-00000-of-00001.parquet"
    )


def test_from_a_built_folder(tmp_path, capsys):
    built = tmp_path / "srb"
    build(built, "en_clean", dnsmos_p808=[4.0, 4.0])
    build(built, "en_noise_sev1", dnsmos_p808=[3.0, 4.0], pesq=[3.0, None])
    build(built, "en-tedlium_noise_sev1", dnsmos_p808=[3.5], pesq=[3.0])
    build(built, "en_noise_sev2", dnsmos_p808=[2.5, 2.5], pesq=[1.0, 1.0])
    build(built, "en_echo_sev1", text=["a"])
    build(built, "en_pgd_sev1-m", dnsmos_p808=[1.0], pesq=[1.0])
    out = tmp_path / "mine.csv"
    assert main(["difficulty", str(built), "--out", str(out)]) == 0
    assert "without quality columns, left out: en_echo_sev1" in capsys.readouterr().err
    rows = load(out).rows
    assert rows["noise_sev1"].avg == 25.0
    assert rows["noise_sev2"].avg == 75.0
    assert rows["clean_en"].avg == 0.0  # 0.5 above the better of the two, whose spread is 0.5
    assert set(rows) == {"noise_sev1", "noise_sev2", "clean_en"}
    build(built, "es_noise_sev1", dnsmos_p808=[3.0], pesq=[1.0])
    assert main(["difficulty", str(built)]) == 2
    assert "choose one with --language en|es" in capsys.readouterr().err


def test_folder_without_quality_says_how_to_get_it(tmp_path, capsys):
    build(tmp_path / "srb", "en_noise_sev1", text=["a"])
    assert main(["difficulty", str(tmp_path / "srb")]) == 2
    assert "srb quality" in capsys.readouterr().err
    assert main(["difficulty", str(tmp_path)]) == 2


def test_explanation_fits_the_terminal():
    out = subprocess.run(
        [sys.executable, "-m", "speech_robust_bench", "difficulty", "--explain"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert "98 of 100 cells within 0.3" in out
    assert "107 of 107 as shipped" in out
    assert "gaussian" in out
    assert "+15.8" in out
    assert max(map(len, out.splitlines())) <= 80


def test_difficulty_from_what_people_say(tmp_path, capsys):
    """By hand: means 8, 6, 4; mean 6, standard deviation sqrt(8/3); the worst is 50 + 25 * 2 / 1.633 = 80.6."""
    table, out = tmp_path / "ratings.csv", tmp_path / "people-1.csv"
    table.write_text("scenario,severity,rating\nnoise,1,9\nnoise,1,7\nnoise,2,6\nsocial_ami_far,,4\n")
    assert main(["difficulty", "--ratings", str(table), "--name", "people-1", "--out", str(out)]) == 0
    made = load(out)
    assert made.name == "people-1"
    assert {key: round(row.avg, 1) for key, row in made.rows.items()} == {
        "noise_sev1": 19.4,
        "noise_sev2": 50.0,
        "social_ami_far": 80.6,
    }
    assert made.of("en_noise_sev2") == 50


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("scenario,severity\nnoise,1\n", "its columns are scenario, severity, rating"),
        ("scenario,severity,rating\nnoise,1,good\n", "line 2: 'good' is not a number"),
        ("scenario,severity,rating\nnoise,1,nan\n", "line 2: 'nan' is not a number"),
        ("scenario,severity,rating\nnoise,1,5\nnoise,2,5\n", "at least two scenarios that differ"),
        ("scenario,severity,rating\npgd,1,5\n", "adversarial"),
    ],
)
def test_bad_ratings_are_one_line(tmp_path, capsys, text, said):
    (tmp_path / "r.csv").write_text(text)
    assert main(["difficulty", "--ratings", str(tmp_path / "r.csv")]) == 2
    error = capsys.readouterr().err.strip()
    assert said in error
    assert "\n" not in error
