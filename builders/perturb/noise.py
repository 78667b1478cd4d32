"""Additive noise at a signal-to-noise ratio, as torchaudio's `add_noise` defines it, and white noise.

The SNR is the energy ratio over the whole utterance, 10 log10(sum x^2 / sum n^2). Silent speech and silent noise have
no SNR: the clip then comes back as it was.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from speech_robust_bench.builders.recording import Recording
from speech_robust_bench.core.audio import Samples

SWELL_S, SWELL_DB = 4.0, 10.0  # a car that passes: how long a period of moving noise is, and how far it swings


def gaussian(samples: Samples, rate: int, snr_db: float, rng: np.random.Generator) -> Samples:
    """White N(0, 1) noise at an SNR."""
    return mix(samples, rng.standard_normal(len(samples), dtype=np.float32), snr_db)


def add_noise(samples: Samples, rate: int, snr_db: float, rng: np.random.Generator, noise: Recording) -> Samples:
    """A noise recording at an SNR."""
    return mix(samples, noise.samples, snr_db)


def add_moving_noise(samples: Samples, rate: int, snr_db: float, rng: np.random.Generator, noise: Recording) -> Samples:
    """A noise recording that comes and goes, 10 dB up and down in 4 s, at an SNR over the whole utterance."""
    swell = _swell(rate)
    begin = int(rng.integers(len(swell)))
    gains = to_length(np.concatenate((swell[begin:], swell[:begin])), len(samples))
    return mix(samples, to_length(noise.samples, len(samples)) * gains if len(noise.samples) else noise.samples, snr_db)


@lru_cache(maxsize=2)
def _swell(rate: int) -> Samples:
    """One period of the gain, a sine in dB."""
    count = round(SWELL_S * rate)
    # The C library's functions: NumPy's own differ in the last bit between processors.
    gains_db = (SWELL_DB * math.sin(2 * math.pi * index / count) for index in range(count))
    return np.array([10 ** (gain / 20) for gain in gains_db], dtype=np.float32)


def mix(samples: Samples, noise: Samples, snr_db: float) -> Samples:
    """Noise at an SNR: from its start, repeated if it is shorter than the clip, cut if longer."""
    if not len(noise):
        return samples.copy()
    noise = to_length(noise, len(samples))
    speech_energy, noise_energy = energy(samples), energy(noise)
    if speech_energy == 0 or noise_energy == 0:
        return samples.copy()
    scale = np.sqrt(speech_energy / noise_energy) * 10 ** (-snr_db / 20)
    noisy = np.multiply(noise, np.float32(scale))
    noisy += samples
    return noisy


def to_length(recording: Samples, length: int) -> Samples:
    """The first `length` samples of a recording that repeats for ever."""
    return recording[:length] if len(recording) >= length else np.resize(recording, length)


def energy(samples: Samples) -> float:
    """Sum of squares, in double precision and in a fixed order of additions."""
    from speech_robust_bench.builders.perturb.signal_kernels import sum_of_squares

    return sum_of_squares(samples)


def snr_db(clean: Samples, noisy: Samples) -> float | None:
    """The SNR that a noisy clip reached; None where it is not defined."""
    speech, noise = energy(clean), energy(noisy - clean)
    return float(10 * np.log10(speech / noise)) if speech > 0 and noise > 0 else None
