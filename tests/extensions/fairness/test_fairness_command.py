"""`srb fairness` from run folders: what it says, and one clear line for every kind of bad input."""

from __future__ import annotations

import json

import numpy as np
import pytest

from speech_robust_bench.cli.main import main
from speech_robust_bench.extensions.fairness.assessment import group, median_pitch_hz

SAID = ["the red fox ran home", "a small dog sat down", "we all went to town", "she sings a low song"]
LOST = ["the red box ran", "dog", "we all went to town", "she sings a low song"]
GENDER = ["female", "female", "male", "male"]
CONFIGS = {"en-x_clean": SAID, "en-x_aeq_noise_sev1": LOST, "en-x_aeq_noise_sev5": ["", "", "", ""]}


def fails(capsys, *argv: str) -> str:
    assert main(["fairness", *argv]) == 2
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 1, lines
    return lines[0]


def test_one_run_from_files_to_json(write_run, capsys):
    folder = write_run("m", CONFIGS, SAID, gender=GENDER, speaker=["a", "b", "c", "d"])
    words = ["--omega", "0", "--population", "female=1", "male=3", "--comprehensible", "7"]
    assert main(["fairness", str(folder), "--json", *words]) == 0
    made = json.loads(capsys.readouterr().out)
    assert made["sets"][0]["below_comprehensibility"] == ["en-x_aeq_noise_sev5"]
    female = next(d for d in made["degradations"] if d["group"] == "female")
    assert female["degradation"] == 0.6  # 2 of 5 and 4 of 5 words
    first = made["comparisons"][0]
    assert (first["base"], first["difference"], first["violates"]) == ("female", 0.6, [0.01, 0.05, 0.1, 0.15])
    assert made["table4"]["transcripts"]["violations"]["total"] == {"female": 4, "male": 0}
    noisy = made["disparity"][1]
    assert (noisy["gap"], noisy["weighted_wer"]) == (60, 15)
    words = next(f for f in made["faults"] if f["form"] == "transcripts" and f["group"] == "female")["non_robust"]
    assert ["fox", [["box", 1]]] in [[w["word"], w["became"]] for w in words]


def test_two_runs_are_compared_without_transcripts(write_run, capsys):
    one = write_run("one", CONFIGS, SAID, gender=GENDER)
    two = write_run("two", CONFIGS | {"en-x_aeq_noise_sev1": SAID}, SAID, gender=GENDER)
    assert main(["fairness", str(one), str(two)]) == 0
    shown = capsys.readouterr().out
    assert "one two: degradation (distance between the transcripts)" in shown
    assert "violations without transcripts, by pair" in shown
    assert "violations with transcripts" in shown
    assert "fox 1>0 (box)" not in shown  # omega is 3
    assert main(["fairness", str(one), str(two), "--json"]) == 0
    pair = json.loads(capsys.readouterr().out)["table4"]["pair"]["violations"]
    assert pair["ASR sensitivity"] == {"one two": {"female": 4, "male": 0}}


