"""A scenario: the first part of a clip is played backwards."""

from __future__ import annotations

import numpy as np

from speech_robust_bench.builders.scenario import Scenario


def backwards(samples: np.ndarray, rate: int, seconds: float, rng: np.random.Generator) -> np.ndarray:
    """The clip with its first seconds reversed."""
    end = min(round(seconds * rate), len(samples))
    return np.concatenate([samples[:end][::-1], samples[end:]]).astype(np.float32)


BACKWARDS = Scenario(
    "backwards", "sfx", "first seconds reversed", "an example", backwards, "duration_s", (0.1, 0.2, 0.4, 0.8)
)
