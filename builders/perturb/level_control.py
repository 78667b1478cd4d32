"""Automatic gain control, as telephones and meeting programs have it (ITU-T G.169 calls it automatic level control).

The level of every 10 ms is brought towards -20 dBFS: quickly down when it is too loud, slowly up when it is too quiet,
by at most a given gain. So pauses are turned up until noise fills them, and the word that follows is too loud.
"""

from __future__ import annotations

import numpy as np

from speech_robust_bench.core.audio import Samples

FRAME_MS = 10
TARGET = 0.1  # RMS: -20 dBFS
FALL, RISE = 0.4, 0.02  # share of the way to the wanted gain in a frame: time constants of about 20 and 500 ms


def agc(samples: Samples, rate: int, gain_db: float, rng: np.random.Generator) -> Samples:
    """The clip with its level controlled, turned up by `gain_db` at most."""
    from speech_robust_bench.builders.perturb.signal_kernels import control_level

    out = np.empty(len(samples), dtype=np.float32)
    most = 10 ** (gain_db / 20)
    control_level(out, np.ascontiguousarray(samples), round(FRAME_MS * rate / 1000), TARGET, most, FALL, RISE)
    return out
