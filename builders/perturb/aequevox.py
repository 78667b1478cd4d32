"""The transformations of AequeVox (Rajan et al., FASE 2022, Table 2), least to most destructive.

The authors' published code swaps high- and low-pass and never applies clipping and scale; this follows the paper. Their
code also filters forward and backward, and the people who rated comprehensibility listened to that: these two filters
are here both ways.
Noise is `gaussian` of this package.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from speech_robust_bench.builders.perturb.filters import Kind, butterworth
from speech_robust_bench.builders.perturb.time_and_pitch import sinc_resample
from speech_robust_bench.core.audio import Samples
from speech_robust_bench.core.extensions import LazyModule

if TYPE_CHECKING:
    from scipy import signal
else:
    signal = LazyModule("scipy.signal")

CHUNK_MS = 20
FRAME_SHARE = 0.1


def amplitude(samples: Samples, rate: int, factor: float, rng: np.random.Generator) -> Samples:
    """Amplitude times a factor."""
    return samples * np.float32(factor)


def clipping(samples: Samples, rate: int, level: float, rng: np.random.Generator) -> Samples:
    """Scale the peak to 1, clip at `level`, and scale what is left back to a peak of 1."""
    peak = np.abs(samples).max(initial=0.0)
    if peak == 0:
        return samples.copy()
    return np.clip(samples / peak, -level, level) / np.float32(level)


def drop(samples: Samples, rate: int, percent: float, rng: np.random.Generator) -> Samples:
    """Silence `percent` of the 20 ms chunks, no two of them adjacent."""
    return _silence_chunks(samples, round(CHUNK_MS * rate / 1000), percent / 100, rng)


def frame(samples: Samples, rate: int, chunk_ms: float, rng: np.random.Generator) -> Samples:
    """Silence 10 % of the chunks of `chunk_ms`, no two of them adjacent."""
    return _silence_chunks(samples, round(chunk_ms * rate / 1000), FRAME_SHARE, rng)


def highpass(samples: Samples, rate: int, corner_hz: float, rng: np.random.Generator) -> Samples:
    """Butterworth high-pass of order 2."""
    return butterworth(samples, rate, corner_hz, "highpass")


def lowpass(samples: Samples, rate: int, corner_hz: float, rng: np.random.Generator) -> Samples:
    """Butterworth low-pass of order 2."""
    return butterworth(samples, rate, corner_hz, "lowpass")


def highpass_zero_phase(samples: Samples, rate: int, corner_hz: float, rng: np.random.Generator) -> Samples:
    """The high-pass forward and backward, as in the authors' code: twice the attenuation, no shift in time."""
    return _forward_backward(samples, rate, corner_hz, "highpass")


def lowpass_zero_phase(samples: Samples, rate: int, corner_hz: float, rng: np.random.Generator) -> Samples:
    """The low-pass forward and backward, as in the authors' code: twice the attenuation, no shift in time."""
    return _forward_backward(samples, rate, corner_hz, "lowpass")


def _forward_backward(samples: Samples, rate: int, corner_hz: float, kind: Kind) -> Samples:
    numerator, denominator = signal.butter(2, corner_hz, kind, fs=rate)
    # What scipy puts before and after the clip, unless the clip is shorter than that.
    padding = min(3 * max(len(numerator), len(denominator)), max(len(samples) - 1, 0))
    if not len(samples):
        return samples.copy()
    return signal.filtfilt(numerator, denominator, samples.astype(np.float64), padlen=padding).astype(np.float32)


def scale(samples: Samples, rate: int, factor: float, rng: np.random.Generator) -> Samples:
    """Play at `factor` of the sampling frequency: slower, and the pitch falls with it."""
    return sinc_resample(samples, round(factor * rate), rate)


def _silence_chunks(samples: Samples, size: int, share: float, rng: np.random.Generator) -> Samples:
    chunks = -(-len(samples) // size)
    count = min(round(share * chunks), (chunks + 1) // 2)
    # Choosing among chunks - count + 1 places and then spreading them by one each draws every set of non-adjacent
    # chunks with the same probability.
    chosen = np.sort(rng.choice(chunks - count + 1, count, replace=False)) + np.arange(count)
    out = samples.copy()
    for start in chosen * size:
        out[start : start + size] = 0
    return out
