"""`--until`: which clips are added, that every config has its part, and that stopping does not move the average."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import speech_robust_bench as srb
from speech_robust_bench.cli.main import main
from speech_robust_bench.models.run_plan import FIRST, ClipsSoFar, grow, shares
from speech_robust_bench.scoring.difficulty import load

ROOT = Path(__file__).parents[2]
IDS = [f"clip-{number}" for number in range(50)]


def test_more_clips_are_the_same_clips_and_more():
    few, many = (ClipsSoFar("x", {"en_a": size, "en_b": FIRST}) for size in (10, 20))
    assert few.choose("en_a", IDS) < many.choose("en_a", IDS[::-1])
    assert not few.choose("en_a", IDS) & few.choose("en_b", IDS)
    assert many.choose("en_clean", IDS) == many.choose("en_a", IDS) | many.choose("en_b", IDS)
    assert ClipsSoFar("x", {"en_a": 70}).choose("en_a", IDS) == set(IDS)


def test_clips_go_where_they_narrow_the_average_most():
    """Alone in its category a config weighs as much as two; half as difficult, its errors count twice."""
    category = {"en_bass_sev1": "sfx", "en_bass_sev2": "sfx", "en_gaussian_sev1": "noise_white", "en_gsm": "codec"}
    share, difficulty = shares(category), load()
    assert share == {
        name: pytest.approx(100 / difficulty.of(name) / (4 if "bass" in name else 2))
        for name in category
        if name != "en_gsm"
    }
    sizes, there = dict.fromkeys(category, 100), dict.fromkeys(category, 20_000)
    assert grow(sizes, share, there) == 40
    for _ in range(40):
        grow(sizes, share, there)
    assert sizes["en_gsm"] == 100
    ratio = {name: sizes[name] / share[name] for name in share}
    assert max(ratio.values()) / min(ratio.values()) < 1.1  # shares as Neyman's, for equal spread


def test_it_ends_when_there_are_no_more_clips():
    sizes, share = {"en_bass_sev1": 10}, {"en_bass_sev1": 1.0}
    assert grow(sizes, share, {"en_bass_sev1": 12}) == 2
    assert grow(sizes, share, {"en_bass_sev1": 12}) == 0


def uneven(clips, rate, language):
    """As many words as the audio's first samples say: more wrong in some configs than in others."""
    return ["it was the " + "x " * (int(abs(clip[:400]).sum() * 1e4) % 9) for clip in clips]


def test_a_run_until_it_is_narrow(tmp_path, capsys):
    configs = ["en-demo_gain_sev1", "en-demo_gain_sev4", "en-demo_gaussian_sev1"]
    wide = srb.evaluate(
        uneven, configs, out=tmp_path / "wide", run_options=srb.RunOptions("x", until=1_000), progress=False
    )
    entries = json.loads((tmp_path / "wide/run.json").read_text())["configs"]
    assert {name: entry["rows"] for name, entry in entries.items() if "clean" not in name} == dict.fromkeys(
        configs, FIRST
    )
    assert wide.json["suite"] == "until-1000"
    low, high = wide.json["languages"]["en"]["overall"]["nwerd"]["interval"]
    narrow = srb.evaluate(
        uneven, configs, out=tmp_path / "wide", run_options=srb.RunOptions("x", until=(high - low) / 1.5)
    )
    assert re.search(
        r"\d+ clips: the average is known to .* points, an interval over \d+ (speakers|clips)", capsys.readouterr().out
    )
    rows = {name: entry["rows"] for name, entry in narrow.json["configs"].items()}
    assert rows["en-demo_gaussian_sev1"] == max(rows[name] for name in rows if "clean" not in name)
    assert min(rows.values()) >= FIRST
    low, after = narrow.json["languages"]["en"]["overall"]["nwerd"]["interval"]
    assert after - low < (high - low)


