"""Kill builds and runs (SIGKILL) at random moments, let them go on, and compare with what was never killed.

    .venv/bin/python benchmarks/kills.py --builds 30 --runs 30

A build is of several configs of the demo corpus with two workers, a run of a recogniser that answers at once, on clips
that are perturbed as it goes. After every kill whatever is visible must be whole; at the end nothing may be missing,
doubled or other than in the build and the run that went through.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

BUILD = ["build", "en-demo_clean", "en-demo_g*_sev1", "--limit", "12", "--workers", "2", "--out"]
RUN = [
    "run",
    "--model",
    "python:kills:answers",
    "en-demo_clean",
    "en-demo_g*_sev1",
    "--corpus",
    "en-demo",
    "--limit",
    "40",
]
RUN += ["--quiet", "--out"]


def answers(clips, rate, language):
    """A recogniser that says how long each clip is, after a moment."""
    time.sleep(0.02 * len(clips))
    return [f"{len(clip)} samples" for clip in clips]


def start(words: list[str], out: Path) -> subprocess.Popen:
    known = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    command = [sys.executable, "-m", "speech_robust_bench", *words, str(out)]
    return subprocess.Popen(
        command, env=known, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


def kill_again_and_again(words: list[str], out: Path, kills: int, seed: int) -> tuple[float, int]:
    """Start and kill until so many kills have met a command at work; how long it takes, how often it ended first."""
    began = time.perf_counter()
    assert start(words, out.with_name(out.name + "-whole")).wait() == 0
    length = time.perf_counter() - began
    draw, ended = random.Random(seed), 0
    done = 0
    while done < kills:
        process = start(words, out)
        try:
            process.wait(draw.uniform(0.05, 1) * length)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            done += 1
        else:
            assert process.returncode == 0
            ended += 1
            out = out.with_name(f"{out.name}+")  # all is there: the next kills meet a new one
        check_visible(out)
    assert start(words, out).wait() == 0
    return length, ended


def check_visible(out: Path) -> None:
    """What has its name is whole."""
    for path in out.glob("*/_manifest.json"):
        assert all((path.parent / name).is_file() for name in json.loads(path.read_text())["files"]), path
    for path in out.glob("*/*.jsonl"):
        assert all(json.loads(line)["id"] for line in path.read_text().splitlines()), path


def content(folder: Path) -> dict[str, object]:
    """What must be the same: the hash of every built config, the lines of every prediction without their times."""
    built = {
        path.parent.name: json.loads(path.read_text())["content_sha256"] for path in folder.glob("*/_manifest.json")
    }
    predictions = {
        path.name: [
            {k: v for k, v in json.loads(line).items() if k != "time"} for line in path.read_text().splitlines()
        ]
        for path in folder.glob("*/*.jsonl")
    }
    return {**built, **predictions}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--builds", type=int, default=30)
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    for what, words, kills in (("build", BUILD, args.builds), ("run", RUN, args.runs)):
        if not kills:
            continue
        with tempfile.TemporaryDirectory() as place:
            base = Path(place) / what
            length, ended = kill_again_and_again(words, base, kills, args.seed)
            wanted = content(base.with_name(base.name + "-whole"))
            folders = [path for path in Path(place).iterdir() if not path.name.endswith("-whole")]
            same = all(content(folder) == wanted for folder in folders)
            left = [path for folder in folders for path in folder.rglob("*.part") if path.is_file()]
            print(
                f"{what}: {kills} kills at random moments of {length:.1f} s ({ended} ended first), "
                f"{len(wanted)} configs {'the same' if same else 'NOT THE SAME'}, {len(left)} unfinished files left"
            )
            assert wanted
            assert same
            assert not left


if __name__ == "__main__":
    main()
