"""The random stream of one clip in one config.

It is a pure function of (benchmark version, corpus, clip id, scenario, severity), so a config has the same bytes on
every machine, with any number of workers, on any engine, whatever else is built beside it.
"""

from __future__ import annotations

import hashlib
from functools import cached_property
from typing import Any, cast

import numpy as np

# Part of every stream: raise it only together with a new edition of the benchmark data.
BENCHMARK_VERSION = "1"


def clip_rng(corpus: str, clip_id: str, scenario: str, severity: int, seed: str = "") -> np.random.Generator:
    """The stream of one clip under one scenario and severity; `seed` sets apart a user's own variations."""
    key = "\x1f".join((BENCHMARK_VERSION, corpus, clip_id, scenario, str(severity), seed))
    return cast(np.random.Generator, _Stream(key))


class _Stream:
    """A generator that is seeded when it is first drawn from: most scenarios never do, and seeding takes its time."""

    def __init__(self, key: str) -> None:
        self._key = key

    @cached_property
    def _generator(self) -> np.random.Generator:
        digest = hashlib.blake2b(self._key.encode(), digest_size=16).digest()
        return np.random.Generator(np.random.SFC64(int.from_bytes(digest, "little")))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._generator, name)


def content_id(samples: np.ndarray) -> str:
    """An id for a clip that has no other: the hash of its samples, wherever the file lies."""
    return hashlib.blake2b(np.ascontiguousarray(samples).tobytes(), digest_size=16).hexdigest()
