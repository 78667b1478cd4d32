"""The random stream of one clip in one config.

It is a pure function of (benchmark version, corpus, clip id, scenario, severity), so a config has the same bytes on
every machine, with any number of workers, on any engine, whatever else is built beside it.
"""

from __future__ import annotations

import hashlib

import numpy as np

# Part of every stream: raise it only together with a new edition of the benchmark data.
BENCHMARK_VERSION = "1"


def clip_rng(corpus: str, clip_id: str, scenario: str, severity: int, seed: str = "") -> np.random.Generator:
    """The stream of one clip under one scenario and severity; `seed` sets apart a user's own variations."""
    key = "\x1f".join((BENCHMARK_VERSION, corpus, clip_id, scenario, str(severity), seed))
    digest = hashlib.blake2b(key.encode(), digest_size=16).digest()
    return np.random.Generator(np.random.SFC64(int.from_bytes(digest, "little")))


def content_id(samples: np.ndarray) -> str:
    """An id for a clip that has no other: the hash of its samples, wherever the file lies."""
    return hashlib.blake2b(np.ascontiguousarray(samples).tobytes(), digest_size=16).hexdigest()
