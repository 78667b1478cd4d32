"""What the perturbations cost, beside FLAC-encoding the same clip, the `sox` program and audiomentations.

    python benchmarks/perturb.py [--clips 4] [--rounds 5]

One core, real speech of about 10 s. Everything is measured in turn within each round and the medians are compared, so
that the ratios hold on a noisy machine even where the milliseconds do not.
"""

from __future__ import annotations

import argparse
import glob
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

import numpy as np
import soundfile

from speech_robust_bench.builders.apply import apply
from speech_robust_bench.builders.banks import Banks
from speech_robust_bench.builders.scenario import Scenario
from speech_robust_bench.builders.scenarios import SRB, perturbations
from speech_robust_bench.core.audio import RATE, encode_flac, to_pcm16
from speech_robust_bench.core.seeding import clip_rng

SECONDS = 10
SOX = {
    "echo": lambda value: f"echo 0.8 0.9 {value} 0.3",
    "bass": lambda value: f"bass {value}",
    "treble": lambda value: f"treble {value}",
    "phaser": lambda value: f"phaser 0.6 0.8 3 {value} 2 -t",
    "tempo_up": lambda value: f"tempo {value} 30",
    "tempo_down": lambda value: f"tempo {value} 30",
    "chorus": lambda value: f"chorus 0.7 0.9 {value} 0.4 0.25 2 -t {value + 10} 0.3 0.4 2 -s",
    "tremolo": lambda value: f"tremolo 20 {value}",
    "lowpass": lambda value: f"sinc 0-{value}",
    "highpass": lambda value: f"sinc {value}",
    "speedup": lambda value: f"speed {value}",
    "slowdown": lambda value: f"speed {value}",
    "pitch_up": lambda value: f"pitch {100 * value}",
    "pitch_down": lambda value: f"pitch {100 * value}",
    "gain": lambda value: f"vol {value}",
}


