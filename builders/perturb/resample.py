"""Windowed-sinc resampling as torchaudio defines it (`functional.resample`, Hann, width 6, roll-off 0.99).

`speed` is torchaudio's `Speed` (pitch moves with speed); `resample` goes down to a fraction of the rate and back, so
that what lies above the lower Nyquist frequency is lost (SRB, Appendix A). `odd_rate` is the worst way to convert.
"""

from __future__ import annotations

from functools import lru_cache
from math import ceil, gcd

import numpy as np

from speech_robust_bench.core.audio import Samples

ZERO_CROSSINGS = 6
ROLLOFF = 0.99
MANY_PHASES = 64
STRETCH = 1 << 16  # samples interpolated at a time


def speed(samples: Samples, rate: int, factor: float, rng: np.random.Generator) -> Samples:
    """Play `factor` times as fast: the clip gets shorter and its pitch rises by the same factor."""
    return sinc_resample(samples, int(factor * rate), rate)


def resample(samples: Samples, rate: int, fraction: float, rng: np.random.Generator) -> Samples:
    """Down to `fraction` of the rate and back, at the clip's own length."""
    low_rate = int(rate * fraction)
    return sinc_resample(sinc_resample(samples, rate, low_rate), low_rate, rate)[: len(samples)]


def odd_rate(samples: Samples, rate: int, rate_hz: float, rng: np.random.Generator) -> Samples:
    """To another rate and back by straight lines between samples, as cheap converters do: images and aliases stay."""
    away, back = (int(rate), round(rate_hz)), (round(rate_hz), int(rate))
    there = _interpolated(samples, *away, -(-len(samples) * away[1] // away[0]))
    return _interpolated(there, *back, len(samples))


def _interpolated(samples: Samples, source_rate: int, rate: int, length: int) -> Samples:
    out = np.empty(length, np.float32)
    for start in range(0, length, STRETCH):  # the places of all samples at once take ten times their memory
        wanted = np.arange(start, min(start + STRETCH, length), dtype=np.int64)
        places, rest = np.divmod(wanted * source_rate, rate)
        left, right = (samples[np.minimum(index, len(samples) - 1)] for index in (places, places + 1))
        out[start : start + STRETCH] = left + (right - left) * (rest / rate).astype(np.float32)
    return out


def sinc_resample(samples: Samples, source_rate: int, rate: int) -> Samples:
    """Change the sampling rate from `source_rate` to `rate`."""
    from speech_robust_bench.builders.perturb.signal_kernels import many_phases, polyphase

    common = gcd(source_rate, rate)
    step, phases = source_rate // common, rate // common
    if step == phases or not len(samples):
        return samples
    taps, starts, before = _filter_bank(step, phases)
    length = ceil(len(samples) * phases / step)
    blocks = ceil(length / phases)
    reach = -(-(int(starts.max()) + taps.shape[1]) // step)  # in steps
    padded = np.zeros((blocks - 1 + reach) * step, dtype=np.float32)
    padded[before : before + len(samples)] = samples[: len(padded) - before]
    if phases >= MANY_PHASES:
        return many_phases(padded, taps, starts, step, length)
    out = np.empty(length, dtype=np.float32)
    polyphase(out, np.ascontiguousarray(padded.reshape(-1, step).T), taps, starts)
    return out


@lru_cache(maxsize=32)
def _filter_bank(step: int, phases: int) -> tuple[np.ndarray, np.ndarray, int]:
    """Taps of each output phase, where each starts in the padded input, and how many zeros go before the input."""
    cutoff = min(step, phases) * ROLLOFF / step  # in input samples
    reach = ZERO_CROSSINGS / cutoff  # the window is zero from the sixth zero crossing on
    centre = np.arange(phases) * (step / phases)
    starts = np.ceil(centre - reach).astype(np.int64)
    t = (starts[:, None] + np.arange(int(2 * reach) + 1) - centre[:, None]) * cutoff
    inside = np.abs(t) < ZERO_CROSSINGS
    taps = np.sinc(t) * np.cos(t * (np.pi / ZERO_CROSSINGS / 2)) ** 2 * cutoff * inside
    before = ceil(reach)
    return np.ascontiguousarray(taps, dtype=np.float32), starts + before, before
