"""`srb run --engine ray` on a local cluster writes what a local run writes."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_kill import without_time
from test_running import run_json, srb_run

ray = pytest.importorskip("ray")


def test_a_cluster_gives_the_same_predictions(tones: Path, tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))
    ray.shutdown()  # one that another test left behind does not have the path
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="error")
    try:
        spread, alone = tmp_path / "spread", tmp_path / "alone"
        assert srb_run("python:standin:count", tones, spread, "--engine", "ray", "--workers", "2") == 0
        assert srb_run("python:standin:count", tones, alone) == 0
        for name in ("en-demo_clean", "en-demo_noise_sev3"):
            file = f"standin-count/{name}.jsonl"
            assert without_time(spread / file) == without_time(alone / file)
        about = run_json(spread / "standin-count")
        assert {name: config["rows"] for name, config in about["configs"].items()} == {
            "en-demo_clean": 23,
            "en-demo_noise_sev3": 23,
        }
        assert srb_run("python:standin:at_once", tones, spread, "--engine", "ray", "--name", "standin-count") == 2
        assert "--name" in capsys.readouterr().err
        assert srb_run("python:standin:broken", tones, spread, "--engine", "ray") == 2
        assert "OSError: no such device" in capsys.readouterr().err
    finally:
        ray.shutdown()
