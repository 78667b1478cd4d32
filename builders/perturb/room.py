"""Convolution with a room's impulse response (paper, Appendix A; recipe from a study of the published data).

The first 10 ms of the response are dropped, the rest is divided by its L2 norm, and the convolution is full: the tail
stays, so the clip grows. It costs 1.1 times FLAC encoding of the clip (benchmarks/perturb.py), nearly all of it in nine
Fourier transforms; blocks of another length would make fewer or shorter ones, and other last bits of the samples.
"""

from __future__ import annotations

import math

import numpy as np

from speech_robust_bench.builders.perturb.noise import energy
from speech_robust_bench.builders.recording import Recording
from speech_robust_bench.core.audio import Samples
from speech_robust_bench.core.errors import UserError

LEAD_IN_S = 0.010
LANES = 4  # blocks that are transformed together: as many as a vector has, and three times as fast as one by one
LONGEST_BLOCK = 1 << 16  # longer ones leave the processor's cache


def prepare(rir: Recording, rate: int) -> Samples:
    """The response as it is convolved with: without its lead-in and of unit energy."""
    lead_in = round(LEAD_IN_S * rate)
    response = rir.samples[lead_in:]
    if not response.any():  # 10 ms or less, or nothing but the direct sound: dropping it would leave silence
        response = rir.samples
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
