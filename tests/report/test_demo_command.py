"""`srb demo`: a dozen scenarios at two severities by the ordinary commands, and a second run that reuses them all."""

from __future__ import annotations

import pytest

from srb.builders.scenarios import SCENARIOS
from srb.cli import demo
from srb.cli.main import main
from srb.metrics.aggregate import CATEGORIES
from srb.metrics.difficulty import load


def shy(clips, rate, language):
    """A recogniser for this test: it knows one clip, and hears nothing where it is loud."""
    return ["the river was so cold that nobody wanted to swim" if (clip**2).mean() < 0.05 else "" for clip in clips]


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(demo, "CLIPS", 2)
    monkeypatch.setattr(demo, "SCENARIOS", ("gaussian", "gain"))
    monkeypatch.setattr(demo, "MODELS", dict.fromkeys(("one", "two"), "python:test_demo_command:shy"))
    monkeypatch.setattr("srb.models.interface.cores", lambda: 1)


def test_a_dozen_scenarios_at_two_severities():
    assert len(demo.SCENARIOS) == 12
    assert len(demo.SEVERITIES) == 2
    table = load()
    for name in demo.SCENARIOS:
        scenario = SCENARIOS[name]
        assert set(demo.SEVERITIES) <= set(scenario.levels)
        if scenario.category in CATEGORIES:  # then it has a difficulty, and so an NWERD
            assert all(table.of(f"{name}_sev{severity}") > 0 for severity in demo.SEVERITIES)
    assert all(not SCENARIOS[name].has_speech for name in demo.WITHOUT_SPEECH)


def test_from_nothing_to_a_report_and_again(quick, tmp_path, capsys):
    out = tmp_path / "demo"
    assert main(["demo", "--out", str(out)]) == 0
    said = capsys.readouterr().out
    assert "7 configs built, 0 already there" in said
    assert "NWERD" in said
    assert (out / "report.html").as_uri() in said
    assert "data:audio/flac" in (out / "report.html").read_text()
    before = {path: path.stat().st_mtime_ns for path in out.glob("runs/*/*.jsonl")}
    assert main(["demo", "--out", str(out)]) == 0
    assert "0 configs built, 7 already there" in capsys.readouterr().out
    assert before == {path: path.stat().st_mtime_ns for path in out.glob("runs/*/*.jsonl")}


def test_a_step_that_fails_ends_it(quick, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(demo, "MODELS", {"none": "no-such-adapter"})
    assert main(["demo", "--out", str(tmp_path)]) == 2
    assert "no-such-adapter" in capsys.readouterr().err
