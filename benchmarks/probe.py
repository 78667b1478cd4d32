"""A probe above Whisper tiny.en's encoder, beside one above the same architecture with random weights.

    apt install asterisk-core-sounds-en asterisk-core-sounds-en-g722 ffmpeg
    python -m tests.support.whisper_weights        # Whisper tiny.en as a transformers folder
    python benchmarks/probe.py --out /tmp/probe

Learns from Debian's Asterisk prompts (human speech of one woman), with a window of 6 s; every eighth prompt is kept for
the test. Then those, clean and under noise at severities 2 and 4, by both probes and by Whisper itself, and with
`--augmented` by a probe that was trained on perturbed speech without noise recordings. Minutes on one core; it can be
interrupted and repeated.
"""

from __future__ import annotations

import argparse
import gzip
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

from human import SOUNDS, TEXTS

from speech_robust_bench.cli.main import main as srb
from speech_robust_bench.scoring import aggregate
from speech_robust_bench.scoring.runs import open_run

TEST_SHARE = 8
WINDOW = "?window_s=6"
SEVERITIES = (2, 4)
HEAD = [
    "--head",
    "linear",
    "--lr",
    "0.01",
    "--batch-size",
    "8",
    "--no-spec-augment",
    "--steps",
    "500",
    "--eval-every",
    "100",
]
# not the scenario of the test, nor another that adds recordings
AUGMENT = ["--train-augment", "gaussian", "spatial", "sfx", "audio_proc", "codec", "--held-out", "noise_env"]


def texts() -> dict[str, str]:
    """Name -> text of the prompts of 2 to 14 plain words."""
    with gzip.open(TEXTS, "rt", encoding="utf-8") as file:
        pairs = dict(line.strip().split(": ", 1) for line in file if ": " in line and not line.startswith(";"))
    return {
        name: text
        for name, text in sorted(pairs.items())
        if 2 <= len(text.split()) <= 14
        and re.fullmatch(r"[A-Za-z' ,.?!-]+", text)
        and (SOUNDS / f"{name}.g722").is_file()
    }


def make_corpora(folder: Path) -> None:
    """`train` and `test`, as plain folders."""
    known = texts()
    words = Counter(re.sub(r"\W+", " ", text).lower().strip() for text in known.values())
    for number, (name, text) in enumerate(known.items()):
        tested = number % TEST_SHARE == 0 and words[re.sub(r"\W+", " ", text).lower().strip()] == 1
        part = folder / ("test" if tested else "train")
        part.mkdir(parents=True, exist_ok=True)
        recorded = part / name.replace("/", "-")
        if not recorded.with_suffix(".txt").is_file():
            decode(["-f", "g722", "-i", str(SOUNDS / f"{name}.g722")], recorded, text)


def decode(source: list[str], stem: Path, text: str) -> None:
    """A 16 kHz FLAC file and its text."""
    target = ["-ar", "16000", "-ac", "1", "-sample_fmt", "s16", f"{stem}.flac"]
    subprocess.run(["ffmpeg", "-v", "error", "-y", *source, *target], check=True)
    stem.with_suffix(".txt").write_text(text + "\n", encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description="A probe above Whisper's encoder.")
    parser.add_argument("--out", type=Path, default=Path("probe"))
    parser.add_argument("--whisper", default=str(Path("~/.cache/srb/whisper-tiny.en").expanduser()))
    parser.add_argument("--own", help="Whisper itself, as a model of srb run (default: hf:WHISPER)")
    parser.add_argument("--augmented", action="store_true", help="also a probe on perturbed speech")
    args = parser.parse_args()
    make_corpora(args.out / "corpus")
    train = ["probe", "train", "--corpus", f"en-prompts={args.out / 'corpus' / 'train'}", *HEAD]
    cache = ["--cache-features", str(args.out / "features")]
    probes = {
        "probe": [f"hf:{args.whisper}{WINDOW}", *cache],
        "probe-random": [f"random:{args.whisper}{WINDOW}", *cache],
    }
    if args.augmented:
        probes["probe-augmented"] = [f"hf:{args.whisper}{WINDOW}", *AUGMENT]
    for name, (upstream, *more) in probes.items():
        if code := srb([*train, "--upstream", upstream, "--out", str(args.out / name), *more]):
            return code
    configs = ["en-prompts_clean", *(f"en-prompts_noise_sev{severity}" for severity in SEVERITIES)]
    models = {
        **{name: f"probe:{args.out / name}" for name in probes},
        "whisper-tiny.en": args.own or f"hf:{args.whisper}",
    }
    corpus = ["--corpus", f"en-prompts={args.out / 'corpus' / 'test'}"]
    for name, spec in models.items():
        run = ["run", "--model", spec, "--name", name, "--out", str(args.out / "runs"), *configs, *corpus]
        if code := srb(run):
            return code
    srb(["probe", "layers", *(str(args.out / name) for name in probes), "--out", str(args.out / "layers.svg")])
    for name in models:
        scores = {score.config: score for score in aggregate.score(open_run(args.out / "runs" / name).counts())}
        clean, *noisy = (scores[config] for config in configs)
        shown = " ".join(f"{score.values['werd']:6.1f}" for score in noisy)
        print(f"{name:<16} clean WER {clean.values['wer']:6.1f}, WERD under noise {SEVERITIES}: {shown}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
