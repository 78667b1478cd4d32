"""How far it is from a clip to its row: few calls, and the same ones whoever asks for the row."""

from __future__ import annotations

import inspect
from dataclasses import replace

import pytest

import speech_robust_bench as srb
from speech_robust_bench.builders.scenarios import SCENARIOS
from speech_robust_bench.data_source import DataSource

# where a clip is loaded: `srb build`, the `datasets` builder, `srb.load` and `srb run --corpus`
BEGINNINGS = {"write_shard", "_generate_tables", "_generate", "stored_audio"}
CONFIG = "en-demo_gain_sev1"


@pytest.fixture
def chains(monkeypatch):
    """The calls from where a clip is loaded to the scenario's function, of every clip that is perturbed."""
    seen: list[list[str]] = []
    row = SCENARIOS["gain"]

    def spy(*given):
        calls = [frame.function for frame in inspect.stack(0) if not frame.function.startswith("<")]
        if begun := next((place for place, name in enumerate(calls) if name in BEGINNINGS), None):  # not an estimate
            seen.append(calls[begun::-1])
        return row.function(*given)

    monkeypatch.setitem(SCENARIOS, "gain", replace(row, function=spy))
    return seen


def test_every_way_takes_at_most_five_calls_and_ends_alike(chains, tmp_path):
    srb.build(CONFIG, limit=1, out=tmp_path / "srb", progress=False)
    srb.SpeechRobustBench(config_name=CONFIG, limit=1, cache_dir=str(tmp_path / "cache")).download_and_prepare()
    next(iter(srb.load(CONFIG, limit=1)))
    with DataSource(limit=1, progress=False) as source:
        config = source.perturbed.config(CONFIG)
        config.stored_audio({clip.utterance.id for clip in config.clips.clips})
    assert {calls[0] for calls in chains} == BEGINNINGS
    for calls in chains:
        assert len(calls) <= 5, calls
        assert calls[-3:] == ["rows", "apply", "spy"]
