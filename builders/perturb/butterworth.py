"""Butterworth filters as a chain of second-order sections, run by the same compiled loop as SoX's shelves.

Coefficients by the bilinear transform with the corner pre-warped, as in the Audio EQ Cookbook and in scipy's `butter`.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Literal

import numpy as np

from speech_robust_bench.core.audio import Samples

Kind = Literal["lowpass", "highpass"]


def butterworth(samples: Samples, rate: int, corner_hz: float, kind: Kind, order: int = 2) -> Samples:
    """Filter a clip; `order` is even."""
    from speech_robust_bench.builders.perturb.signal_kernels import biquad

    samples = np.ascontiguousarray(samples, dtype=np.float32)
    for section in _sections(rate, corner_hz, kind, order):
        out = np.empty(len(samples), dtype=np.float32)
        biquad(out, samples, *section)
        samples = out
    return samples


@lru_cache(maxsize=32)
def _sections(rate: int, corner_hz: float, kind: Kind, order: int) -> tuple[tuple[float, ...], ...]:
    """b0, b1, b2, a1, a2 (a0 = 1) of each section: pairs of poles evenly spaced on a half circle."""
    if not 0 < corner_hz < rate / 2:
        raise ValueError(f"a corner of {corner_hz:g} Hz does not lie between 0 and {rate / 2:g} Hz")
    w = 2 * math.pi * corner_hz / rate
    sections = []
    for pair in range(order // 2):
        alpha = math.sin(w) * math.sin(math.pi * (2 * pair + 1) / (2 * order))
        a0 = 1 + alpha
        edge = (1 - math.cos(w)) if kind == "lowpass" else (1 + math.cos(w))
        sign = 1 if kind == "lowpass" else -1
        sections.append((edge / 2 / a0, sign * edge / a0, edge / 2 / a0, -2 * math.cos(w) / a0, (1 - alpha) / a0))
    return tuple(sections)