def test_what_is_wrong_is_said(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    command = ["run", "--model", "cmd:echo {}", "--corpus", "en-demo", "--limit", "2", "--quiet"]
    assert main([*command, "en-demo_mulaw", "en-demo_clean", "--until", "1"]) == 2
    assert "not in it" in capsys.readouterr().err
    for wrong in (["--suite", "fast"], ["--stream"], ["--engine", "ray"]):
        assert main([*command, *wrong, "--until", "1"]) == 2
        assert "until chooses the clips itself" in capsys.readouterr().err


@pytest.mark.parametrize("wrong", [{"suite": "fast"}, {"mode": srb.StreamOptions()}])
def test_until_chooses_the_clips_in_python_too(wrong):
    configs = () if "suite" in wrong else "en-demo_gain_sev1"
    with pytest.raises(ValueError, match="until chooses the clips itself"):
        srb.evaluate(uneven, configs, run_options=srb.RunOptions(until=1, **wrong))


@pytest.mark.parametrize("width", ["0", "-1", "nan", "inf"])
def test_a_width_is_a_number_above_0(width, capsys):
    assert main(["run", "--model", "cmd:echo {}", "--corpus", "en-demo", "--until", width]) == 2
    assert "--until must be a number above 0" in capsys.readouterr().err
    for value in (width, float(width)):
        with pytest.raises(ValueError, match="until must be a number above 0"):
            srb.RunOptions(until=value)


def babbling(clips, rate, language):
    """Too many words, another number for every clip."""
    return ["x " * (100 + int(abs(clip).sum() * 1e3) % 97) for clip in clips]


def test_clean_is_added_and_clips_that_run_out_are_told(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "babbling_model", SimpleNamespace(babbling=babbling))
    command = ["run", "--model", "python:babbling_model:babbling", "--name", "x", "--corpus", "en-demo", "--limit", "2"]
    assert main([*command, "en-demo_gaussian_*", "--until", "0.001"]) == 0
    told = capsys.readouterr()
    assert told.out.splitlines()[0] == "added en-demo_clean, which the others are compared with"
    assert {path.stem for path in Path("runs/x").glob("*.jsonl")} == {
        "en-demo_clean",
        *(f"en-demo_gaussian_sev{severity}" for severity in (1, 2, 3, 4)),
    }
    assert "10 clips: the average is without an interval (too few speakers or clips)" in told.out
    ended = (
        "all clips of the average are used: it is without an interval (too few speakers or clips); "
        "0.001 points were asked for\n"
    )
    assert told.err.endswith(ended)
    assert main([*command, "en-demo_gaussian_*", "en-demo_clean", "--until", "0.001", "--quiet"]) == 0
    told = capsys.readouterr()
    assert "added" not in told.out
    assert told.err == ended
    more = ["--limit", "20", "--name", "y"]
    assert main([*command, *more, "en-demo_gaussian_*", "--until", "10000"]) == 0
    assert "are used" not in capsys.readouterr().err


def test_python_warns_when_the_clips_run_out():
    with pytest.warns(UserWarning, match="all clips of the average are used: .*; 0.001 points were asked for"):
        srb.evaluate(
            babbling, "en-demo_gaussian_sev1", limit=2, run_options=srb.RunOptions(until=0.001), progress=False
        )


def test_data_without_clean_speech_is_refused_first(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["build", "en-demo_gaussian_sev1", "--limit", "2", "--out", "built"]) == 0
    capsys.readouterr()
    assert main(["run", "--model", "cmd:echo {}", "--data", "built", "--until", "5"]) == 2
    assert capsys.readouterr().err == (
        "srb run: --until compares with clean speech, and built has no en-demo_clean; build it there\n"
    )
    assert not Path("runs").exists()


def test_stopping_does_not_move_the_average(monkeypatch):
    """Rare errors of many words, the hardest case: most configs have seen none when the first interval is computed."""
    spec = importlib.util.spec_from_file_location("until", ROOT / "benchmarks/until.py")
    script = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "until", script)  # dataclasses look their module up
    spec.loader.exec_module(script)
    rng = np.random.default_rng(1)
    cells = []
    for number in range(20):
        errors = 6.0 * (rng.random(400) < 0.04 * (1 + number % 3))
        clips = np.stack([errors, np.full(400, 5.0), np.zeros(400)], axis=1)
        cells.append(script.Cells(f"en_{number}", "sfx", clips))
    share = {c.config: 0.1 * (1 + number % 2) for number, c in enumerate(cells)}
    reached = np.array([script.trial(cells, share, 12.0, rng) for _ in range(120)], float)
    off = reached[:, 0] - script.average(cells, share)
    assert abs(off.mean()) < 0.1 * 12.0  # of the width that was asked for
    assert 0.85 < reached[:, 1].mean() <= 1
    assert reached[:, 2].mean() > 20 * FIRST
