"""`srb run --engine ray` on a local cluster writes what a local run writes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.run_folders import run_json, srb_run, without_time

from speech_robust_bench.cli.main import main

ray = pytest.importorskip("ray")


def test_a_cluster_gives_the_same_predictions(tones: Path, tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))
    ray.shutdown()  # one that another test left behind does not have the path
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="error")
    try:
        spread, alone = tmp_path / "spread", tmp_path / "alone"
        assert srb_run("python:support.standin:count", tones, spread, "--engine", "ray", "--workers", "2") == 0
        assert srb_run("python:support.standin:count", tones, alone) == 0
        for name in ("en-demo_clean", "en-demo_noise_sev3"):
            file = f"support.standin-count/{name}.jsonl"
            assert without_time(spread / file) == without_time(alone / file)
        about = run_json(spread / "support.standin-count")
        assert {name: config["rows"] for name, config in about["configs"].items()} == {
            "en-demo_clean": 23,
            "en-demo_noise_sev3": 23,
        }
        models = tmp_path / "models.yaml"
        rows = [{"name": name, "spec": f"python:support.standin:{name}"} for name in ("count", "at_once")]
        models.write_text(json.dumps({"models": rows}))
        assert srb_run(f"@{models}", tones, spread, "en-demo_clean", "--engine", "ray", "--workers", "2") == 0
        assert "at_once: 1 configs, 23 clips" in capsys.readouterr().out
        there, here = spread / "count/en-demo_clean.jsonl", alone / "support.standin-count/en-demo_clean.jsonl"
        assert without_time(there) == without_time(here)
        taken = ("--engine", "ray", "--name", "support.standin-count")
        assert srb_run("python:support.standin:at_once", tones, spread, *taken) == 2
        assert "--name" in capsys.readouterr().err
        assert srb_run("python:support.standin:broken", tones, spread, "--engine", "ray") == 2
        assert "OSError: no such device" in capsys.readouterr().err
        _check_perturbing_on_the_cluster(tmp_path)
    finally:
        ray.shutdown()


def _check_perturbing_on_the_cluster(tmp_path: Path) -> None:
    """Each model on the cluster perturbs its clips itself, and the predictions and hashes are the same."""
    words = ["run", "--model", "python:support.standin:count", "en-demo_clean", "en-demo_gain_sev1", "--quiet"]
    words += ["--corpus", "en-demo", "--limit", "3"]
    spread, alone = tmp_path / "perturbed-spread", tmp_path / "perturbed-alone"
    assert main([*words, "--out", str(spread), "--engine", "ray", "--workers", "2"]) == 0
    assert main([*words, "--out", str(alone)]) == 0
    for name in ("en-demo_clean", "en-demo_gain_sev1"):
        file = f"support.standin-count/{name}.jsonl"
        assert without_time(spread / file) == without_time(alone / file)
        contents = [
            run_json(out / "support.standin-count")["configs"][name]["content_sha256"] for out in (spread, alone)
        ]
        assert contents[0]
        assert contents[0] == contents[1]
