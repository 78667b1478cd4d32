"""What publishing costs at full size, in processor seconds and peak memory, each measured in a process of its own.

    python benchmarks/publish.py board --models 2000
    python benchmarks/publish.py submission [--parquet] [--configs 114] [--rows 2620]
    python benchmarks/publish.py score --rows 100000

board: read that many verified models of 114 configs and make every page. submission: `srb submit --dry-run`, then
`srb verify --out`, of a run over that many configs and clips, of 20 words each. score: `srb score` of a clean and a
perturbed config of that many clips. The inputs are made by chance and not measured.
"""

from __future__ import annotations

import argparse
import hashlib
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np

from speech_robust_bench.builders.scenarios import SCENARIOS
from speech_robust_bench.core.names import parse
from speech_robust_bench.core.records import Prediction, RunConfig
from speech_robust_bench.core.rows import transcripts_digest
from speech_robust_bench.core.seeding import BENCHMARK_VERSION
from speech_robust_bench.models.run_folder import record_of
from speech_robust_bench.push.expected_rows import Expected, people_digest, to_json

SRB = (sys.executable, "-m", "speech_robust_bench")
WORDS = 20  # of a clip, as in LibriSpeech test-clean
LETTERS = tuple("etaoinshrdlu")
VOCABULARY = 5_000
BOARD = """
import sys
from speech_robust_bench.push.leaderboard import board, site
files = site.files(board.load(sys.argv[1]))
print(len(files), "files, the largest page has", max(len(v) for k, v in files.items() if k.endswith(".html")), "bytes")
"""


def write_run(folder: Path, configs: Sequence[str], rows: int, seed: int = 0) -> Path:
    """A run over some configs, the more errors the harder, and the `benchmark.json` beside it that it was made on."""
    rng = np.random.default_rng(seed)
    vocabulary = np.array(["".join(rng.choice(LETTERS, rng.integers(2, 9))) for _ in range(VOCABULARY)])
    texts = vocabulary[rng.integers(0, VOCABULARY, (rows, WORDS))]
    run = folder / "run"
    run.mkdir(parents=True)
    expected, entries = {}, {}
    for config in configs:
        lines = _predictions(config, texts, vocabulary, rng)
        data = b"".join(msgspec.json.encode(line) + b"\n" for line in lines)
        (run / f"{config}.jsonl").write_bytes(data)
        expected[config] = _expected(config, lines)
        record = record_of(expected[config].config_data, rows, lines)
        entries[config] = record.replace(sha256=hashlib.sha256(data).hexdigest())
    (run / "run.json").write_bytes(_run_json(entries))
    (folder / "benchmark.json").write_text(to_json(expected), encoding="utf-8")
    return run


def _predictions(config: str, texts: np.ndarray, vocabulary: np.ndarray, rng: np.random.Generator) -> list[Prediction]:
    rate = 0.05 + 0.1 * parse(config).severity
    wrong = rng.random(texts.shape) < rate
    heard = np.where(wrong, vocabulary[rng.integers(0, len(vocabulary), texts.shape)], texts)
    return [
        Prediction(
            id=f"clip-{index:06d}",
            audio_filepath=f"{config}/clip-{index:06d}.flac",
            duration=7.4,
            time=0.25,
            text=" ".join(said),
            pred_text=" ".join(written),
            speaker=f"speaker-{index % 40}",
            gender="female" if index % 2 else "male",
            language="en",
        )
        for index, (said, written) in enumerate(zip(texts, heard, strict=True))
    ]


def _expected(config: str, lines: list[Prediction]) -> Expected:
    name = parse(config)
    return Expected(
        benchmark_version=BENCHMARK_VERSION,
        content_sha256=hashlib.sha256(config.encode()).hexdigest(),
        rows=len(lines),
        rows_sha256=transcripts_digest((line.id, line.text) for line in lines),
        people_sha256=people_digest(lines),
        language=name.language,
        corpus=name.corpus,
        scenario=name.scenario,
        severity=name.severity,
        category=SCENARIOS[name.scenario].category,
        source=None if name.scenario == "clean" else str(name.clean),
    )


def _run_json(entries: dict[str, RunConfig]) -> bytes:
    facts = {"model": "made", "spec": "hf:acme/made", "adapter": "hf", "target": "acme/made", "asked": {}}
    configs = {config: entry.as_json() for config, entry in entries.items()}
    return msgspec.json.encode(facts | {"revision": "0" * 40, "options": {}, "data": "srb", "configs": configs})


def measure(what: str, *command: str) -> None:
    """Run a command and print what it took; its children count too."""
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    said = (done.stdout.splitlines() or [""])[-1]
    print(
        f"{what}: {cpu:.1f} s of processor time, {time.perf_counter() - begin:.1f} s by the clock, "
        f"at most {after.ru_maxrss / 1024:.0f} MB so far; {said}",
        flush=True,
    )
    if done.returncode:
        sys.exit(done.stdout + done.stderr)


def main() -> None:
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    from support.built_data import many_configs
    from support.many_models import write_models

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("board", "submission", "score"))
    parser.add_argument("--models", type=int, default=2000)
    parser.add_argument("--configs", type=int, default=114)
    parser.add_argument("--rows", type=int, default=2620)
    parser.add_argument("--parquet", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        if args.what == "board":
            models = write_models(folder / "verified", args.models, args.configs)
            measure(f"{args.models} models", sys.executable, "-c", BOARD, str(models))
        elif args.what == "score":
            run = write_run(folder, ["en_clean", "en_gaussian_sev2"], args.rows)
            measure(f"srb score, 2 x {args.rows}", *SRB, "score", str(run))
        else:
            run = write_run(folder, many_configs(args.configs), args.rows)
            data, made = str(folder / "benchmark.json"), str(folder / "submission")
            packed = ("--parquet",) if args.parquet else ()
            measure("srb submit", *SRB, "submit", str(run), "--data", data, "--out", made, "--dry-run", *packed)
            measure("srb verify", *SRB, "verify", made, "--data", data, "--out", str(folder / "verified"))


if __name__ == "__main__":
    main()
