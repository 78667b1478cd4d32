"""Samples to what 16-bit storage holds: clipping and rounding. Import it where it is needed: it brings Numba."""

from __future__ import annotations

import numpy as np
from numba import types

from speech_robust_bench.core.compiled import compiled

_clip_in = types.Array(types.float32, 1, "C", readonly=True)
_clip_out = types.float32[::1]


@compiled(types.int64(_clip_out))
def clip_in_place(samples):
    """Clip to [-1, 1]; how many samples were outside."""
    top, bottom = np.float32(1), np.float32(-1)
    outside = 0
    for i in range(len(samples)):
        value = samples[i]
        outside += (value > top) | (value < bottom)
        samples[i] = min(max(value, bottom), top)
    return outside


@compiled(types.void(types.int16[::1], _clip_in))
def round_to_16_bits(out, samples):
    """The nearest 16-bit value, ties to even; what lies outside [-1, 1] saturates."""
    shift = np.float32(12582912)  # 1.5 * 2^23: adding it leaves no room for a fraction
    for i in range(len(samples)):
        value = (samples[i] * np.float32(32768) + shift) - shift
        out[i] = np.int16(min(max(value, np.float32(-32768)), np.float32(32767)))
