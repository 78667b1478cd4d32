"""The world around a speaker: noise at an SNR, rooms, a second talker, and clips without speech."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from speech_robust_bench.builders.recording import Recording
from speech_robust_bench.core.audio import Samples
from speech_robust_bench.core.errors import UserError

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


LEAD_IN_S = 0.010
LANES = 4  # blocks that are transformed together: as many as a vector has, and three times as fast as one by one
LONGEST_BLOCK = 1 << 16  # longer ones leave the processor's cache


ONSET = 0.1  # of the peak: 20 dB below it, where ISO 3382-1 lets a response begin
LOUD, ABOVE_NOISE = 0.5, 8  # of the peak: never noise; of the median of the first 10 ms: louder than noise gets


def direct_sound(response: Samples, rate: int) -> int:
    """The sample at which the direct sound arrives: the first that is near the peak and stands out of the noise."""
    level = np.abs(response)
    peak = float(level.max(initial=0.0))
    noise = float(np.median(level[: round(LEAD_IN_S * rate)])) if len(level) else 0.0
    threshold = min(max(ONSET * peak, ABOVE_NOISE * noise), LOUD * peak)
    return int(np.argmax(level >= threshold)) if peak > 0 else 0


def has_lead_in(response: Samples, rate: int) -> bool:
    """Whether the direct sound comes after the first 10 ms."""
    return direct_sound(response, rate) >= round(LEAD_IN_S * rate)


def prepare(rir: Recording, rate: int) -> Samples:
    """The response as it is convolved with: of unit energy, and without its first 10 ms unless it begins in them.

    The paper's authors drop the first 10 ms of every response, and with it any direct sound that comes so early.
    """
    response = rir.samples[round(LEAD_IN_S * rate) :] if has_lead_in(rir.samples, rate) else rir.samples
    norm = math.sqrt(energy(response))
    if not norm > 0:
        raise UserError(f"{rir.name}: this room impulse response is silent; take it out of the bank")
    return response / np.float32(norm)


def reverberate(samples: Samples, rate: int, value: object, rng: np.random.Generator, rir: Recording) -> Samples:
    """The clip as heard in the room: len(samples) + len(response) - 1 samples. An empty clip stays empty."""
    if not len(samples):
        return np.zeros(0, dtype=np.float32)
    return convolve(np.asarray(samples, dtype=np.float32), prepare(rir, rate))


def convolve(samples: Samples, response: Samples) -> Samples:
    """Full convolution in float32 by overlap-add, so that memory follows the clip whatever its length."""
    import scipy.fft

    from speech_robust_bench.builders.perturb.signal_kernels import multiply_spectra

    needed = -(-len(samples) // LANES) + len(response) - 1
    size = scipy.fft.next_fast_len(min(needed, max(LONGEST_BLOCK, 2 * len(response))), real=True)
    hop = size - len(response) + 1
    spectrum = scipy.fft.rfft(response, size)
    out = np.zeros(len(samples) + len(response) - 1, dtype=np.float32)
    for start in range(0, len(samples), LANES * hop):
        blocks = np.zeros((LANES, size), dtype=np.float32)
        for lane, block in enumerate(blocks):
            piece = samples[start + lane * hop :][:hop]
            block[: len(piece)] = piece
        spectra = scipy.fft.rfft(blocks, axis=1, overwrite_x=True)
        for block in spectra:
            multiply_spectra(block.view(np.float32), spectrum.view(np.float32))
        for lane, block in enumerate(scipy.fft.irfft(spectra, size, axis=1, overwrite_x=True)):
            piece = out[start + lane * hop :][:size]
            piece += block[: len(piece)]
    return out


DEFAULT_RMS = 0.05  # where the clip itself is silent


def silence(samples: Samples, rate: int, value: None, rng: np.random.Generator) -> Samples:
    """Digital silence."""
    return np.zeros_like(samples)


def only(samples: Samples, rate: int, value: None, rng: np.random.Generator, recording: Recording) -> Samples:
    """The recording alone, at the clip's level."""
    if not len(recording.samples):
        return np.zeros_like(samples)
    alone = to_length(recording.samples, len(samples))
    loudness = energy(samples) or len(samples) * DEFAULT_RMS**2
    return alone * np.float32(np.sqrt(loudness / (energy(alone) or 1)))
