"""Recognisers used live on human recordings: accuracy, latency and stability, clean and under three scenarios.

    apt install asterisk-core-sounds-en asterisk-core-sounds-en-g722 ffmpeg
    python benchmarks/streaming.py --out FOLDER [--models pocketsphinx moonshine whisper vosk] [--vosk MODEL_FOLDER]
    python benchmarks/streaming.py --out FOLDER --repeat [--models ...]

Makes a corpus of a dozen of Debian's Asterisk prompts and of strings of five spoken digits (Allison Smith; G.722
decoded by ffmpeg, nothing of it is kept in the repository), and runs each recogniser live, on one thread, over clean,
noise, rir and packet_loss at four severities. It can be interrupted and repeated. The virtual clock counts what the
machine really took: on a busy one latencies grow (`--repeats` and `--processor-time` help), words do not change.

`--repeat` asks how far the figures can be trusted: clean and noise_sev3 twice on the virtual clock and once in real
time, and how far the 95th percentile and the median of the settling of words are apart. `--whisper` and `--vosk` name
the folders of these models.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

sys.path[:0] = [str(Path(__file__).parent)]

from human import SOUNDS, TEXTS, make_corpus  # noqa: E402

from speech_robust_bench.cli.main import main as srb  # noqa: E402
from speech_robust_bench.core.audio import RATE, read, write  # noqa: E402
from speech_robust_bench.extensions.streaming.measure import figure_of, wer_of  # noqa: E402
from speech_robust_bench.scoring.results import load  # noqa: E402

NAMES = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
SCENARIOS = ("noise", "rir", "packet_loss")
CONFIGS = ["en-phone_clean", *(f"en-phone_{name}_sev{n}" for name in SCENARIOS for n in (1, 2, 3, 4))]
REPEATED = ["en-phone_clean", "en-phone_noise_sev3"]
COLUMNS = ("first_word", "appear", "settle", "settle_p95", "last_word", "endpoint")
RATES = ("early_cutoffs", "churn", "flicker", "late_chunks")


def add_digits(folder: Path, strings: int) -> None:
    """Strings of five spoken digits with pauses of a tenth of a second, drawn with a fixed seed."""
    rng = np.random.default_rng(0)
    pause = np.zeros(RATE // 10, np.float32)
    for number in range(strings):
        digits = rng.integers(0, 10, 5)
        stem = folder / f"digits-{number}"
        if stem.with_suffix(".txt").is_file():
            continue
        parts = []
        for digit in digits:
            spoken = folder / ".digit.wav"
            source = ["-f", "g722", "-i", str(SOUNDS / "digits" / f"{digit}.g722")]
            subprocess.run(["ffmpeg", "-v", "error", "-y", *source, "-ar", str(RATE), str(spoken)], check=True)
            parts += [read(spoken), pause]
            spoken.unlink()
        write(stem.with_suffix(".flac"), np.concatenate(parts), RATE)
        stem.with_suffix(".txt").write_text(" ".join(NAMES[digit] for digit in digits) + "\n", encoding="utf-8")


def specs(args: argparse.Namespace) -> dict[str, str]:
    known = {
        "pocketsphinx": "pocketsphinx?workers=1",
        "moonshine": "live:moonshine?threads=1?policy=local-agreement",
        "whisper": f"live:hf:{args.whisper}?threads=1?policy=local-agreement",
        "vosk": f"vosk:{args.vosk}?threads=1",
    }
    return {name: known[name] for name in args.models}


def stream(args: argparse.Namespace, name: str, spec: str, configs: list[str], *more: str) -> Path:
    """Run a recogniser live; its folder."""
    corpus = f"en-phone={args.out / 'corpus'}"
    command = ["run", "--model", spec, "--name", name, *configs, "--corpus", corpus, "--out", str(args.out / "runs")]
    clock = ["--processor-time"] if args.processor_time else []
    clock += ["--repeats", str(args.repeats)] if args.repeats > 1 else []
    clock = [] if "--realtime" in more else clock
    if code := srb([*command, "--stream", "--perturb-workers", "1", *clock, *more]):
        sys.exit(code)
    return args.out / "runs" / name


def table(folders: dict[str, Path]) -> None:
    """The figures as a table for benchmarks/README.md."""
    print(f"| recogniser | config | WER | {' | '.join((*COLUMNS, *RATES))} | RTF |")
    print("|---" * (4 + len(COLUMNS) + len(RATES)) + "|")
    for name, folder in folders.items():
        for config, entry in load(folder)["configs"].items():
            delays = [figure_of(entry, figure) for figure in COLUMNS]
            shares = [figure_of(entry, figure) for figure in RATES]
            cells = [f"{wer_of(entry):.1f}", *("" if v is None else f"{v:.2f}" for v in delays)]
            cells += ["" if v is None else f"{100 * v:.0f}" for v in shares]
            print(
                f"| {name} | {config.removeprefix('en-phone_')} | {' | '.join(cells)} | {figure_of(entry, 'rtf'):.2f} |"
            )


def repeat(args: argparse.Namespace) -> None:
    """Two runs on the virtual clock, and one in real time: how far their latencies are apart."""
    for name, spec in specs(args).items():
        tag = f"{args.turn}-{name}"
        ways = {"first": [], "second": [], "realtime": ["--realtime"]}
        folders = {way: stream(args, f"repeat-{tag}-{way}", spec, REPEATED, *more) for way, more in ways.items()}
        print(f"{name}: load {', '.join(f'{load:.1f}' for load in os.getloadavg())} on {os.cpu_count()} cores")
        for config in REPEATED:
            entries = {way: load(folder)["configs"][config] for way, folder in folders.items()}
            for figure in ("settle", "settle_p95", "endpoint"):
                first, second, realtime = (figure_of(entry, figure) or float("nan") for entry in entries.values())
                print(
                    f"  {config.removeprefix('en-phone_')} {figure}: {first:.3f} and {second:.3f} s "
                    f"({100 * abs(second / first - 1):.1f} % apart), in real time {realtime:.3f} s "
                    f"({100 * abs(realtime / first - 1):.1f} %)"
                )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("streaming"))
    parser.add_argument("--prompts", type=int, default=12)
    parser.add_argument("--digits", type=int, default=4, help="strings of five digits")
    parser.add_argument("--models", nargs="+", default=["pocketsphinx", "moonshine"])
    parser.add_argument("--whisper", default=str(Path.home() / ".cache/srb/whisper-tiny.en"))
    parser.add_argument("--vosk", default="vosk-model-small-en")
    parser.add_argument("--processor-time", action="store_true", help="for a machine that is busy otherwise")
    parser.add_argument("--repeats", type=int, default=1, help="for a busy machine: the quickest of each call counts")
    parser.add_argument("--repeat", action="store_true")
    parser.add_argument("--turn", default="0", help="of --repeat: another word begins anew")
    args = parser.parse_args()
    if not TEXTS.is_file() or not SOUNDS.is_dir():
        sys.exit("install the recordings: apt install asterisk-core-sounds-en asterisk-core-sounds-en-g722")
    make_corpus(args.out / "corpus", args.prompts)
    add_digits(args.out / "corpus", args.digits)
    if args.repeat:
        repeat(args)
    else:
        table({name: stream(args, name, spec, CONFIGS) for name, spec in specs(args).items()})
    return 0


if __name__ == "__main__":
    sys.exit(main())
