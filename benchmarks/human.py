"""Robustness on human recordings: Debian's Asterisk prompts, spoken by Allison Smith, under five scenarios.

    apt install asterisk-core-sounds-en asterisk-core-sounds-en-g722 ffmpeg
    python benchmarks/human.py --out /tmp/human [--prompts 60]

Makes a plain-folder corpus of prompts of 4 to 12 words (G.722 decoded by ffmpeg; nothing of it is kept in the
repository), builds clean, noise, gaussian, lowpass, tempo_up and rir at four severities, runs moonshine and
pocketsphinx, scores, prints the table, and says whether WERD rises with severity. It can be interrupted and repeated.
"""

from __future__ import annotations

import argparse
import gzip
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

from speech_robust_bench.cli.main import main as srb
from speech_robust_bench.cli.start import MODELS
from speech_robust_bench.scoring import aggregate
from speech_robust_bench.scoring.bootstrap import interval
from speech_robust_bench.scoring.runs import open_run

SOUNDS = Path("/usr/share/asterisk/sounds/en_US_f_Allison")
TEXTS = Path("/usr/share/doc/asterisk-core-sounds-en/core-sounds-en.txt.gz")
SCENARIOS = ("noise", "gaussian", "lowpass", "tempo_up", "rir")
SEVERITIES = (1, 2, 3, 4)
MOST_CLEAN_WER = 15.0


def prompts(count: int) -> dict[str, str]:
    """Name -> text of prompts of 4 to 12 plain words, spread evenly over the list."""
    with gzip.open(TEXTS, "rt", encoding="utf-8") as file:
        pairs = (line.strip().split(": ", 1) for line in file if ": " in line and not line.startswith(";"))
        known = {
            name: text
            for name, text in pairs
            if 4 <= len(text.split()) <= 12
            and re.fullmatch(r"[A-Za-z' ,.?!-]+", text)
            and not re.search(r"[A-Z]{2}", text)  # spelled-out names such as PBX
            and (SOUNDS / f"{name}.g722").is_file()
        }
    names = sorted(known)
    step = max(1, len(names) // count)
    return {name: known[name] for name in names[::step][:count]}


def make_corpus(folder: Path, count: int) -> int:
    """FLAC files and their texts, as `srb build` takes them."""
    folder.mkdir(parents=True, exist_ok=True)
    chosen = prompts(count)
    for name, text in chosen.items():
        stem = folder / name.replace("/", "-")
        if not stem.with_suffix(".txt").is_file():
            source = ["-f", "g722", "-i", str(SOUNDS / f"{name}.g722")]
            target = ["-ar", "16000", "-ac", "1", "-sample_fmt", "s16", f"{stem}.flac"]
            subprocess.run(["ffmpeg", "-v", "error", "-y", *source, *target], check=True)
            stem.with_suffix(".txt").write_text(text + "\n", encoding="utf-8")
    return len(chosen)


def summary(folder: Path) -> bool:
    """Print WERD over severity, and whether clean WER and every curve are as they should be.

    A curve rises if severity 4 costs more than severity 1 and no step falls, by paired bootstrap: with 60 prompts, a
    fall by one word of 400 means nothing.
    """
    run = open_run(folder)
    scores = {score.config: score for score in aggregate.score(run.counts())}
    clean = scores["en-prompts_clean"].values["wer"]
    print(f"\n{run.model}: clean WER {clean:.1f}; WERD at severities 1 to 4:")
    good = clean < MOST_CLEAN_WER or not run.model.startswith("moonshine")
    for scenario in SCENARIOS:
        curve = [scores[f"en-prompts_{scenario}_sev{severity}"] for severity in SEVERITIES]
        draws = [score.replicates["werd"] for score in curve]
        in_all = interval(draws[-1] - draws[0])[0] > 0
        falls = any(interval(after - before)[1] < 0 for before, after in pairwise(draws))
        good &= in_all and not falls
        shown = " ".join(f"{score.values['werd']:6.1f}" for score in curve)
        print(f"  {scenario:<10}{shown}  {'rises' if in_all and not falls else 'DOES NOT RISE'}")
    return good


def main() -> int:
    parser = argparse.ArgumentParser(description="Robustness on the Debian Asterisk prompts.")
    parser.add_argument("--out", type=Path, default=Path("human"))
    parser.add_argument("--prompts", type=int, default=60)
    args = parser.parse_args()
    if not TEXTS.is_file() or not SOUNDS.is_dir():
        sys.exit("install the recordings: apt install asterisk-core-sounds-en asterisk-core-sounds-en-g722")
    count = make_corpus(args.out / "corpus", args.prompts)
    print(f"{count} prompts")
    configs = ["en-prompts_clean", *(f"en-prompts_{name}_sev{n}" for name in SCENARIOS for n in SEVERITIES)]
    data, runs = str(args.out / "srb"), args.out / "runs"
    folders = [runs / name for name in MODELS]
    commands = [
        ["build", *configs, "--corpus", f"en-prompts={args.out / 'corpus'}", "--out", data],
        *(
            ["run", "--model", spec, "--name", name, "--data", data, "--out", str(runs), *configs]
            for name, spec in MODELS.items()
        ),
        ["score", *map(str, folders)],
        ["table", *map(str, folders)],
    ]
    for command in commands:
        if code := srb(command):
            return code
    good = [summary(folder) for folder in folders]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
