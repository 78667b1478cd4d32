"""The DFT form of the Kenansville attack (Abdullah et al. 2021): the weakest bins of the spectrum are set to zero.

It asks no model, so one config serves all. As many bins go as the SNR allows; it is kept after rounding to 16 bits.
"""

from __future__ import annotations

import numpy as np

from speech_robust_bench.core.audio import Samples, to_pcm16


def kenansville(samples: Samples, rate: int, snr_db: float, rng: np.random.Generator) -> Samples:
    """Zero the weakest DFT bins of the whole clip, down to an SNR. A silent clip has none to lose."""
    from scipy import fft

    spectrum = fft.rfft(samples.astype(float))
    order, lost = _weakest_first(spectrum, len(samples))
    allowed = lost[-1] * 10 ** (-snr_db / 10)
    count = int(np.searchsorted(lost, allowed, side="right"))
    del lost  # of an hour each of these arrays takes 230 MB or more
    while True:
        kept = spectrum.copy()
        kept[order[:count]] = 0
        filtered = _stored(fft.irfft(kept, len(samples), overwrite_x=True))
        del kept
        if count == 0 or _energy(filtered - samples) <= allowed / len(samples):
            return filtered.astype(np.float32) if count else samples.copy()
        count -= max(1, count // 500)  # rounding took the rest of what is allowed


def _weakest_first(spectrum: np.ndarray, length: int) -> tuple[np.ndarray, np.ndarray]:
    """The bins of a real signal's spectrum in the order of their power, and the power of so many of them together."""
    power = np.abs(spectrum)
    np.square(power, out=power)
    # Parseval: every bin but the first and, of an even number of samples, the last stands for two
    power[1 : len(power) - (length % 2 == 0)] *= 2
    order = np.argsort(power, kind="stable")
    power = power[order]
    return order, np.cumsum(power, out=power)


def _energy(difference: np.ndarray) -> float:
    return float(np.sum(np.square(difference, out=difference)))


def _stored(samples: np.ndarray) -> np.ndarray:
    return to_pcm16(np.clip(samples, -1, 1, out=samples).astype(np.float32)) / 32768.0
