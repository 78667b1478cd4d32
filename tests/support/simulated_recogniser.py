"""Recognisers with known error rates: what the tests and the measurements of speed and stability are made with."""

from __future__ import annotations

import numpy as np

from speech_robust_bench.scoring.word_errors import Coded


def sentences(count: int, words: int, vocabulary: int, rng: np.random.Generator) -> Coded:
    """References of about so many words each, of a vocabulary in which word n is n times rarer than the first."""
    lengths = np.maximum(rng.poisson(words, count), 1)
    shares = 1 / np.arange(1, vocabulary + 1)
    drawn = rng.choice(vocabulary, size=int(lengths.sum()), p=shares / shares.sum())
    return Coded(drawn.astype(np.int32), np.concatenate([[0], np.cumsum(lengths)]))


def transcripts(reference: Coded, rates: np.ndarray, vocabulary: int, rng: np.random.Generator) -> Coded:
    """What a recogniser writes that gets each word of clip i wrong with probability `rates[i]`.

    Of the errors 60 % are substitutions, 20 % deletions, and 20 % insert a word after the right one.
    """
    owner = reference.owner
    fate = rng.random(len(owner)) / np.maximum(np.asarray(rates, dtype=float)[owner], 1e-12)
    wrong = rng.integers(vocabulary, size=len(owner)).astype(np.int32)
    times = np.select([fate < 0.6, fate < 0.8, fate < 1], [1, 0, 2], 1)
    words = np.repeat(np.where(fate < 0.6, wrong, reference.words), times)
    last = np.cumsum(times) - 1  # where the copies of each word end
    second = last[times == 2]
    words[second] = wrong[times == 2]
    ends = np.bincount(owner, times, minlength=len(reference)).astype(np.int64)
    return Coded(words, np.concatenate([[0], np.cumsum(ends)]))


def as_texts(coded: Coded) -> list[str]:
    """The transcripts as text; word 7 is written `w7`."""
    words = [f"w{number}" for number in coded.words.tolist()]
    return [" ".join(words[a:b]) for a, b in zip(coded.starts[:-1], coded.starts[1:], strict=True)]
