"""What a run costs, before it starts: hours from the speed of the model, and their price."""

from __future__ import annotations

import time

import pytest

import speech_robust_bench as srb
from speech_robust_bench.cli.main import main

CONFIGS = ["en-demo_clean", "en-demo_gain_sev2"]


def deaf(clips, rate, language):
    return [""] * len(clips)


def plan(model, **options):
    return srb.plan(
        model, CONFIGS, corpus={"en-demo": None}, limit=4, run_options=srb.RunOptions(**options), progress=False
    )


def test_hours_are_audio_over_speed_and_cost_is_hours_times_price(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made = plan(deaf, rtfx=10.0, price_per_hour=1.8)
    assert (made.configs, made.clips, made.source) == (2, 8, "as given")
    rows = list(srb.load("en-demo_clean", limit=4))
    seconds = 2 * sum(len(row["audio"]["array"]) for row in rows) / 16_000
    assert made.audio_s == pytest.approx(seconds, rel=1e-3)
    assert made.hours == pytest.approx(seconds / 36_000, rel=1e-3)
    assert made.cost == pytest.approx(1.8 * made.hours)
    assert "A guess: RTFx 10.0 is as given" in str(made)
    assert not list(tmp_path.iterdir()), "a plan stores nothing"


def test_the_speed_is_measured_after_a_warm_up(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    calls = []

    def slow(clips, rate, language):
        calls.append(len(clips))
        time.sleep(2.0 if len(calls) == 1 else 0.05)  # the first call loads kernels and the like
        return [""] * len(clips)

    made = plan(slow)
    assert sum(calls) == 2 * 4
    assert made.source == "measured on 4 clips of en-demo_clean, twice"
    assert made.rtfx > made.audio_s / 2 / 2.0


def test_clips_with_predictions_are_not_in_the_plan(tmp_path, capsys):
    ears = tmp_path / "some_ears.py"
    ears.write_text("def listen(clips, rate, language):\n    return ['no'] * len(clips)\n")
    options = ["--limit", "3", "--out", str(tmp_path), "--name", "deaf", "--corpus", "en-demo", "--quiet"]
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(tmp_path)
        assert main(["run", "--model", "python:some_ears:listen", *CONFIGS[:1], *options]) == 0
        capsys.readouterr()
        assert main(["run", "--model", "python:some_ears:listen", *CONFIGS, *options, "--plan"]) == 0
    printed = capsys.readouterr().out
    assert "2 configs, 3 clips to transcribe" in printed
    assert "that of the clips in the run folder" in printed


def test_a_run_with_a_price_prints_the_estimate_first(tmp_path, capsys):
    options = srb.RunOptions(price_per_hour=4.0, rtfx=100.0)
    srb.run(deaf, CONFIGS[:1], corpus={"en-demo": None}, limit=2, out=tmp_path / "deaf", run_options=options)
    assert "$ at 4 $ an hour. A guess: RTFx 100.0 is as given" in capsys.readouterr().err