def clips(count: int) -> list[np.ndarray]:
    """Human recordings of Debian's asterisk prompts where they are installed, the demo corpus otherwise."""
    paths = sorted(glob.glob("/usr/share/asterisk/sounds/en_US_f_Allison/*.g722"), key=os.path.getsize, reverse=True)
    if paths and shutil.which("ffmpeg"):
        raw = [
            subprocess.run(
                ["ffmpeg", "-v", "error", "-f", "g722", "-i", path, "-f", "f32le", "-ar", str(RATE), "-"],
                capture_output=True,
                check=True,
            ).stdout
            for path in paths[: count * 3]
        ]
        speech = np.concatenate([np.frombuffer(data, np.float32) for data in raw])
    else:
        from speech_robust_bench.builders.corpora import open_corpus

        speech = np.concatenate([item.load() for item in open_corpus(None, "en", "demo")])
    size = SECONDS * RATE
    return [speech[i * size : (i + 1) * size].copy() for i in range(min(count, len(speech) // size))]


def peers(rooms: Path, noises: Path) -> dict[str, Callable[[Scenario, int], object]]:
    """The same transforms in audiomentations, by scenario."""
    import audiomentations as am

    def snr(s, n):
        return am.AddGaussianSNR(min_snr_db=s.value(n), max_snr_db=s.value(n), p=1)

    def background(s, n):
        return am.AddBackgroundNoise(sounds_path=noises, min_snr_db=s.value(n), max_snr_db=s.value(n), p=1)

    def stretch(s, n):
        return am.TimeStretch(s.value(n), s.value(n), leave_length_unchanged=False, p=1)

    def shift(s, n):
        return am.PitchShift(s.value(n), s.value(n), p=1)

    def gain(s, n):
        db = 20 * np.log10(s.value(n))
        return am.Gain(db, db, p=1)

    def low(s, n):
        return am.LowPassFilter(s.value(n), s.value(n), p=1)

    def high(s, n):
        return am.HighPassFilter(s.value(n), s.value(n), p=1)

    def shelf_low(s, n):
        return am.LowShelfFilter(100, 100, min(s.value(n), 24), min(s.value(n), 24), 0.5, 0.5, p=1)

    def shelf_high(s, n):
        return am.HighShelfFilter(3000, 3000, min(s.value(n), 24), min(s.value(n), 24), 0.5, 0.5, p=1)

    def room(s, n):
        return am.ApplyImpulseResponse(ir_path=rooms, leave_length_unchanged=False, p=1)

    def rate(s, n):
        low_rate = int(RATE * s.value(n))
        down, up = am.Resample(low_rate, low_rate, p=1), am.Resample(RATE, RATE, p=1)
        return lambda samples, sample_rate: up(samples=down(samples, sample_rate), sample_rate=low_rate)

    noise = dict.fromkeys(("noise", "noise_esc50", "noise_musan", "noise_wham", "music", "crosstalk"), background)
    both = {"tempo_up": stretch, "tempo_down": stretch, "pitch_up": shift, "pitch_down": shift}
    rest = {"lowpass": low, "highpass": high, "bass": shelf_low, "treble": shelf_high, "rir": room, "real_rir": room}
    return {"gaussian": snr, "gain": gain, "resample": rate, **noise, **both, **rest}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--clips", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    speech = clips(args.clips)
    scenarios = [scenario for scenario in perturbations() if scenario.source == SRB]
    cost: dict[tuple[str, str], list[float]] = defaultdict(list)

    with tempfile.TemporaryDirectory() as folder:
        wav, rooms, noises = (Path(folder) / name for name in ("in.wav", "rooms", "noises"))
        _write_banks(rooms, noises)
        banks = Banks(noise_dir=noises)
        try:
            others = {
                (scenario.name, level): peer(scenario, level)
                for scenario in scenarios
                if (peer := peers(rooms, noises).get(scenario.name))
                for level in scenario.levels
            }
        except ImportError:
            others = {}
        for turn in range(args.rounds + 1):  # the first turn warms up and is thrown away
            for number, clip in enumerate(speech):
                soundfile.write(wav, clip, RATE, "PCM_16")
                pcm = to_pcm16(clip)
                for scenario in scenarios:
                    for level in scenario.levels:
                        key = f"{scenario.name} {level}"
                        rng = clip_rng("bench", str(number), scenario.name, level)
                        jobs = {
                            "ours": lambda: apply(scenario, level, clip, rng, banks),  # noqa: B023
                            "flac": lambda: encode_flac(pcm),  # noqa: B023
                        }
                        if (scenario.name, level) in others:
                            peer = others[scenario.name, level]
                            jobs["audiomentations"] = lambda: peer(samples=clip, sample_rate=RATE)  # noqa: B023
                        if scenario.name in SOX and shutil.which("sox") and number == 0:
                            effect = SOX[scenario.name](scenario.value(level)).split()
                            jobs["sox"] = lambda: subprocess.run(
                                ["sox", "-V1", wav, "-t", "wav", "/dev/null", *effect],  # noqa: B023
                                check=True,
                            )
                        for who, job in jobs.items():
                            start = time.perf_counter()
                            job()
                            if turn:
                                cost[key, who].append(time.perf_counter() - start)
    _print(scenarios, {key: statistics.median(times) for key, times in cost.items()}, len(speech))
    return 0


def _write_banks(rooms: Path, noises: Path) -> None:
    """A few of the built-in recordings as files, which is what audiomentations takes."""
    banks = Banks()
    for folder, kind in ((rooms, "rir"), (noises, "noise")):
        folder.mkdir()
        for number in range(4):
            drawn = banks.get(kind).draw(
                np.random.default_rng(number), clip=np.zeros(RATE * SECONDS), severity=number + 1
            )
            soundfile.write(folder / f"{number}.wav", drawn.samples, RATE, "FLOAT")


def _print(scenarios: list[Scenario], median: dict[tuple[str, str], float], count: int) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in ("scenario", "ms", "x real time", "/ FLAC", "sox / ours", "audiomentations / ours"):
        table.add_column(column, justify="left" if column == "scenario" else "right")
    totals = []
    for scenario in scenarios:
        keys = [f"{scenario.name} {level}" for level in scenario.levels]
        ours, flac = ([median[key, who] for key in keys] for who in ("ours", "flac"))
        totals += [a / b for a, b in zip(ours, flac, strict=True)]
        cells = [f"{sum(median[key, who] for key in keys) / sum(ours):.1f}" if (keys[0], who) in median else ""
                 for who in ("sox", "audiomentations")]  # fmt: skip
        mean = statistics.mean(ours)
        table.add_row(
            scenario.name, f"{1e3 * mean:.2f}", f"{SECONDS / mean:,.0f}", f"{sum(ours) / sum(flac):.2f}", *cells
        )
    console = Console()
    console.print(table)
    flac_ms = 1e3 * statistics.mean(time for (_, who), time in median.items() if who == "flac")
    console.print(
        f"mean over {len(totals)} scenario-severity pairs: {statistics.mean(totals):.2f} of FLAC encoding "
        f"({flac_ms:.2f} ms a clip); {count} clips of {SECONDS} s"
    )
    slowest, everything = _first_use('if s.name == "pitch_up"'), _first_use("")
    console.print(
        f"first use in a new process, compilation included: {slowest:.1f} s for pitch_up, which has most to compile; "
        f"{everything:.1f} s for all scenarios"
    )
    libraries = ("numpy", "scipy", "numba", "soundfile", "audiomentations")
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in libraries if _installed(name))
    console.print(f"python {platform.python_version()}, {versions}; {platform.machine()}, {os.cpu_count()} cores")


def _installed(name: str) -> bool:
    try:
        metadata.version(name)
    except metadata.PackageNotFoundError:
        return False
    return True


def _first_use(which: str) -> float:
    """Seconds from starting Python to the scenarios applied once, with nothing compiled yet."""
    program = (
        "import numpy as np\n"
        "from speech_robust_bench.builders.apply import apply\n"
        "from speech_robust_bench.builders.banks import Banks\n"
        "from speech_robust_bench.builders.scenarios import perturbations\n"
        "clip, banks = np.random.default_rng(0).standard_normal(16_000).astype('f4') / 10, Banks()\n"
        f"chosen = [s for s in perturbations() {which}]\n"
        "for s in chosen: apply(s, s.levels[-1], clip, np.random.default_rng(0), banks)\n"
    )
    with tempfile.TemporaryDirectory() as cache:
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", program], check=True, env={**os.environ, "NUMBA_CACHE_DIR": cache})
        return time.perf_counter() - start


if __name__ == "__main__":
    sys.exit(main())
