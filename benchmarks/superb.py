r"""SUPERB-SG's heads for enhancement, separation and voice conversion on LibriSpeech clips, trained for minutes.

    python benchmarks/superb.py FOLDER --corpus LibriSpeech/dev-clean --test LibriSpeech/test-clean \
        --upstream FOLDER_OF_WHISPER?window_s=4

Each task is trained above a trained encoder and above the same one with random weights, on the same clips and for as
many steps. Printed is the dev part's score; of enhancement also that of other clips, of conversion that of other
speakers' clips in the target's voice.
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

import soundfile

import speech_robust_bench as srb

SECONDS = (2.0, 4.0)
TRAIN = ("3752", 10, 8)  # the target, which has most short clips in dev-clean; other speakers, clips of each
TEST = ("1089", 20, 2)  # of test-clean, for the mixtures
QUICK = {
    "separation": srb.SuperbOptions(steps=500, batch_size=6, units=96, lr=2e-3, dropout=0.0, eval_every=125),
    "enhancement": srb.SuperbOptions(steps=60, batch_size=6, units=64, lr=3e-3, dropout=0.0, eval_every=30),
    "conversion": srb.SuperbOptions(
        steps=120, batch_size=6, units=128, lr=2e-3, dropout=0.0, warmup=10, decay="none", eval_every=40
    ),
}


def small_corpus(root: Path, out: Path, target: str, count: int, most: int) -> Path:
    """Short clips of the target and the first of some other speakers, copied in LibriSpeech's layout."""
    speakers = sorted(folder.name for folder in root.iterdir() if folder.is_dir())
    for speaker in sorted({target, *speakers[:count]}):
        texts = dict(
            line.split(" ", 1)
            for path in sorted((root / speaker).rglob("*.trans.txt"))
            for line in path.read_text().splitlines()
        )
        clips = [
            path
            for path in sorted((root / speaker).rglob("*.flac"))
            if SECONDS[0] <= soundfile.info(path).duration <= SECONDS[1]
        ]
        for path in clips if speaker == target else clips[:most]:
            folder = out / speaker / path.parent.name
            folder.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, folder)
            with (folder / f"{speaker}-{path.parent.name}.trans.txt").open("a") as file:
                file.write(f"{path.stem} {texts[path.stem]}\n")
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--test", type=Path, help="another part of LibriSpeech, on which enhancement is tested")
    parser.add_argument("--upstream", required=True)
    parser.add_argument("--asr", default="moonshine")
    parser.add_argument("--tasks", nargs="+", default=list(QUICK))
    parser.add_argument("--kinds", nargs="+", default=["hf", "random"])
    args = parser.parse_args()
    clips = args.out / "clips"
    if not clips.is_dir():
        small_corpus(args.corpus, clips, *TRAIN)
    data = srb.SuperbData(corpus={"en": clips}, target=TRAIN[0], scenarios=["gaussian"])
    for task in args.tasks:
        for kind in args.kinds:
            folder = args.out / f"{task}-{kind}"
            record = srb.train_superb_head(
                task, f"{kind}:{args.upstream}", folder, data, superb_options=QUICK[task], progress=False
            )
            print(task, kind, f"dev, best at step {record.best.step}:", record.best.scores.as_json(), flush=True)
            if task == "enhancement" and args.test:
                others = args.out / "test-clips"
                if not others.is_dir():
                    small_corpus(args.test, others, *TEST)
                tested = srb.SuperbData(corpus={"en": others}, scenarios=["gaussian"])
                print(task, kind, srb.score_superb_head(folder, tested, progress=False), flush=True)
            if task == "conversion":
                tests = srb.score_superb_head(
                    folder, data, asr=args.asr, limit=10, under=["gaussian_sev2"], progress=False
                )
                for name, scores in tests.items():
                    print(task, kind, f"{name}:", scores.as_json(), flush=True)


if __name__ == "__main__":
    main()
