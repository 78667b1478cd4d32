"""Filters: SoX's shelves and sinc, and Butterworth."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Literal

import numpy as np

from speech_robust_bench.builders.perturb.signal_kernels import biquad
from speech_robust_bench.core.audio import Samples


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
    return _apply_shelf(samples, _shelf(rate, gain_db, corner_hz, slope, low=True))


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
    return _apply_shelf(samples, _shelf(rate, gain_db, corner_hz, slope, low=False))


def _apply_shelf(samples: np.ndarray, coefficients: tuple[float, ...]) -> np.ndarray:
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


# Window shape by octaves of the corner below 25 Nyquist rates; SoX draws straight lines between these points.
_OCTAVES = (4, 5, 6, 7, 8, 9)
_BETAS = (12.309004585664, 12.312915581888, 12.334994437312, 12.36770556512, 12.4177162944, 12.6228670168)

_BLOCK = 2048  # samples in a transform: the least work for filters of 315 to 323 taps
_BATCH = 16  # blocks transformed together, few enough to stay in the processor's cache


def lowpass(samples: np.ndarray, rate: int, corner_hz: float, rng: np.random.Generator | None = None) -> np.ndarray:
    """Keep what lies below the corner."""
    return _sinc_filter(samples, *_response(rate, corner_hz, keep_high=False))


def highpass(samples: np.ndarray, rate: int, corner_hz: float, rng: np.random.Generator | None = None) -> np.ndarray:
    """Keep what lies above the corner."""
    return _sinc_filter(samples, *_response(rate, corner_hz, keep_high=True))


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


def _sinc_filter(samples: np.ndarray, response: np.ndarray, reach: int) -> np.ndarray:
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


Kind = Literal["lowpass", "highpass"]


def butterworth(samples: Samples, rate: int, corner_hz: float, kind: Kind, order: int = 2) -> Samples:
    """Filter a clip; `order` is even."""
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
