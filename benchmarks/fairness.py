"""How fast is the fairness analysis? 100,000 utterances at 40 levels of simulated predictions, on one core.

    python benchmarks/fairness.py [--utterances 100000] [--levels 40] [--words 20] [--recognisers 1] [--files DIR]
    python benchmarks/fairness.py --false-alarms

What is timed: numbering the words of every transcript, Algorithm 1 with transcripts (and between each two recognisers)
with 1,000 bootstrap replicates, and Algorithm 2 with and without transcripts. Transcripts are made before the clock
starts, as strings, level by level. With --files, run folders are written first and `assess` reads them, JSON and all.
Seconds are CPU time of this process.

--false-alarms measures something else: how often two groups with the same error rates make a violation at tau 0.05, by
the paper's bare rule and beyond noise, for several group sizes.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import time
from pathlib import Path

# One core: before numpy loads its BLAS.
os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1", NUMBA_NUM_THREADS="1")

import numpy as np

from srb.diagnosis import simulate
from srb.diagnosis.aequevox import compare_groups, group_clips, table4
from srb.diagnosis.coding import Vocabulary, align
from srb.diagnosis.gather import ClipSet, Heard, with_transcripts, without_transcripts
from srb.diagnosis.localise import localise, table9

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
    options.add_argument("--files", metavar="DIR")
    options.add_argument("--false-alarms", action="store_true")
    args = options.parse_args()
    if args.false_alarms:
        false_alarms()
        return
    rng = np.random.default_rng(0)
    labels = np.array(["female", "male"] * (args.utterances // 2 + 1))[: args.utterances]
    reference = simulate.sentences(args.utterances, args.words, WORDS, rng)
    models = [f"model{i}" for i in range(args.recognisers)]
    configs = ["en_clean", *names(args.levels)]

    def heard(config: str) -> list[str]:
        severity = 0 if config == "en_clean" else int(config[-1])
        return simulate.as_texts(simulate.transcripts(reference, rates(labels, severity, rng), WORDS, rng))

    if args.files:
        seconds = from_files(Path(args.files), models, configs, labels, simulate.as_texts(reference), heard)
    else:
        seconds = in_memory(models, configs, labels, simulate.as_texts(reference), heard)
    pairs = args.utterances * args.levels * args.recognisers
    print(
        f"{args.utterances} utterances x {args.levels} levels x {args.recognisers} recognisers, {args.words} words each"
    )
    for what, value in seconds.items():
        print(f"{what:<32}{value:8.1f} s  {1e6 * value / pairs:7.2f} us per transcript")
    print(f"{'all':<32}{sum(seconds.values()):8.1f} s")
    memory_gb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"most memory {memory_gb:.1f} GB; {platform.machine()}, numpy {np.__version__}")


def false_alarms(trials: int = 150, levels: int = 6, tau: float = 0.05) -> None:
    print("clips in a group    tests    bare rule    beyond noise")
    for clips in (8, 15, 40, 120):
        found = []
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
            made = Heard(
                ClipSet("en_clean", tuple(configs[1:]), ids, (None,) * len(ids), {}), Vocabulary(), reference, coded
            )
            groups = {"a": np.arange(clips), "b": np.arange(clips, 2 * clips)}
            for one in with_transcripts(made) + without_transcripts(made):
                found += compare_groups(one, groups, replicates=200)[1]
        bare = np.mean([c.violates(tau) for c in found])
        kept = np.mean([c.violates(tau) and not c.within_noise for c in found])
        print(f"{clips:>16}{len(found):>9}{100 * bare:>10.1f} %{100 * kept:>13.1f} %")


def in_memory(models, configs, labels, said, heard) -> dict[str, float]:
    seconds: dict[str, float] = {}

    def clock(what: str, start: float) -> None:
        seconds[what] = seconds.get(what, 0) + time.process_time() - start

    vocabulary = Vocabulary()
    warm = vocabulary.encode(["a b", "b"])
    align(warm, warm)  # compiled, or read from Numba's cache, before the clock starts
    start = time.process_time()
    reference = vocabulary.encode(said)
    clock("numbering words", start)
    coded: dict[str, dict] = {model: {} for model in models}
    for config in configs:
        for model in models:
            texts = heard(config)
            start = time.process_time()
            coded[model][config] = vocabulary.encode(texts)
            clock("numbering words", start)
    ids = tuple(f"clip-{i:06}" for i in range(len(labels)))
    clips = ClipSet("en_clean", tuple(configs[1:]), ids, (None,) * len(ids), {})
    made = Heard(clips, vocabulary, reference, coded)
    groups = group_clips(labels.tolist(), "gender")
    start = time.process_time()
    measured = with_transcripts(made) + without_transcripts(made)
    clock("alignment", start)
    start = time.process_time()
    found = [c for one in measured for c in compare_groups(one, groups)[1]]
    table4(found)
    clock("Algorithm 1, 1000 replicates", start)
    for transcripts in (False, True):
        start = time.process_time()
        table9(localise(made, groups, transcripts=transcripts))
        clock(f"Algorithm 2, {'with' if transcripts else 'without'} transcripts", start)
    worse = sum(c.base == "female" and c.violates(0.01) and not c.within_noise for c in found)
    print(f"violations for female speakers beyond noise, tau 0.01: {worse} of {len(found) // 2} comparisons")
    return seconds


def from_files(folder: Path, models, configs, labels, said, heard) -> dict[str, float]:
    from srb.diagnosis.fairness import Options, assess
    from srb.metrics.runs import open_run

    for model in models:
        (folder / model).mkdir(parents=True)
        about = {}
        for config in configs:
            with open(folder / model / f"{config}.jsonl", "w", encoding="utf-8") as file:
                for i, (text, wrote) in enumerate(zip(said, heard(config), strict=True)):
                    line = {"id": f"clip-{i:06}", "duration": 8.0, "time": 0.1, "text": text, "pred_text": wrote}
                    file.write(json.dumps(line | {"speaker": None, "gender": str(labels[i])}) + "\n")
            about[config] = {"category": "aequevox", "source": None if config == "en_clean" else "en_clean"}
        (folder / model / "run.json").write_text(json.dumps({"model": model, "configs": about}))
    start = time.process_time()
    assess([open_run(folder / model) for model in models], Options(comprehensible=0))
    return {"from files to all tables": time.process_time() - start}


if __name__ == "__main__":
    main()
