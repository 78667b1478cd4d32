"""Peak memory of every scenario on a long recording, in a forked process each.

Prints MB above those of the process that only holds the recording, and as multiples of the recording's own float32
samples. The recording is the demo speech repeated, with silence of a random length between the clips.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import time

import numpy as np

from speech_robust_bench.builders.apply import apply
from speech_robust_bench.builders.banks import Banks
from speech_robust_bench.builders.corpora import open_corpus
from speech_robust_bench.builders.scenarios import SCENARIOS, perturbations
from speech_robust_bench.core.audio import RATE
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.seeding import clip_rng


def recording(minutes: float) -> np.ndarray:
    """So many minutes of speech."""
    clips = [clip.load() for clip in open_corpus(None, "en", "demo").utterances]
    rng = np.random.default_rng(0)
    wanted, parts, length = round(minutes * 60 * RATE), [], 0
    while length < wanted:
        part = clips[int(rng.integers(len(clips)))]
        parts += [part, np.zeros(int(rng.integers(RATE)), np.float32)]
        length += len(parts[-1]) + len(part)
    return np.concatenate(parts)[:wanted]


def peak(name: str, samples: np.ndarray) -> tuple[float, float, str]:
    """MB at the most, seconds of processor time, and what went wrong, of one scenario at its highest severity."""
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read_end)
        try:
            scenario = SCENARIOS.get(name)
            if scenario is not None:
                level = scenario.levels[-1]
                apply(scenario, level, samples, clip_rng("demo", "long", name, level), Banks())
        except (UserError, ImportError) as error:
            os.write(write_end, str(error)[:200].encode())
        except MemoryError:
            os.write(write_end, b"out of memory")
        os._exit(0)
    os.close(write_end)
    with os.fdopen(read_end, "rb") as pipe:
        problem = pipe.read().decode()
    _, status, usage = os.wait4(pid, 0)
    if os.WIFSIGNALED(status):
        problem = f"ended by signal {os.WTERMSIG(status)}"
    return usage.ru_maxrss / 1024, usage.ru_utime + usage.ru_stime, problem


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--limit-mb", type=int, help="address space of a process, so that none takes the machine down")
    parser.add_argument("scenario", nargs="*", help="default: all")
    args = parser.parse_args()
    samples = recording(args.minutes)
    warm = samples[: 5 * RATE]
    names = args.scenario or [scenario.name for scenario in perturbations()]
    for name in names:  # compiled kernels, banks and imports are not the recording's
        try:
            level = SCENARIOS[name].levels[-1]
            apply(SCENARIOS[name], level, warm, clip_rng("demo", "warm", name, level), Banks())
        except (UserError, ImportError):
            pass
    if args.limit_mb:
        resource.setrlimit(resource.RLIMIT_AS, (args.limit_mb << 20, args.limit_mb << 20))
    base, _, _ = peak("", samples)
    own = samples.nbytes / 2**20
    print(f"{args.minutes:g} min, {own:.0f} MB of samples, {base:.0f} MB before", flush=True)
    for name in names:
        start = time.monotonic()
        most, seconds, problem = peak(name, samples)
        said = f"  {problem}" if problem else ""
        print(f"{name:24s} {most - base:7.0f} MB  {(most - base) / own:5.1f} x  {seconds:6.1f} s{said}", flush=True)
        print(f"{time.monotonic() - start:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
