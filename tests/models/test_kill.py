"""Kill -9 at random moments: the run goes on to the same predictions, no line lost or doubled."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.run_folders import srb_run, without_time
from support.small_configs import tone, write_config

CLIPS = 150


def start(data: Path, out: Path, most_clips: int = 2 * CLIPS) -> subprocess.Popen:
    """A run that stops by itself, but does not end, after so many clips: however late the kill comes, it meets it."""
    command = [
        sys.executable,
        "-m",
        "speech_robust_bench",
        "run",
        "--model",
        "python:support.standin:slow_count?batch_size=3",
    ]
    command += ["--data", str(data), "--out", str(out), "--quiet"]
    here = str(Path(__file__).parents[1])
    known = {**os.environ, "PYTHONPATH": here, "STANDIN_CLIPS": str(most_clips)}
    return subprocess.Popen(command, cwd=here, stdout=subprocess.DEVNULL, env=known)


def seen(out: Path) -> int:
    """The lines written so far; a file that is renamed while they are counted is counted next time."""
    try:
        return sum(path.read_bytes().count(b"\n") for path in predictions(out))
    except FileNotFoundError:
        return 0


def predictions(out: Path) -> list[Path]:
    """The predictions files; not what a kill left of one that was about to be renamed."""
    return [path for path in out.rglob("*.jsonl*") if not path.name.startswith(".")]


@pytest.mark.parametrize("kills", [2, pytest.param(10, marks=pytest.mark.long)])
def test_kills_change_nothing(tmp_path: Path, kills: int) -> None:
    names = ("en-demo_clean", "en-demo_noise_sev3")
    for name in names:
        write_config(tmp_path / "srb", name, [tone(i % 60) for i in range(CLIPS)], rows_per_group=40)
    assert srb_run("python:support.standin:count", tmp_path / "srb", tmp_path / "whole") == 0
    out = tmp_path / "runs"
    draw = random.Random(20)
    stretch = (2 * CLIPS - 20) // kills  # one kill in each, so that two kills meet both configs
    moments = [draw.randrange(5 + kill * stretch, 5 + (kill + 1) * stretch) for kill in range(kills)]
    kept: dict[str, set[bytes]] = {}
    for moment in moments:
        process = start(tmp_path / "srb", out, 2 * CLIPS - 3 - seen(out))
        while process.poll() is None and seen(out) < moment:
            time.sleep(0.002)
        time.sleep(draw.uniform(0, 0.04))  # anywhere in a batch
        os.kill(process.pid, signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
        for path in out.rglob("*.jsonl*"):
            whole = set(path.read_bytes().split(b"\n")[:-1])
            name = path.name.split(".jsonl")[0]
            assert kept.get(name, set()) <= whole  # what was written stays
            kept[name] = whole
    assert start(tmp_path / "srb", out).wait() == 0
    for name in names:
        path = out / "support.standin-slow_count" / f"{name}.jsonl"
        assert without_time(path) == without_time(tmp_path / "whole/support.standin-count" / f"{name}.jsonl")
        assert kept.get(name, set()) <= set(path.read_bytes().split(b"\n"))
    assert not list(out.rglob("*.part"))
    assert json.loads((out / "support.standin-slow_count/run.json").read_text())["configs"][names[1]]["rows"] == CLIPS
