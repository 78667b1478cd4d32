"""How fast is the fairness analysis? 100,000 utterances at 40 levels of simulated predictions, on one core.

    python benchmarks/fairness.py [--utterances 100000] [--levels 40] [--words 20] [--recognisers 1] [--out DIR]
    python benchmarks/fairness.py --false-alarms

Run folders are written first, 1.5 GB at these sizes; those of an earlier call in --out are taken again. Timed is all
that `srb fairness` does with them: reading, numbering and aligning words, Algorithm 1 with transcripts (and between
each two recognisers) with 1,000 bootstrap replicates, Algorithm 2 with and without transcripts, and the disparities.

--false-alarms measures something else: how often two groups with the same error rates make a violation at tau 0.05, by
the paper's bare rule and beyond noise, for several group sizes.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import tempfile
import time
from pathlib import Path

# One core: before numpy loads its BLAS.
os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1", NUMBA_NUM_THREADS="1")

import numpy as np

from speech_robust_bench.extensions.fairness.assessment import FairnessOptions, assess
from speech_robust_bench.extensions.fairness.violations import compare_groups
from speech_robust_bench.scoring.clip_sets import ClipSet, TranscribedSet, with_transcripts, without_transcripts
from speech_robust_bench.scoring.runs import open_run
from speech_robust_bench.scoring.word_errors import Vocabulary, align
from tests.support import simulated_recogniser as simulate

WORDS = 10_000
KINDS = ("amplitude", "clipping", "drop", "frame", "highpass", "lowpass", "noise", "scale")


def names(levels: int) -> list[str]:
    return [f"en_aeq_{KINDS[i // 5 % 8]}_sev{i % 5 + 1}" for i in range(levels)]


def rates(labels: np.ndarray, severity: int, rng: np.random.Generator) -> np.ndarray:
    """Women lose a little more; clips differ."""
    wer = 0.05 + 0.08 * severity + 0.02 * severity * (labels == "female")
    return np.clip(wer * rng.gamma(2, 0.5, len(labels)), 0, 0.95)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--utterances", type=int, default=100_000)
    options.add_argument("--levels", type=int, default=40)
    options.add_argument("--words", type=int, default=20)
    options.add_argument("--recognisers", type=int, default=1)
    options.add_argument("--out", metavar="DIR", help="where the run folders go and stay (default: a temporary folder)")
    options.add_argument("--false-alarms", action="store_true")
    args = options.parse_args()
    if args.false_alarms:
        false_alarms()
        return
    with tempfile.TemporaryDirectory() as scratch:
        folders = write_runs(Path(args.out or scratch), args)
        kernels_ready()
        wall, cpu = time.perf_counter(), time.process_time()
        assessment = assess([open_run(folder) for folder in folders], FairnessOptions(comprehensible=0))
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    counts = assessment.table4["transcripts"].beyond_noise["tau sensitivity"]["0.01"]
    levels = args.levels * args.recognisers
    print(f"violations beyond noise at tau 0.01, of {levels} levels: {counts['female']} female, {counts['male']} male")
    sizes = (
        f"{args.utterances} utterances x {args.levels} levels x {args.recognisers} recognisers, {args.words} words each"
    )
    print(f"{sizes}: {wall:.1f} s, {cpu:.1f} s of CPU")
    memory_gb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"most memory {memory_gb:.1f} GB; {platform.machine()}, numpy {np.__version__}")


def write_runs(out: Path, args: argparse.Namespace) -> list[Path]:
    """Run folders as `srb run` makes them."""
    rng = np.random.default_rng(0)
    labels = np.array(["female", "male"] * (args.utterances // 2 + 1))[: args.utterances]
    reference = simulate.sentences(args.utterances, args.words, WORDS, rng)
    said = simulate.as_texts(reference)
    configs = ["en_clean", *names(args.levels)]
    folders = [out / f"model{i}" for i in range(args.recognisers)]
    for folder in folders:
        if (folder / "run.json").is_file():
            continue
        folder.mkdir(parents=True)
        for config in configs:
            severity = 0 if config == "en_clean" else int(config[-1])
            predictions = simulate.as_texts(simulate.transcripts(reference, rates(labels, severity, rng), WORDS, rng))
            with open(folder / f"{config}.jsonl", "w", encoding="utf-8") as file:
                for i, (text, wrote) in enumerate(zip(said, predictions, strict=True)):
                    name, gender = f"clip-{i:06}", str(labels[i])
                    line = {"id": name, "audio_filepath": f"{config}/{name}.flac", "duration": 8.0, "time": 0.1}
                    line |= {"text": text, "pred_text": wrote, "speaker": None, "gender": gender, "age": None}
                    file.write(json.dumps(line | {"accent": None, "language": "en"}) + "\n")
        about = {c: {"category": "aequevox", "source": None if c == "en_clean" else "en_clean"} for c in configs}
        (folder / "run.json").write_text(json.dumps({"model": folder.name, "configs": about}))
    return folders


def kernels_ready() -> None:
    """Compiled, or read from Numba's cache, before the clock starts."""
    words = Vocabulary().encode(["a b", "b"])
    align(words, words)


def false_alarms(trials: int = 150, levels: int = 6, tau: float = 0.05) -> None:
    print("clips in a group    tests    bare rule    beyond noise")
    for clips in (8, 15, 40, 120):
        comparisons = []
        for seed in range(trials):
            rng = np.random.default_rng(seed)
            reference = simulate.sentences(2 * clips, 10, 500, rng)
            hard = rng.gamma(2, 0.5, 2 * clips)  # some clips are harder than others, at every level
            configs = ["en_clean", *names(levels)]
            wers = [np.clip(wer * hard, 0, 1) for wer in [0.08] + [0.25] * levels]
            coded = {
                model: {c: simulate.transcripts(reference, wer, 500, rng) for c, wer in zip(configs, wers, strict=True)}
                for model in ("one", "two")
            }
            ids = tuple(f"clip-{i}" for i in range(2 * clips))
            transcribed = TranscribedSet(
                ClipSet("en_clean", tuple(configs[1:]), ids, (None,) * len(ids), {}), Vocabulary(), reference, coded
            )
            groups = {"a": np.arange(clips), "b": np.arange(clips, 2 * clips)}
            for measured in with_transcripts(transcribed) + without_transcripts(transcribed):
                comparisons += compare_groups(measured, groups, replicates=200)[1]
        bare = np.mean([c.violates(tau) for c in comparisons])
        kept = np.mean([c.violates(tau) and not c.within_noise for c in comparisons])
        print(f"{clips:>16}{len(comparisons):>9}{100 * bare:>10.1f} %{100 * kept:>13.1f} %")


if __name__ == "__main__":
    main()
