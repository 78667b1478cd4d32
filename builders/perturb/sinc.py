"""SoX `sinc 0-F` (low-pass) and `sinc F` (high-pass): steep linear-phase filters (SRB, Appendix A).

SoX's default is a sinc under a Kaiser window for 120 dB of rejection and a transition band of 5 % of the Nyquist rate,
centred so that nothing is delayed and the length stays. How it picks the window was measured on SoX 14.4.2: its
coefficients are printed by `sox --plot data`, its tap counts by `sox -V4`.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

# Window shape by octaves of the corner below 25 Nyquist rates; SoX draws straight lines between these points.
_OCTAVES = (4, 5, 6, 7, 8, 9)
_BETAS = (12.309004585664, 12.312915581888, 12.334994437312, 12.36770556512, 12.4177162944, 12.6228670168)

_BLOCK = 2048  # samples in a transform: the least work for filters of 315 to 323 taps
_BATCH = 16  # blocks transformed together, few enough to stay in the processor's cache


def lowpass(samples: np.ndarray, rate: int, corner_hz: float, rng: np.random.Generator | None = None) -> np.ndarray:
    """Keep what lies below the corner."""
    return _filter(samples, *_response(rate, corner_hz, keep_high=False))


def highpass(samples: np.ndarray, rate: int, corner_hz: float, rng: np.random.Generator | None = None) -> np.ndarray:
    """Keep what lies above the corner."""
    return _filter(samples, *_response(rate, corner_hz, keep_high=True))


def taps(corner: float) -> np.ndarray:
    """The low-pass filter for a corner given as a fraction of the Nyquist rate."""
    beta = float(np.interp(math.log2(25 / corner), _OCTAVES, _BETAS))
    count = math.ceil(25.44866 * beta + 1.2403) | 1
    offset = np.arange(count) - count // 2
    return corner * np.sinc(corner * offset) * np.kaiser(count, beta)


@lru_cache(maxsize=64)
def _response(rate: int, corner_hz: float, *, keep_high: bool) -> tuple[np.ndarray, int]:
    """The filter's spectrum, and how many samples it reaches to each side."""
    corner = corner_hz / (rate / 2)
    if not 0 < corner < 1:
        raise ValueError(f"sinc: {corner_hz:g} Hz is not between 0 and half the sample rate of {rate} Hz")
    kernel = taps(corner)
    reach = len(kernel) // 2
    if keep_high:  # all that the low-pass filter leaves out
        kernel = -kernel
        kernel[reach] += 1
    centred = np.zeros(_BLOCK)
    centred[: reach + 1] = kernel[reach:]
    centred[-reach:] = kernel[:reach]
    # Symmetric around sample 0, so its spectrum is real. Each value twice: for both parts of a complex number.
    return np.repeat(np.fft.rfft(centred).real, 2), reach


def _filter(samples: np.ndarray, response: np.ndarray, reach: int) -> np.ndarray:
    """Overlap-save convolution in double precision, a few blocks at a time."""
    length = len(samples)
    if not length:
        return np.zeros(0, dtype=np.float32)
    hop = _BLOCK - 2 * reach
    total = -(-length // hop)
    out = np.empty(total * hop, dtype=np.float32)
    batch = min(_BATCH, total)
    # One allocation for all steps: several would be returned to the system and allocated again for every clip.
    spectra, filtered, padded = _split(
        np.empty(batch * (len(response) + _BLOCK + hop) + 2 * reach), batch, len(response)
    )
    for start in range(0, length, hop * batch):
        blocks = min(batch, total - start // hop)
        skipped = max(reach - start, 0)  # before the clip there is silence, and after it too
        piece = samples[start - reach + skipped : start - reach + len(padded)]
        padded[:skipped] = 0
        padded[skipped : skipped + len(piece)] = piece
        padded[skipped + len(piece) :] = 0
        windows = np.lib.stride_tricks.as_strided(padded, (blocks, _BLOCK), (hop * padded.itemsize, padded.itemsize))
        np.fft.rfft(windows, out=spectra[:blocks])
        parts = spectra[:blocks].view(np.float64)
        parts *= response
        np.fft.irfft(spectra[:blocks], _BLOCK, out=filtered[:blocks])
        out[start : start + blocks * hop].reshape(blocks, hop)[:] = filtered[:blocks, reach : reach + hop]
    return out[:length]


def _split(space: np.ndarray, batch: int, bins: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Room for the spectra of a batch, for its filtered blocks, and for the stretch of clip that it covers."""
    spectra, filtered, padded = np.split(space, [batch * bins, batch * (bins + _BLOCK)])
    return spectra.view(np.complex128).reshape(batch, -1), filtered.reshape(batch, _BLOCK), padded
