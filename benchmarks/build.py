"""How fast a corpus is built, beside FLAC-encoding the same audio and the one-config-at-a-time way.

    python benchmarks/build.py [--clips 100] [--rounds 3]

Builds the 100 SRB configs over real speech (Debian's asterisk prompts cut to 8 s where they are installed, the demo
corpus otherwise): one process held on one core, two processes on two, and FLAC encoding alone on the same cores.
A ratio is taken within a round, whose parts follow each other at once, and the median of the rounds counts: the speed
of a shared machine changes within minutes. A fifth of the corpus is built as well: the difference says what a clip
costs, the rest is what it takes to start (to load libraries and kernels, to synthesise the built-in noises and rooms).
"""

from __future__ import annotations

import argparse
import io
import json
import multiprocessing
import os
import platform
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq
import soundfile

from srb.builders.audio import RATE, encode_flac, write

sys.path.insert(0, str(Path(__file__).parent))
from perturb import clips as speech

SECONDS = 8
TEST_CLEAN_H = 5.4
ALL_CORES = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()


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


def hold(cores: int) -> None:
    """Keep this process, and those it starts, on so many cores, where the system can."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(ALL_CORES)[:cores])


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


@dataclass
class Turn:
    """Seconds of one round with some processes on as many cores."""

    part: float  # of building some of the clips
    whole: float  # of building all of them
    encode: float  # of FLAC encoding alone

    def each(self, extra: int) -> float:
        """Seconds a clip, by what so many more clips took."""
        return (self.whole - self.part) / extra


def turn(names: list[str], part: Path, corpus: Path, out: Path, workers: int) -> Turn:
    """A build of some clips, of all clips, and FLAC encoding of what came out."""
    hold(workers)
    few, all_clips = build(names, part, out, workers), build(names, corpus, out, workers)
    audio = built_audio(out)
    with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as pool:
        encode = max(pool.map(encode_alone, [audio[number::workers] for number in range(workers)]))
    return Turn(few, all_clips, encode)


def middle(values: Iterable[float], form: str) -> str:
    """The median, and the range that it lies in."""
    values = sorted(values)
    return f"{statistics.median(values):{form}} ({values[0]:{form}} to {values[-1]:{form}})"


def main() -> int:
    from srb.builders.scenarios import SRB, perturbations

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--clips", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    names = [f"en-bench_{s.name}_sev{n}" for s in perturbations() if s.source == SRB for n in s.levels]
    spoken = speech(args.clips)
    clips, few = len(spoken), len(spoken) // 5
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        corpus, part, out = folder / "corpus", folder / "part", folder / "out"
        for number, clip in enumerate(spoken):
            for target in (corpus, part) if number < few else (corpus,):
                target.mkdir(exist_ok=True)
                write(target / f"{number:03}.flac", clip[: SECONDS * RATE])
                (target / f"{number:03}.txt").write_text(f"clip {number}")
        build(names, corpus, out, 1)  # compiles the kernels
        memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
        rounds = [{workers: turn(names, part, corpus, out, workers) for workers in (1, 2)} for _ in range(args.rounds)]
        hours = sum(json.loads(path.read_text())["seconds"] for path in out.glob("*/manifest.json")) / 3600
        some = names[::10]
        hold(1)
        mapped = config_by_config(part, some) * len(names) / len(some) / few
    print(f"{len(names)} configs x {clips} clips of {SECONDS} s: {hours:.2f} h of audio written, {args.rounds} rounds")
    each = {}
    for workers in (1, 2):
        turns = [found[workers] for found in rounds]
        each[workers] = statistics.median(t.each(clips - few) for t in turns)
        start = statistics.median(t.whole - clips * t.each(clips - few) for t in turns)
        minutes = (each[workers] * TEST_CLEAN_H * 3600 / SECONDS + start) / 60
        print(
            f"{workers} process(es): {middle((t.whole for t in turns), '.1f')} s, of which {start:.1f} s to start; "
            f"FLAC encoding alone {middle((t.encode for t in turns), '.1f')} s\n"
            f"    {middle((t.encode / clips / t.each(clips - few) for t in turns), '.0%')} of its throughput, "
            f"{middle((t.encode / t.whole for t in turns), '.0%')} with the start; "
            f"LibriSpeech test-clean would take {minutes:.0f} min"
        )
    print(
        f"2 processes against 1: {middle((r[1].each(1) / r[2].each(1) for r in rounds), '.2f')} x, "
        f"{middle((r[1].whole / r[2].whole for r in rounds), '.2f')} x with the start "
        f"(FLAC encoding alone {middle((r[1].encode / r[2].encode for r in rounds), '.2f')} x); "
        f"largest process {memory:.0f} MB"
    )
    print(f"Dataset.map, one config at a time: {mapped / each[1]:.1f} x as long a clip as one process here")
    print(f"python {platform.python_version()}, {platform.machine()}, {os.cpu_count()} cores")
    return 0


if __name__ == "__main__":
    sys.exit(main())
