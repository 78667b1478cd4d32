"""Scoring stays much faster than jiwer. The figures that are promised are measured by benchmarks/metrics.py."""

import random
import time

import jiwer

from srb.metrics.scoring import align


def test_at_least_three_times_as_fast_as_jiwer():
    rng = random.Random(0)
    words = [f"word{i}" for i in range(3000)]
    said = [rng.choices(words, k=20) for _ in range(600)]
    heard = [" ".join(w if rng.random() > 0.2 else rng.choice(words) for w in text) for text in said]
    said = [" ".join(text) for text in said]
    ours, theirs = [], []
    for _ in range(5):  # in turns, so that a busy machine is busy for both
        for seconds, function in (
            (ours, lambda: align(said, heard, normaliser="none").rate / 100),
            (theirs, lambda: jiwer.wer(said, heard)),
        ):
            start = time.process_time()
            result = function()
            seconds.append((time.process_time() - start, result))
    assert abs(ours[0][1] - theirs[0][1]) < 1e-12
    assert min(theirs)[0] > 3 * min(ours)[0]
