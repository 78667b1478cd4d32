"""Scoring is not slower than jiwer. How much faster it is (five times or more) is measured by benchmarks/metrics.py."""

import random
import time

import jiwer

from speech_robust_bench.scoring.scoring import align


def test_it_takes_no_more_processor_time_than_jiwer():
    rng = random.Random(0)
    words = [f"word{i}" for i in range(3000)]
    said = [rng.choices(words, k=20) for _ in range(600)]
    hypotheses = [" ".join(w if rng.random() > 0.2 else rng.choice(words) for w in text) for text in said]
    said = [" ".join(text) for text in said]
    ours, theirs = [], []
    for _ in range(5):  # in turns, so that a busy machine is busy for both
        for seconds, function in (
            (ours, lambda: align(said, hypotheses, normaliser="none").rate / 100),
            (theirs, lambda: jiwer.wer(said, hypotheses)),
        ):
            start = time.process_time()
            result = function()
            seconds.append((time.process_time() - start, result))
    assert abs(ours[0][1] - theirs[0][1]) < 1e-12
    assert min(theirs)[0] > min(ours)[0]
