"""Two talkers at once: two whole clips that begin together, the `max` mode of LibriMix (Cosentino et al. 2020)."""

from __future__ import annotations

import numpy as np

from speech_robust_bench.core.audio import Samples


def overlap(first: Samples, second: Samples, sir_db: float) -> Samples:
    """The first clip as it is, and the second `sir_db` below it: by their mean powers, each over its own clip.

    As long as the longer of the two. A silent clip has no power to compare, so the second is then added as it is.
    """
    powers = [float(np.mean(np.square(clip, dtype=np.float64))) if len(clip) else 0.0 for clip in (first, second)]
    gain = np.sqrt(powers[0] / powers[1]) * 10 ** (-sir_db / 20) if all(powers) else 1.0
    mixed = np.zeros(max(len(first), len(second)), dtype=np.float32)
    mixed[: len(first)] = first
    mixed[: len(second)] += np.float32(gain) * second
    return mixed
