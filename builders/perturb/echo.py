"""SoX `echo GAIN-IN GAIN-OUT D DECAY`: the clip plus one delayed, quieter copy of itself (SRB, Appendix A)."""

from __future__ import annotations

import numpy as np

from speech_robust_bench.builders.perturb.delays import whole_samples


def echo(
    samples: np.ndarray,
    rate: int,
    delay_ms: float,
    rng: np.random.Generator | None = None,
    *,
    gain_in: float = 0.8,
    gain_out: float = 0.9,
    decay: float = 0.3,
) -> np.ndarray:
    """The echo outlives the clip: as in SoX, the result is longer by the delay."""
    delay = whole_samples(delay_ms, rate)
    if delay < 1:
        raise ValueError(f"echo: a delay of {delay_ms} ms is shorter than one sample at {rate} Hz")
    length = len(samples)
    if not length:
        return np.zeros(0, dtype=np.float32)
    out = np.empty(length + delay, dtype=np.float32)
    np.multiply(samples, np.float32(gain_in * gain_out), out=out[:length])
    out[length:] = 0.0
    out[delay:] += np.multiply(samples, np.float32(decay * gain_out), dtype=np.float32)
    return out
