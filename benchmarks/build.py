"""How fast a corpus is built, beside FLAC-encoding the same audio and the one-config-at-a-time way.

    python benchmarks/build.py [--clips 200]

Builds the 100 SRB configs over real speech (Debian's asterisk prompts joined to about 8 s where they are installed, the
demo corpus otherwise) with one and with two processes. Ratios are taken within one run.
"""

from __future__ import annotations

import argparse
import io
import json
import multiprocessing
import os
import platform
import resource
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
    command = [sys.executable, "-m", "srb.cli.main", "build", *names, "--corpus", f"en-bench={corpus}"]
    start = time.perf_counter()
    subprocess.run([*command, "--out", str(out), "--workers", str(workers)], check=True, capture_output=True)
    return time.perf_counter() - start


def main() -> int:
    from srb.builders.scenarios import SRB, perturbations

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--clips", type=int, default=200)
    args = parser.parse_args()
    names = [f"en-bench_{s.name}_sev{n}" for s in perturbations() if s.source == SRB for n in s.levels]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        corpus, one = folder / "corpus", folder / "one"
        for number, clip in enumerate(speech(args.clips)):
            for target in (corpus, one) if not number else (corpus,):
                target.mkdir(exist_ok=True)
                write(target / f"{number:03}.flac", clip[: SECONDS * RATE])
                (target / f"{number:03}.txt").write_text(f"clip {number}")
        build(names, one, folder / "compiled", 1)
        first = {workers: build(names, one, folder / f"first{workers}", workers) for workers in (1, 2)}
        walls, encode = {1: build(names, corpus, folder / "out1", 1)}, {}
        memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
        audio = [
            row["bytes"]
            for path in sorted((folder / "out1").glob("*/*.parquet"))
            for row in pq.read_table(path, columns=["audio"])["audio"].to_pylist()
        ]
        hours = sum(json.loads(p.read_text())["seconds"] for p in (folder / "out1").glob("*/manifest.json")) / 3600
        context = multiprocessing.get_context("spawn")
        encode[1] = encode_alone(audio)
        walls[2] = build(names, corpus, folder / "out2", 2)
        with ProcessPoolExecutor(2, context) as pool:
            halves = [audio[::2], audio[1::2]]
            encode[2] = max(pool.map(encode_alone, halves))
        some = names[::10]
        mapped = config_by_config(corpus, some) * len(names) / len(some)
    print(f"{len(names)} configs x {args.clips} clips of {SECONDS} s: {hours:.2f} h of audio written")
    for workers in (1, 2):
        steady = walls[workers] - first[workers]
        whole = (steady * TEST_CLEAN_H * 3600 / SECONDS / (args.clips - 1) + first[workers]) / 60
        alone = encode[workers]
        print(
            f"{workers} process(es): {walls[workers]:.1f} s, of which {first[workers]:.1f} s to start; FLAC encoding "
            f"alone {alone:.1f} s: {alone / walls[workers]:.0%} of its throughput ({alone / steady:.0%} once started); "
            f"LibriSpeech test-clean would take {whole:.0f} min"
        )
    print(
        f"2 processes against 1: {walls[1] / walls[2]:.2f} x "
        f"({(walls[1] - first[1]) / (walls[2] - first[2]):.2f} x once started); largest process {memory:.0f} MB"
    )
    print(f"Dataset.map, one config at a time: {mapped:.1f} s, {mapped / walls[1]:.1f} x as long as one process here")
    print(f"python {platform.python_version()}, {platform.machine()}, {os.cpu_count()} cores")
    return 0


if __name__ == "__main__":
    sys.exit(main())
