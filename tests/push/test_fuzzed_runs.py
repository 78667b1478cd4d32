"""Run folders mutated at random, under every command that reads one: it succeeds or says one line, never a traceback.

`SRB_FUZZ` says how many (see fuzzing.py).
"""

from __future__ import annotations

import hashlib
import json
import random
import shutil
from contextlib import suppress
from pathlib import Path

import pytest
from support.built_data import make_built
from support.fake_runs import make_run
from support.fuzzing import change_bytes, change_lines, change_value, run_command, tries

from speech_robust_bench.cli.main import main
from speech_robust_bench.core.result_records import digest
from speech_robust_bench.scoring.results import score_run

CONFIGS = ["en_clean", "en_noise_sev3"]
RESUME = ["run", "--model", "python:test_fuzzed_runs:says_yes", "--data", "{data}", "--out", "{runs}", "--name", "a"]
COMMANDS = [
    ["score", "{runs}/a", "--replicates", "10"],
    ["score", "{runs}/a", "--replicates", "10", "--allow-changed"],
    ["table", "{runs}/a", "{runs}/b"],
    ["table", "{runs}/a", "{runs}/b", "--csv", "--allow-changed"],
    ["table", "{runs}/a", "--streaming"],
    ["table", "{runs}/a", "--adversarial"],
    ["compare", "{runs}/a", "{runs}/b", "--replicates", "10"],
    ["report", "{runs}/a", "{runs}/b", "--out", "{runs}/report.html"],
    ["fairness", "{runs}/a", "--replicates", "10"],
    ["diagnose", "{runs}/a"],
    ["stability", "{runs}/a", "{runs}/b", "{runs}/c", "--trials", "5"],
    ["anchors", "{runs}/a", "{runs}/b", "{runs}/c", "--clips", "11", "--suite", "{runs}/anchors.json"],
    ["submit", "{runs}/a", "--owner", "me", "--data", "{data}", "--out", "{runs}/sent", "--dry-run"],
    ["export", "every-eval-ever", "{runs}/a", "--model-id", "me/a", "--organisation", "me", "--out", "{runs}/export"],
    [*RESUME, "--quiet"],
    [*RESUME, "--quiet", "--retry-failed"],
    ["gate", "--baseline", "{runs}/a", "--run", "{runs}/b", "--clips", "8"],
    ["gate", "--baseline", "{runs}/b", "--run", "{runs}/a", "--clips", "8", "--json"],
    ["compare", "{runs}/b", "{runs}/a", "--difference", "--replicates", "10"],
    ["compare", "{runs}/a", "{runs}/b", "--by", "config", "--groups", "gender", "--replicates", "10", "--json"],
    ["push", "results", "{runs}/a", "--model-id", "me/a", "--dataset", "me/srb", "--dry-run"],
]


def says_yes(clips, rate, language):
    return ["yes"] * len(clips)


@pytest.fixture(scope="module")
def original(tmp_path_factory) -> Path:
    """Built data and three runs on it, the first as this recogniser left it, with its results."""
    base = tmp_path_factory.mktemp("fuzz")
    data = make_built(base / "srb", CONFIGS, clips=6)
    for seed, model in enumerate("bc"):
        make_run(base / "runs" / model, data, model, seed=seed)
    assert main([word.format(data=data, runs=base / "runs") for word in [*RESUME, "--quiet"]]) == 0
    live = base / "runs" / "a" / f"{CONFIGS[1]}.jsonl"
    lines = [json.loads(line) for line in live.open()]
    lines = [line | {"stream": stream_of(line["duration"]), "words": [["the", 0.01, 0.02]]} for line in lines]
    live.write_text("".join(json.dumps(line) + "\n" for line in lines))
    seal(live.parent)
    score_run(live.parent)
    return base


def stream_of(duration: float) -> dict:
    """A word, a millisecond after the end of a clip of one chunk."""
    sent = {"chunk_ms": 500, "speed": 1.0, "realtime": False, "took_ms": [0.0, 1.0]}
    return {**sent, "events": [[duration + 0.001, duration, "yes", "final"]]}


def seal(folder: Path) -> None:
    """Put the right hashes in, so that what lies behind the comparison of hashes is reached."""
    with suppress(ValueError, KeyError, TypeError, AttributeError, OSError):
        about = json.loads((folder / "run.json").read_text())
        for config in CONFIGS:
            about["configs"][config]["sha256"] = hashlib.sha256((folder / f"{config}.jsonl").read_bytes()).hexdigest()
        (folder / "run.json").write_text(json.dumps(about))
    with suppress(ValueError, KeyError, TypeError, AttributeError, OSError):
        results = json.loads((folder / "results.json").read_text())
        for config in CONFIGS:
            data = (folder / f"{config}.jsonl").read_bytes()
            results["configs"][config]["predictions_sha256"] = hashlib.sha256(data).hexdigest()
        results["sha256"] = digest(results)
        (folder / "results.json").write_text(json.dumps(results))


def mutate(folder: Path, rng: random.Random) -> str:
    """Change one file of a run folder, perhaps as it is while the run is under way; what was changed."""
    if rng.random() < 0.3:
        path = folder / f"{rng.choice(CONFIGS)}.jsonl"
        path.rename(path.with_suffix(".jsonl.part"))
    path = rng.choice(sorted(path for path in folder.iterdir() if path.is_file() and not path.name.startswith(".")))
    change = rng.choice([change_bytes, change_value, change_value, change_value, change_lines])
    if path.name.endswith(".part"):  # the lines of a part are changed as those of a whole file
        whole = path.rename(path.with_name("part.jsonl"))
        change(whole, rng)
        whole.rename(path)
    else:
        change(path, rng)
    if rng.random() < 0.6:
        seal(folder)
    return f"{path.name} by {change.__name__}"


def test_no_mutated_run_gives_a_traceback(original, tmp_path, capsys):
    for seed in range(tries(45)):
        rng = random.Random(seed)
        runs = shutil.copytree(original / "runs", tmp_path / str(seed))
        what = mutate(runs / "a", rng)
        words = [word.format(data=original / "srb", runs=runs) for word in COMMANDS[seed % len(COMMANDS)]]
        run_command(words, f"seed {seed}, {what}", capsys)
        shutil.rmtree(runs)
