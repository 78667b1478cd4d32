"""Gain: amplitude times a factor; what leaves [-1, 1] is clamped (SRB, Table 2)."""

from __future__ import annotations

import numpy as np

from speech_robust_bench.core.audio import Samples


def gain(samples: Samples, rate: int, factor: float, rng: np.random.Generator) -> Samples:
    """Amplify. The clamp is left to storing, which clips every scenario alike and counts the clipped samples."""
    return samples * np.float32(factor)


def attenuate(samples: Samples, rate: int, loss_db: float, rng: np.random.Generator) -> Samples:
    """Turn down by `loss_db`; storing in 16 bits then loses the quietest detail, as a distant microphone does."""
    return samples * np.float32(10 ** (-loss_db / 20))
