"""How fast is scoring? 114 configs of 2,620 LibriSpeech-like utterances with 1,000 bootstrap replicates, on one core.

    python benchmarks/metrics.py [--configs 114] [--utterances 2620] [--replicates 1000]

Prints a table with the machine and versions. Times are CPU time of this process, so that others do not disturb much.
`evaluate`'s wer and jiwer are timed on one config of the same pairs, after the same normalisation, and must give the
same number.
"""

from __future__ import annotations

import argparse
import os
import platform
import random
import time
from importlib import metadata

# One core: before numpy loads its BLAS.
os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")


def made_up(utterances: int, configs: int, seed: int = 0) -> tuple[list[str], list[list[str]]]:
    """References of about 20 words, as in test-clean, of a Zipfian vocabulary, and predictions of rising WER."""
    rng = random.Random(seed)
    vocabulary = ["".join(rng.choices("etaoinshrdlu", k=rng.randint(1, 9))) for _ in range(8000)]
    shares = [1 / rank for rank in range(1, len(vocabulary) + 1)]
    references = [rng.choices(vocabulary, shares, k=max(1, int(rng.gammavariate(3, 6.7)))) for _ in range(utterances)]
    spare = iter(rng.choices(vocabulary, shares, k=4 * configs * sum(map(len, references)) // 3 + 1000))

    def heard(words: list[str], wer: float) -> str:
        wer *= rng.gammavariate(0.5, 2)  # few utterances have most of the errors, as in real transcripts
        out = []
        for word in words:
            chance = rng.random()
            if chance > wer:
                out.append(word)
            elif chance < 0.6 * wer:
                out.append(next(spare))
            elif chance < 0.8 * wer:
                out += [word, next(spare)]
        return " ".join(out).capitalize() + "."

    wers = [0.04 + 0.6 * c / max(configs - 1, 1) for c in range(configs)]
    return [" ".join(r) for r in references], [[heard(r, wer) for r in references] for wer in wers]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--configs", type=int, default=114)
    options.add_argument("--utterances", type=int, default=2620)
    options.add_argument("--replicates", type=int, default=1000)
    args = options.parse_args()
    references, predictions = made_up(args.utterances, args.configs + 1)

    import evaluate
    import jiwer

    from speech_robust_bench.scoring.aggregate import ConfigCounts, score, summarise
    from speech_robust_bench.scoring.scoring import align, normalise

    ids = [f"clip-{i:05}" for i in range(args.utterances)]
    names = [f"en_noise{i // 4}_sev{i % 4 + 1}" for i in range(args.configs)]

    def race(*functions, rounds=5):
        """The least CPU time of each, taken in turns so that a busy machine is busy for all, and what each returned."""
        seconds, results = [float("inf")] * len(functions), [None] * len(functions)
        for _ in range(rounds):
            for i, function in enumerate(functions):
                start = time.process_time()
                results[i] = function()
                seconds[i] = min(seconds[i], time.process_time() - start)
        return seconds, results

    started = time.process_time()
    counts = [ConfigCounts("en_clean", "clean", ids, align(references, predictions[0]))]
    counts += [
        ConfigCounts(name, "noise_env", ids, align(references, heard), "en_clean")
        for name, heard in zip(names, predictions[1:], strict=True)
    ]
    aligned = time.process_time()
    summarise(score(counts, replicates=args.replicates))
    ended = time.process_time()

    some = predictions[1 :: max(1, args.configs // 8)]
    refs, hyps = [normalise(r) for r in references], [[normalise(p) for p in heard] for heard in some]
    evaluates = _evaluate_wer(evaluate)
    (ours_s, jiwer_s, evaluate_s), (ours, theirs, others) = race(
        lambda: [align(refs, heard, normaliser="none").rate / 100 for heard in hyps],
        lambda: [jiwer.wer(refs, heard) for heard in hyps],
        lambda: [evaluates(refs, heard) for heard in hyps],
    )
    worst = max(abs(a - b) for a, b in zip(ours * 2, theirs + others, strict=True))
    assert worst < 1e-12

    versions = {p: metadata.version(p) for p in ("numpy", "rapidfuzz", "jiwer", "evaluate")}
    print(
        f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()},",
        end=" ",
    )
    print(", ".join(f"{name} {version}" for name, version in versions.items()))
    print(f"{args.configs} configs x {args.utterances} utterances, {args.replicates} replicates, one core, CPU time")
    print(f"  normalise and align        {aligned - started:7.2f} s")
    print(f"  bootstrap and aggregate    {ended - aligned:7.2f} s")
    print(f"  together                   {ended - started:7.2f} s   (target: under 5 s)")
    each = 1000 / len(some)
    print(
        f"WER of one config, mean of {len(some)} with WER {min(ours):.2f} to {max(ours):.2f}, best of 5 rounds;",
        end=" ",
    )
    print(f"largest difference {worst:.0e}")
    print(f"  srb                        {each * ours_s:7.1f} ms")
    print(f"  jiwer                      {each * jiwer_s:7.1f} ms  {jiwer_s / ours_s:5.1f} x   (target: 5 x)")
    print(f"  evaluate's wer             {each * evaluate_s:7.1f} ms  {evaluate_s / ours_s:5.1f} x   (target: 10 x)")


def _evaluate_wer(evaluate):
    """evaluate's `wer`, whose file is on the Hub, as it is there: an evaluate.Metric with jiwer once per utterance."""
    import datasets
    from jiwer import process_words

    class Wer(evaluate.Metric):
        def _info(self):
            text = datasets.Value("string")
            return evaluate.MetricInfo(
                description="", citation="", features=datasets.Features({"predictions": text, "references": text})
            )

        def _compute(self, predictions, references):
            incorrect = total = 0
            for prediction, reference in zip(predictions, references, strict=True):
                measures = process_words(reference, prediction)
                incorrect += measures.substitutions + measures.deletions + measures.insertions
                total += measures.substitutions + measures.deletions + measures.hits
            return {"wer": incorrect / total}

    metric = Wer()
    return lambda references, predictions: metric.compute(references=references, predictions=predictions)["wer"]


if __name__ == "__main__":
    main()
