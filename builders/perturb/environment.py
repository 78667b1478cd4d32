"""The world around a speaker, and the device that records: noise, rooms, clips without speech, gain, trimmed edges."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from speech_robust_bench.builders.perturb.signal_kernels import control_level, multiply_spectra, sum_of_squares
from speech_robust_bench.core.audio import Samples
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.extensions import LazyModule

if TYPE_CHECKING:
    from scipy import fft

    from speech_robust_bench.builders.banks.recording import Recording
else:
    fft = LazyModule("scipy.fft")


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
    needed = -(-len(samples) // LANES) + len(response) - 1
    size = fft.next_fast_len(min(needed, max(LONGEST_BLOCK, 2 * len(response))), real=True)
    hop = size - len(response) + 1
    spectrum = fft.rfft(response, size)
    out = np.zeros(len(samples) + len(response) - 1, dtype=np.float32)
    for start in range(0, len(samples), LANES * hop):
        blocks = np.zeros((LANES, size), dtype=np.float32)
        for lane, block in enumerate(blocks):
            piece = samples[start + lane * hop :][:hop]
            block[: len(piece)] = piece
        spectra = fft.rfft(blocks, axis=1, overwrite_x=True)
        for block in spectra:
            multiply_spectra(block.view(np.float32), spectrum.view(np.float32))
        for lane, block in enumerate(fft.irfft(spectra, size, axis=1, overwrite_x=True)):
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


def gain(samples: Samples, rate: int, factor: float, rng: np.random.Generator) -> Samples:
    """Amplify. The clamp is left to storing, which clips every scenario alike and counts the clipped samples."""
    return samples * np.float32(factor)


def attenuate(samples: Samples, rate: int, loss_db: float, rng: np.random.Generator) -> Samples:
    """Turn down by `loss_db`; storing in 16 bits then loses the quietest detail, as a distant microphone does."""
    return samples * np.float32(10 ** (-loss_db / 20))


FRAME_MS = 10
TARGET = 0.1  # RMS: -20 dBFS
FALL, RISE = 0.4, 0.02  # share of the way to the wanted gain in a frame: time constants of about 20 and 500 ms


def agc(samples: Samples, rate: int, gain_db: float, rng: np.random.Generator) -> Samples:
    """The clip with its level controlled, turned up by `gain_db` at most."""
    out = np.empty(len(samples), dtype=np.float32)
    most = 10 ** (gain_db / 20)
    control_level(out, np.ascontiguousarray(samples), round(FRAME_MS * rate / 1000), TARGET, most, FALL, RISE)
    return out


BELOW_PEAK_DB = 30  # a frame this far below the loudest is not speech


def trim_start(samples: Samples, rate: int, cut_ms: float, rng: np.random.Generator) -> Samples:
    """Without all that comes before speech begins, and without its first `cut_ms`."""
    first, _ = speech_bounds(samples, rate)
    return samples[first + round(cut_ms * rate / 1000) :].copy()


def trim_end(samples: Samples, rate: int, cut_ms: float, rng: np.random.Generator) -> Samples:
    """Without all that comes after speech ends, and without its last `cut_ms`."""
    _, last = speech_bounds(samples, rate)
    return samples[: max(last - round(cut_ms * rate / 1000), 0)].copy()


def speech_bounds(samples: Samples, rate: int) -> tuple[int, int]:
    """Where the first frame begins and the last one ends that are within 30 dB of the loudest; all of a silent clip."""
    size = round(FRAME_MS * rate / 1000)
    energies = np.array([energy(samples[start : start + size]) for start in range(0, len(samples), size)])
    loud = np.flatnonzero(energies > energies.max(initial=0) * 10 ** (-BELOW_PEAK_DB / 10))
    if not len(loud):
        return 0, len(samples)
    return int(loud[0]) * size, min((int(loud[-1]) + 1) * size, len(samples))
