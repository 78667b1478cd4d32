"""How fast a corpus is built, beside FLAC-encoding the same audio and the one-config-at-a-time way.

    python benchmarks/build.py [--clips 60] [--rounds 3]

Builds the 100 SRB configs over real speech (Debian's asterisk prompts joined to about 8 s where they are installed, the
demo corpus otherwise) with one and with two processes. Ratios are taken within one run, of the best of some rounds.
"""

from __future__ import annotations

import argparse
import io
import json
import math
import multiprocessing
import os
import platform
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pyarrow.parquet as pq
import soundfile

from srb.builders.audio import RATE, encode_flac, write

sys.path.insert(0, str(Path(__file__).parent))
from perturb import clips as speech

SECONDS = 8
TEST_CLEAN_H = 5.4


def encode_alone(audio: list[bytes]) -> float:
    """Seconds to encode clips that are at hand as 16-bit samples."""
    pcm = [soundfile.read(io.BytesIO(data), dtype="int16")[0] for data in audio]
    start = time.perf_counter()
    for clip in pcm:
        encode_flac(clip)
    return time.perf_counter() - start


def config_by_config(corpus: Path, names: list[str]) -> float:
    """Seconds for the usual way: `Dataset.map`, one config and one clip at a time, decoding each time."""
    import datasets

    from srb.builders.banks import Banks
    from srb.builders.corpora import open_corpus
    from srb.builders.plan import job_named
    from srb.builders.rows import make_row

    datasets.disable_progress_bars()
    listed = open_corpus(str(corpus), "en", "bench").utterances
    table = datasets.Dataset.from_dict({"index": list(range(len(listed)))})
    banks = Banks()
    start = time.perf_counter()
    for name in names:
        job = job_named(name)
        with tempfile.TemporaryDirectory() as out:
            made = table.map(
                lambda row: make_row(job, listed[row["index"]], listed[row["index"]].load(), banks),  # noqa: B023
                load_from_cache_file=False,
                new_fingerprint=name,
            )
            made.to_parquet(f"{out}/test.parquet")
    return time.perf_counter() - start


def build(names: list[str], corpus: Path, out: Path, workers: int) -> float:
    """Seconds that `srb build` takes, from its first import to its last byte."""
    shutil.rmtree(out, ignore_errors=True)
    command = [sys.executable, "-m", "srb.cli.main", "build", *names, "--corpus", f"en-bench={corpus}"]
    start = time.perf_counter()
    subprocess.run([*command, "--out", str(out), "--workers", str(workers)], check=True, capture_output=True)
    return time.perf_counter() - start


def built_audio(out: Path) -> list[bytes]:
    """The FLAC files in all configs of a folder."""
    paths = sorted(out.glob("*/*.parquet"))
    return [row["bytes"] for path in paths for row in pq.read_table(path, columns=["audio"])["audio"].to_pylist()]


def main() -> int:
    from srb.builders.scenarios import SRB, perturbations

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--clips", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=3, help="of each time the best is taken")
    args = parser.parse_args()
    names = [f"en-bench_{s.name}_sev{n}" for s in perturbations() if s.source == SRB for n in s.levels]
    started, walls, encode = ({1: math.inf, 2: math.inf} for _ in range(3))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        corpus, one, out = folder / "corpus", folder / "one", folder / "out"
        for number, clip in enumerate(speech(args.clips)):
            for target in (corpus, one) if not number else (corpus,):
                target.mkdir(exist_ok=True)
                write(target / f"{number:03}.flac", clip[: SECONDS * RATE])
                (target / f"{number:03}.txt").write_text(f"clip {number}")
        build(names, corpus, out, 1)  # compiles the kernels
        memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
        for _ in range(args.rounds):
            for workers in (1, 2):
                started[workers] = min(started[workers], build(names, one, out, workers))
                walls[workers] = min(walls[workers], build(names, corpus, out, workers))
                audio = built_audio(out)
                with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as pool:
                    parts = [audio[number::workers] for number in range(workers)]
                    encode[workers] = min(encode[workers], max(pool.map(encode_alone, parts)))
        hours = sum(json.loads(path.read_text())["seconds"] for path in out.glob("*/manifest.json")) / 3600
        some = names[::10]
        mapped = config_by_config(corpus, some) * len(names) / len(some)
    print(f"{len(names)} configs x {args.clips} clips of {SECONDS} s: {hours:.2f} h of audio written")
    for workers in (1, 2):
        wall, alone = walls[workers], encode[workers]
        steady = (wall - started[workers]) * args.clips / (args.clips - 1)
        whole = (steady * TEST_CLEAN_H * 3600 / SECONDS / args.clips + started[workers]) / 60
        print(
            f"{workers} process(es): {wall:.1f} s, of which {started[workers]:.1f} s to start; FLAC encoding alone "
            f"{alone:.1f} s: {alone / wall:.0%} of its throughput, {alone / steady:.0%} once started; "
            f"LibriSpeech test-clean would take {whole:.0f} min"
        )
    print(
        f"2 processes against 1: {walls[1] / walls[2]:.2f} x, "
        f"{(walls[1] - started[1]) / (walls[2] - started[2]):.2f} x once started; largest process {memory:.0f} MB"
    )
    print(f"Dataset.map, one config at a time: {mapped:.1f} s, {mapped / walls[1]:.1f} x as long as one process here")
    print(f"python {platform.python_version()}, {platform.machine()}, {os.cpu_count()} cores")
    return 0


if __name__ == "__main__":
    sys.exit(main())
