"""SoX `phaser GAIN-IN GAIN-OUT DELAY DECAY SPEED -t`: a copy of the output, its delay swept to and fro, is fed back."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from speech_robust_bench.builders.perturb.delays import Sweep, Wave, oscillator, runs


def phaser(
    samples: np.ndarray,
    rate: int,
    decay: float,
    rng: np.random.Generator | None = None,
    *,
    gain_in: float = 0.6,
    gain_out: float = 0.8,
    delay_ms: float = 3.0,
    speed_hz: float = 2.0,
    wave: Wave = "triangle",
) -> np.ndarray:
    """Not clipped: SoX clips its output, and never what it feeds back."""
    if not 0 <= decay <= 0.99:
        raise ValueError(f"phaser: the decay must lie between 0 and 0.99, not {decay}")
    from speech_robust_bench.builders.perturb.signal_kernels import add_delayed

    # The gain-out may come first, because everything after it is linear.
    out = np.multiply(samples, np.float32(gain_in * gain_out), dtype=np.float32)
    add_delayed(out, out, *_sweep(rate, delay_ms, speed_hz, wave), np.float32(decay))
    return out


@lru_cache(maxsize=64)
def _sweep(rate: int, delay_ms: float, speed_hz: float, wave: Wave) -> Sweep:
    longest = int(delay_ms * 0.001 * rate + 0.5)
    if longest < 1:
        raise ValueError(f"phaser: a delay of {delay_ms} ms is shorter than one sample at {rate} Hz")
    period = int(rate / speed_hz + 0.5)
    return runs(longest + 1 - oscillator(wave, period, 1, longest, 0.25))
