"""SoX `tremolo SPEED DEPTH`: the loudness swings between full and full minus the depth (SRB, Appendix A)."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np


def tremolo(
    samples: np.ndarray,
    rate: int,
    depth_percent: float,
    rng: np.random.Generator | None = None,
    *,
    speed_hz: float = 20.0,
) -> np.ndarray:
    """Multiply by a wave that starts at its peak of 1 and falls by the depth."""
    length = len(samples)
    if not length:
        return np.zeros(0, dtype=np.float32)
    cycles = Fraction(str(speed_hz)) / rate  # per sample, exactly: the gains repeat after `denominator` samples
    gains = _gains(cycles, min(cycles.denominator, length), depth_percent)
    out = np.empty(length, dtype=np.float32)
    whole = length - length % len(gains)
    np.multiply(samples[:whole].reshape(-1, len(gains)), gains, out=out[:whole].reshape(-1, len(gains)))
    np.multiply(samples[whole:], gains[: length - whole], out=out[whole:])
    return out


@lru_cache(maxsize=16)
def _gains(cycles: Fraction, count: int, depth_percent: float) -> np.ndarray:
    centre = float(f"{100 - depth_percent / 2:g}") / 100  # SoX passes the centre on as text of six digits
    turn = 2 * math.pi / cycles.denominator
    # The C library's cosine: NumPy's own differs in the last bit between processors.
    waves = [math.cos(turn * (index * cycles.numerator % cycles.denominator)) for index in range(count)]
    return (np.array(waves) * (1 - centre) + centre).astype(np.float32)