def test_no_reference_is_needed_for_pairs(write_run, capsys):
    empty = [""] * 4
    runs = [write_run(m, CONFIGS, empty, gender=GENDER) for m in ("one", "two")]
    assert main(["fairness", *map(str, runs), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["table9"]["alone"]["ASR sensitivity"]["one"]["female"] > 0


def test_distances_are_pooled_over_lengths_as_in_aequevox_code(write_run, capsys):
    """1 of 2 words, 4 of 8 and 0 of 2 differ: 5 of 12 together, not the mean of the three rates."""
    said = ["a b", "c d e f g h i j", "k l", "m n"]
    other = ["a x", "c d e f w x y z", "k l", "m n"]
    gender = ["female", "female", "female", "male"]
    configs = {"en-x_clean": said, "en-x_aeq_noise_sev1": said}
    runs = [
        write_run("one", configs, said, gender=gender),
        write_run("two", configs | {"en-x_aeq_noise_sev1": other}, said, gender=gender),
    ]
    assert main(["fairness", *map(str, runs), "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    pair = next(d for d in made["degradations"] if d["form"] == "pair" and d["group"] == "female")
    assert pair["degradation"] == round(5 / 12, 6)
    assert made["schema"] == 2


def test_any_column_of_the_predictions_makes_groups(write_run, capsys):
    folder = write_run("m", CONFIGS, SAID, region=["north", "north", "south", "south"])
    assert main(["fairness", str(folder), "--groups", "region", "--json"]) == 0
    assert list(json.loads(capsys.readouterr().out)["sets"][0]["groups"]) == ["north", "south"]


def test_digits_however_they_are_written(write_run, capsys):
    """By figures: "8, 4" and "eight four" are the same two, where words would call everything wrong."""
    said = ["eight four", "three two", "five six", "seven nine"]
    configs = {"en-x_clean": ["8, 4.", "three two", "5 6", "7 9"], "en-x_aeq_noise_sev1": ["8 5", "3 2", "5 6", "7 9"]}
    folder = write_run("m", configs, said, gender=GENDER)
    argv = ["fairness", str(folder), "--normaliser", "whisper-en", "--unit", "char-nospace", "--json"]
    assert main(argv) == 0
    women = next(d for d in json.loads(capsys.readouterr().out)["degradations"] if d["group"] == "female")
    assert (women["clean"], women["transformed"]) == (0, 0.25)


def test_ratings_of_ones_own_choose_the_levels(write_run, tmp_path, capsys):
    folder = write_run("m", CONFIGS, SAID, gender=GENDER)
    table = tmp_path / "ratings.csv"
    table.write_text("scenario,sev1,sev2,sev5\naeq_noise,3,,9.5\n")
    assert main(["fairness", str(folder), "--ratings", str(table), "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert made["sets"][0]["below_comprehensibility"] == ["en-x_aeq_noise_sev1"]
    assert made["sets"][0]["levels"] == ["en-x_aeq_noise_sev5"]
    table.write_text("scenario,sev1\naeq_noise,eleven\n")
    assert "line 2: 'eleven' is not a rating from 1 to 10" in fails(capsys, str(folder), "--ratings", str(table))


def test_speakers_that_nobody_named_are_not_counted_as_none(write_run, capsys):
    assert main(["fairness", str(write_run("m", CONFIGS, SAID, gender=GENDER))]) == 0
    shown = capsys.readouterr().out
    assert "female: 2 clips, male: 2 clips" in shown
    assert "speakers" not in shown.splitlines()[0]
    named = write_run("named", CONFIGS, SAID, gender=GENDER, speaker=["a", "a", "b", "c"])
    assert main(["fairness", str(named)]) == 0
    assert "female: 2 clips of 1 speaker, male: 2 clips of 2 speakers" in capsys.readouterr().out


def test_names_of_levels_are_never_cut(write_run, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    levels = {f"en-x_aeq_amplitude_sev{n}": LOST for n in (1, 2, 3)}
    assert main(["fairness", str(write_run("m", {"en-x_clean": SAID} | levels, SAID, gender=GENDER))]) == 0
    shown = capsys.readouterr().out
    assert all(f"aeq_amplitude_sev{n} " in shown for n in (1, 2, 3))


def test_how_many_more_violations_the_others_have(write_run, capsys):
    mild = [*SAID[:2], "we all went to", SAID[3]]  # 1 of 10 words of the men: above tau 0.01 and 0.05, not above 0.1
    folder = write_run("m", {**CONFIGS, "en-x_aeq_noise_sev2": mild}, SAID, gender=GENDER)
    assert main(["fairness", str(folder), "--json"]) == 0
    table = json.loads(capsys.readouterr().out)["table4"]["transcripts"]
    assert table["violations"]["total"] == {"female": 4, "male": 2}
    assert table["excess_percent"] == {"female": -50, "male": 100}


def test_crossed_groups_and_a_minimum_size(write_run, capsys):
    folder = write_run("m", CONFIGS, SAID, gender=GENDER, accent=["x", "y", "y", "y"])
    assert main(["fairness", str(folder), "--groups", "gender+accent", "--json"]) == 0
    assert list(json.loads(capsys.readouterr().out)["sets"][0]["groups"]) == ["female & x", "female & y", "male & y"]
    line = fails(capsys, str(folder), "--groups", "gender+accent", "--minimum", "2")
    assert "one group only with at least 2 clips" in line


def test_missing_metadata(write_run, capsys):
    folder = write_run("m", CONFIGS, SAID)
    assert "no clip says its gender" in fails(capsys, str(folder))


def test_one_group_only(write_run, capsys):
    folder = write_run("m", CONFIGS, SAID, gender=["female"] * 4)
    assert "gender has one group only (female: 4)" in fails(capsys, str(folder))


def test_a_group_with_no_clips(write_run, capsys):
    folder = write_run("m", CONFIGS, SAID, gender=GENDER)
    assert "the group 'child' has no clips; gender has female: 2, male: 2" in fails(
        capsys, str(folder), "--base", "child"
    )


def test_recognisers_with_different_clips_or_configs(write_run, capsys):
    one = write_run("one", CONFIGS, SAID, gender=GENDER)
    clips = write_run("clips", CONFIGS, SAID, gender=GENDER, ids=["0", "1", "2", "z"])
    configs = write_run("configs", {"en-x_clean": SAID}, SAID, gender=GENDER)
    assert "not run on the same clips, 2 are in one only (3, z)" in fails(capsys, str(one), str(clips))
    assert "were not run on the same configs: en-x_aeq_noise_sev1" in fails(capsys, str(one), str(configs))
    assert "has no transformed config" in fails(capsys, str(configs))
    assert "two runs are of the same model" in fails(capsys, str(one), str(one))


@pytest.mark.parametrize(
    ("argv", "line"),
    [
        (["--groups", "height"], "no clip says its height"),
        (["--groups", "gender+"], "'gender+' is not a column"),
        (["--ratings", "nowhere.csv"], "cannot read nowhere.csv"),
        (["--groups", "pitch"], "--data"),
        (["--tau", "5"], "--tau is a share"),
        (["--population", "female"], "'female' is not GROUP=SHARE"),
        (["--population", "female=1"], "weights must name the groups"),
        (["--configs", "en_nothing*"], "no finished config that matches"),
        (["--configs", "*sev5", "--comprehensible", "7"], "comprehensibility of 7 or more"),
    ],
)
def test_bad_options(write_run, capsys, argv, line):
    folder = write_run("m", CONFIGS, SAID, gender=GENDER)
    assert line in fails(capsys, str(folder), *argv)


def test_a_level_with_fewer_clips_is_compared_on_those(write_run, capsys):
    folder = write_run("m", CONFIGS, SAID, gender=GENDER)
    short = folder / "en-x_aeq_noise_sev1.jsonl"
    short.write_text("".join(short.read_text().splitlines(keepends=True)[1:]))
    assert main(["fairness", str(folder), "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert made["sets"][0]["left_out"] == 1
    assert made["degradations"][0]["degradation"] == 0.8


@pytest.mark.parametrize("pitch_hz", [90, 120, 160, 175, 210, 300])
def test_the_pitch_of_a_known_voice(pitch_hz):
    time_s = np.arange(16_000) / 16_000
    voice = sum(np.sin(2 * np.pi * n * pitch_hz * time_s) / n for n in range(1, 9)).astype(np.float32)
    noisy = voice + 0.1 * np.random.default_rng(0).normal(size=len(voice)).astype(np.float32)
    assert median_pitch_hz(noisy) == pytest.approx(pitch_hz, rel=0.03)
    assert group(pitch_hz) == ("high voice" if pitch_hz >= 165 else "low voice")


def test_noise_and_silence_have_no_pitch():
    assert median_pitch_hz(np.random.default_rng(0).normal(size=16_000).astype(np.float32)) is None
    assert median_pitch_hz(np.zeros(16_000, np.float32)) is None
    assert median_pitch_hz(np.zeros(10, np.float32)) is None


def test_the_proxy_agrees_with_the_demo_corpus():
    """Its voices say their gender: pitch tells most of them apart."""
    from speech_robust_bench.builders.corpora import folder
    from speech_robust_bench.core.audio import read

    right = []
    for item in folder.read_demo(folder.DEMO_FOLDER, "en"):
        pitch = median_pitch_hz(read(item.audio.path))
        right.append(group(pitch) == {"female": "high voice", "male": "low voice"}[item.gender])
    assert np.mean(right) > 0.9


def test_a_clip_set_without_the_groups_is_left_out_and_named(write_run, capsys):
    folder = write_run("m", CONFIGS, SAID, gender=GENDER)
    other = write_run("other", {c.replace("en-x", "es-y"): t for c, t in CONFIGS.items()}, SAID, gender=["female"] * 4)
    about = json.loads((folder / "run.json").read_text())
    about["configs"] |= json.loads((other / "run.json").read_text())["configs"]
    (folder / "run.json").write_text(json.dumps(about))
    for file in other.glob("*.jsonl"):
        file.rename(folder / file.name)
    assert main(["fairness", str(folder), "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert [one["clean"] for one in made["sets"]] == ["en-x_clean"]
    assert made["skipped"] == [
        {"clean": "es-y_clean", "why": "gender has one group only (female: 4); a comparison needs two"}
    ]
