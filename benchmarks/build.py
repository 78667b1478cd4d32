"""How fast a corpus is built, beside FLAC-encoding the same audio and the one-config-at-a-time way.

    python benchmarks/build.py [--clips 100] [--rounds 3]

Builds the 100 SRB configs over real speech (Debian's asterisk prompts cut to 8 s where they are installed, the demo
corpus otherwise). The speed of a shared machine changes within seconds, so what is compared is close together in time:

- FLAC encoding alone (`soundfile.write` to memory) of each batch of rows, right after the build has made them, in the
  same process on one core. Both are processor time, of all threads and of the system.
- One process held on one core and two on two, in turn. Three tenths of the corpus are built as well: the difference
  says what a clip costs, the rest is what it takes to start (to load libraries, to synthesise the built-in bank).

The median of the rounds counts.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import platform
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import soundfile

from speech_robust_bench.builders.manifests import MANIFEST
from speech_robust_bench.core.audio import RATE, write

sys.path.insert(0, str(Path(__file__).parent))
from perturb import clips as speech

SECONDS = 8
TEST_CLEAN_H = 5.4
ALL_CORES = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()


def share(names: list[str], part: Path, corpus: Path, out: Path, rounds: int) -> Iterator[float]:
    """Processor time of FLAC encoding alone, as a share of that of building; once what is loaded once is loaded."""
    from speech_robust_bench.builders.row_generator import RowGenerator
    from speech_robust_bench.cli.main import main as srb

    alone = extra = 0.0
    make_tables = RowGenerator.tables

    def timed(*args: Any) -> list[pa.Table]:
        nonlocal alone, extra
        tables = make_tables(*args)
        start = time.thread_time()
        flacs = [flac for table in tables for flac in table["audio"].combine_chunks().field("bytes").to_pylist()]
        pcm = [soundfile.read(io.BytesIO(flac), dtype="int16")[0] for flac in flacs]
        begin = time.thread_time()
        for clip in pcm:
            soundfile.write(io.BytesIO(), clip, RATE, format="FLAC", subtype="PCM_16")
        alone += time.thread_time() - begin
        extra += time.thread_time() - start
        return tables

    RowGenerator.tables = timed  # type: ignore[method-assign]
    for source in (part, *[corpus] * rounds):
        shutil.rmtree(out, ignore_errors=True)
        alone = extra = 0.0
        start = time.process_time()
        with contextlib.redirect_stdout(io.StringIO()):
            srb(["build", *names, "--corpus", f"en-bench={source}", "--out", str(out)])
        if source == corpus:
            yield alone / (time.process_time() - start - extra)
    RowGenerator.tables = make_tables  # type: ignore[method-assign]


def one_row(generator: Any, clip: Any) -> dict[str, Any]:
    [row] = generator.rows(clip, clip.load())
    return row.stored()


def config_by_config(corpus: Path, names: list[str]) -> float:
    """Seconds for the usual way: `Dataset.map`, one config and one clip at a time, decoding each time."""
    import datasets

    from speech_robust_bench.builders.banks import Banks
    from speech_robust_bench.builders.corpora import open_corpus
    from speech_robust_bench.builders.plan import job_named
    from speech_robust_bench.builders.row_generator import RowGenerator

    datasets.disable_progress_bars()
    listed = open_corpus(str(corpus), "en", "bench").utterances
    table = datasets.Dataset.from_dict({"index": list(range(len(listed)))})
    banks = Banks()
    start = time.perf_counter()
    for name in names:
        generator = RowGenerator((job_named(name),), banks)
        with tempfile.TemporaryDirectory() as out:
            perturbed = table.map(
                lambda row: one_row(generator, listed[row["index"]]),  # noqa: B023
                load_from_cache_file=False,
                new_fingerprint=name,
            )
            perturbed.to_parquet(f"{out}/test.parquet")
    return time.perf_counter() - start


def hold(cores: int) -> None:
    """Keep this process, and those it starts, on so many cores, where the system can."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(ALL_CORES)[:cores])


def build(names: list[str], corpus: Path, out: Path, workers: int) -> float:
    """Seconds that `srb build` takes, from its first import to its last byte."""
    shutil.rmtree(out, ignore_errors=True)
    command = [sys.executable, "-m", "speech_robust_bench", "build", *names, "--corpus", f"en-bench={corpus}"]
    start = time.perf_counter()
    subprocess.run([*command, "--out", str(out), "--workers", str(workers)], check=True, capture_output=True)
    return time.perf_counter() - start


def middle(values: Iterable[float], form: str) -> str:
    """The median, and the range that it lies in."""
    values = sorted(values)
    return f"{statistics.median(values):{form}} ({values[0]:{form}} to {values[-1]:{form}})"


def main() -> int:
    from speech_robust_bench.builders.scenarios import SRB, perturbations

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--clips", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    names = [f"en-bench_{s.name}_sev{n}" for s in perturbations() if s.source == SRB for n in s.levels]
    spoken = speech(args.clips)
    clips, few = len(spoken), len(spoken) * 3 // 10
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
        rounds: dict[int, list[tuple[float, float]]] = {1: [], 2: []}
        for _ in range(args.rounds):
            for workers, times in rounds.items():
                hold(workers)
                times.append((build(names, part, out, workers), build(names, corpus, out, workers)))
        hours = sum(json.loads(path.read_text())["seconds"] for path in out.glob(f"*/{MANIFEST}")) / 3600
        hold(1)
        shares = list(share(names, part, corpus, out, args.rounds))
        some = names[::10]
        mapped = config_by_config(part, some) * len(names) / len(some) / few
    print(f"{len(names)} configs x {clips} clips of {SECONDS} s: {hours:.2f} h of audio, {args.rounds} rounds")
    print(f"{middle(shares, '.0%')} of the throughput of FLAC encoding alone, on one core")
    each = {workers: [(whole - less) / (clips - few) for less, whole in times] for workers, times in rounds.items()}
    for workers, times in rounds.items():
        start = statistics.median(whole - clips * one for (_, whole), one in zip(times, each[workers], strict=True))
        minutes = (statistics.median(each[workers]) * TEST_CLEAN_H * 3600 / SECONDS + start) / 60
        print(
            f"{workers} process(es): {middle((whole for _, whole in times), '.1f')} s, {start:.1f} of them to start; "
            f"LibriSpeech test-clean would take {minutes:.0f} min"
        )
    print(
        f"2 processes against 1: {middle((a / b for a, b in zip(each[1], each[2], strict=True)), '.2f')} x, "
        f"{middle((a / b for (_, a), (_, b) in zip(rounds[1], rounds[2], strict=True)), '.2f')} x with the start; "
        f"largest process {memory:.0f} MB"
    )
    print(
        "Dataset.map, one config at a time: "
        f"{mapped / statistics.median(each[1]):.1f} x as long a clip as one process here"
    )
    print(f"python {platform.python_version()}, {platform.machine()}, {os.cpu_count()} cores")
    return 0


if __name__ == "__main__":
    sys.exit(main())
