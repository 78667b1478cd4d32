"""Suites: which configs and clips they take, the same ones whoever asks, and how a run and its results name them."""

from __future__ import annotations

import json

import pytest

from srb.builders.scenarios import find
from srb.cli.main import main
from srb.core.names import parse
from srb.diagnosis import suites
from srb.diagnosis.suites import SUITES, Suite, load

IDS = [f"clip-{number}" for number in range(200)]
SMALL = Suite("small", {"version": 3, "configs": {"sfx": ["bass_sev1", "gain_sev2"]}, "pool": 5, "clips": 2})


def test_every_suite_has_configs_that_can_be_built():
    for name in SUITES:
        for member in load(name).members:
            config = parse(f"en_{member}")
            assert config.severity in find(config.scenario).levels


def test_its_configs_begin_with_clean_speech_of_every_corpus():
    assert SMALL.configs([("en", "demo"), ("es", "mls")]) == [
        *("en-demo_clean", "en-demo_bass_sev1", "en-demo_gain_sev2"),
        *("es_clean", "es_bass_sev1", "es_gain_sev2"),
    ]
    assert load("fast").configs([("en", "x")], tts=False) == [
        name for name in load("fast").configs([("en", "x")]) if name != "en-x_tts"
    ]
    assert SMALL.on_data(["en_clean", "en_bass_sev1", "es-demo_clean"])[::3] == ["en_clean", "es-demo_clean"]


def test_clips_are_chosen_by_id_and_nothing_else():
    clean = SMALL.choose("en_clean", IDS)
    assert len(clean) == 5
    assert clean == SMALL.choose("es-x_clean", IDS[::-1])
    bass, gain = (SMALL.choose(f"en_{member}", IDS) for member in SMALL.members)
    assert len(bass) == len(gain) == 2
    assert not bass & gain
    assert bass | gain < clean
    # other clips of the corpus change only what they displace
    assert clean >= SMALL.choose("en_clean", [*IDS, "one-more"]) - {"one-more"}
    assert SMALL.choose("en_bass_sev1", IDS[:2]) == set(IDS[:2])
    assert load("fast").choose("en_noise_sev1", IDS) == set(IDS)


def test_another_version_takes_other_clips():
    later = Suite("small", {**SMALL.about, "version": 4})
    assert later.choose("en_clean", IDS) != SMALL.choose("en_clean", IDS)


@pytest.fixture
def small(monkeypatch, tmp_path):
    """`small` among the suites, in a folder of its own."""
    monkeypatch.setattr(suites, "SUITES", {"small": ""})
    monkeypatch.setattr(suites, "load", lambda name: SMALL)
    monkeypatch.chdir(tmp_path)


def test_a_run_of_a_suite_is_named_in_every_file(small, tmp_path, capsys):
    command = ["run", "--model", "cmd:echo {}", "--name", "echo", "--corpus", "en-demo", *("--limit", "8", "--quiet")]
    assert main([*command, "--suite", "small"]) == 0
    run = json.loads((tmp_path / "runs/echo/run.json").read_text())["configs"]
    assert {name: (entry["rows"], entry["suite"]) for name, entry in run.items()} == {
        "en-demo_clean": (5, "small-3"),
        "en-demo_bass_sev1": (2, "small-3"),
        "en-demo_gain_sev2": (2, "small-3"),
    }
    assert run["en-demo_bass_sev1"]["content_sha256"] is None  # the clips that were not wanted were not perturbed
    assert main(["score", "runs/echo"]) == 0
    assert json.loads((tmp_path / "runs/echo/results.json").read_text())["suite"] == "small-3"
    before = (tmp_path / "runs/echo/en-demo_bass_sev1.jsonl").read_bytes()
    assert main([*command, "--suite", "small"]) == 0
    assert (tmp_path / "runs/echo/en-demo_bass_sev1.jsonl").read_bytes() == before
    capsys.readouterr()
    assert main([*command, "--suite", "small", "en-demo_clean"]) == 2
    assert "either configs or --suite" in capsys.readouterr().err


def test_a_suite_that_was_made_whole_is_no_suite_any_more(small, tmp_path):
    command = ["run", "--model", "cmd:echo {}", "--name", "echo", "--corpus", "en-demo", *("--limit", "8", "--quiet")]
    assert main([*command, "--suite", "small"]) == 0
    assert main([*command, "en-demo_clean", "en-demo_bass_sev1", "en-demo_gain_sev2"]) == 0
    entries = json.loads((tmp_path / "runs/echo/run.json").read_text())["configs"].values()
    assert all("suite" not in entry and entry["content_sha256"] for entry in entries)
    assert main(["score", "runs/echo"]) == 0
    assert json.loads((tmp_path / "runs/echo/results.json").read_text())["suite"] is None
