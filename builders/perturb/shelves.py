"""SoX `bass GAIN` and `treble GAIN`: shelving filters with a slope of 0.5 at 100 Hz and 3 kHz (SRB, Appendix A).

The coefficients are those of Robert Bristow-Johnson's Audio EQ Cookbook, which SoX's manual names as its source.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np


def bass(
    samples: np.ndarray,
    rate: int,
    gain_db: float,
    rng: np.random.Generator | None = None,
    *,
    corner_hz: float = 100.0,
    slope: float = 0.5,
) -> np.ndarray:
    """Raise what lies below the corner. Not clipped: a clip with real bass leaves [-1, 1] by a wide margin."""
    return _filter(samples, _shelf(rate, gain_db, corner_hz, slope, low=True))


def treble(
    samples: np.ndarray,
    rate: int,
    gain_db: float,
    rng: np.random.Generator | None = None,
    *,
    corner_hz: float = 3000.0,
    slope: float = 0.5,
) -> np.ndarray:
    """Raise what lies above the corner. Not clipped."""
    return _filter(samples, _shelf(rate, gain_db, corner_hz, slope, low=False))


def _filter(samples: np.ndarray, coefficients: tuple[float, ...]) -> np.ndarray:
    from speech_robust_bench.builders.perturb.signal_kernels import biquad

    samples = np.ascontiguousarray(samples, dtype=np.float32)
    out = np.empty(len(samples), dtype=np.float32)
    biquad(out, samples, *coefficients)
    return out


@lru_cache(maxsize=64)
def _shelf(rate: int, gain_db: float, corner_hz: float, slope: float, *, low: bool) -> tuple[float, ...]:
    """b0, b1, b2, a1, a2 with a0 = 1."""
    w0 = 2 * math.pi * corner_hz / rate
    if w0 > math.pi:
        raise ValueError(f"a shelf at {corner_hz:g} Hz is above half the sample rate of {rate} Hz")
    amp = 10 ** (gain_db / 40)
    alpha = math.sin(w0) / 2 * math.sqrt((amp + 1 / amp) * (1 / slope - 1) + 2)
    # The high shelf is the low one mirrored in frequency: cos(w0) and the odd coefficients change their sign.
    sign = 1 if low else -1
    cos = sign * math.cos(w0)
    up, down, root = amp + 1, amp - 1, 2 * math.sqrt(amp) * alpha
    a0 = up + down * cos + root
    return (
        amp * (up - down * cos + root) / a0,
        sign * 2 * amp * (down - up * cos) / a0,
        amp * (up - down * cos - root) / a0,
        sign * -2 * (down + up * cos) / a0,
        (up + down * cos - root) / a0,
    )
