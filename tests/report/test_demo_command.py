"""`srb demo`: a dozen scenarios at two severities by the ordinary commands, and a second run that reuses them all."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from speech_robust_bench.builders.scenarios import SCENARIOS
from speech_robust_bench.cli import start
from speech_robust_bench.cli.main import main
from speech_robust_bench.core.categories import AVERAGED
from speech_robust_bench.scoring.difficulty import load


def shy(clips, rate, language):
    """A recogniser for this test: it knows one clip, and recognises nothing where it is loud."""
    return ["the river was so cold that nobody wanted to swim" if (clip**2).mean() < 0.05 else "" for clip in clips]


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(start, "CLIPS", 2)
    monkeypatch.setattr(start, "SCENARIOS", ("gaussian", "gain"))
    monkeypatch.setattr(start, "MODELS", dict.fromkeys(("one", "two"), "python:test_demo_command:shy"))


def test_a_dozen_scenarios_at_two_severities():
    assert len(start.SCENARIOS) == 12
    assert len(start.SEVERITIES) == 2
    table = load()
    for name in start.SCENARIOS:
        scenario = SCENARIOS[name]
        assert set(start.SEVERITIES) <= set(scenario.levels)
        if scenario.category in AVERAGED:  # then it has a difficulty, and so an NWERD
            assert all(table.of(f"{name}_sev{severity}") > 0 for severity in start.SEVERITIES)
    assert all(not SCENARIOS[name].has_speech for name in start.WITHOUT_SPEECH)


def test_from_nothing_to_a_report_and_again(quick, tmp_path, capsys):
    out = tmp_path / "demo"
    assert main(["demo", "--out", str(out)]) == 0
    said = capsys.readouterr().out
    assert "--corpus en-demo" in said
    assert not list(out.rglob("*.parquet"))
    assert "NWERD" in said
    assert (out / "report.html").as_uri() in said
    assert "data:audio/flac" in (out / "report.html").read_text()
    before = {path: path.stat().st_mtime_ns for path in out.glob("runs/*/*.jsonl")}
    assert main(["demo", "--out", str(out)]) == 0
    assert before == {path: path.stat().st_mtime_ns for path in out.glob("runs/*/*.jsonl")}


def test_a_step_that_fails_ends_it(quick, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(start, "MODELS", {"none": "no-such-adapter"})
    assert main(["demo", "--out", str(tmp_path)]) == 2
    assert "no-such-adapter" in capsys.readouterr().err


PROGRAM = """
import sys
from speech_robust_bench.cli import start
from speech_robust_bench.cli.main import main
start.CLIPS, start.SCENARIOS = 2, ("gaussian", "gain")
start.MODELS = dict.fromkeys(("one", "two"), "python:test_demo_command:mortal?batch_size=1")
sys.exit(main(["demo", "--out", sys.argv[1]]))
"""


def mortal(clips, rate, language):
    """Notes that it was asked, and the tenth time takes the whole process with it."""
    notes = Path(os.environ["NOTES"])
    with notes.open("a") as file:
        file.write("asked\n")
    if notes.read_text().count("asked") == 10:
        os.kill(os.getpid(), signal.SIGKILL)
    return [""] * len(clips)


def test_killed_midway_it_goes_on_where_it_was(tmp_path):
    def start() -> subprocess.CompletedProcess:
        paths = os.pathsep.join([*map(str, Path(__file__).parents[:2]), os.environ.get("PYTHONPATH", "")])
        known = {**os.environ, "NOTES": str(tmp_path / "notes"), "PYTHONPATH": paths}
        command = [sys.executable, "-c", PROGRAM, str(tmp_path / "demo")]
        return subprocess.run(command, env=known, capture_output=True, text=True, timeout=300, check=False)

    assert start().returncode == -signal.SIGKILL
    finished = {path: path.stat().st_mtime_ns for path in tmp_path.glob("demo/runs/one/*.jsonl")}
    assert len(finished) == 4  # of seven configs; the kill came in the fifth
    again = start()
    assert again.returncode == 0, again.stderr
    assert finished == {path: path.stat().st_mtime_ns for path in finished}
    # Two models, seven configs of two clips: each transcribed once, and once more the one that the kill was in.
    assert (tmp_path / "notes").read_text().count("asked") == 2 * 7 * 2 + 1
    assert len((tmp_path / "demo/runs/one/en-demo_gain_sev4.jsonl").read_text().splitlines()) == 2
    assert (tmp_path / "demo/report.html").is_file()
