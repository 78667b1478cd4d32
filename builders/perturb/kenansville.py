"""The DFT form of the Kenansville attack (Abdullah et al. 2021): the weakest bins of the spectrum are set to zero.

It asks no model, so one config serves all. As many bins go as the SNR allows; it is kept after rounding to 16 bits.
"""

from __future__ import annotations

import numpy as np

from srb.core.audio import Samples, to_pcm16


def kenansville(samples: Samples, rate: int, snr_db: float, rng: np.random.Generator) -> Samples:
    """Zero the weakest DFT bins of the whole clip, down to an SNR. A silent clip has none to lose."""
    from scipy import fft

    spectrum = fft.rfft(samples.astype(float))
    # Parseval: every bin but the first and, of an even number of samples, the last stands for two
    twice = np.full(len(spectrum), 2.0)
    twice[0] = 1.0
    if len(samples) % 2 == 0:
        twice[-1] = 1.0
    power = twice * np.abs(spectrum) ** 2
    order = np.argsort(power, kind="stable")
    lost = np.cumsum(power[order])
    allowed = lost[-1] * 10 ** (-snr_db / 10)
    count = int(np.searchsorted(lost, allowed, side="right"))
    while True:
        kept = spectrum.copy()
        kept[order[:count]] = 0
        filtered = _stored(fft.irfft(kept, len(samples)))
        if count == 0 or np.sum((filtered - samples) ** 2) <= allowed / len(samples):
            return filtered.astype(np.float32) if count else samples.copy()
        count -= max(1, count // 500)  # rounding took the rest of what is allowed


def _stored(samples: np.ndarray) -> np.ndarray:
    return to_pcm16(np.clip(samples, -1, 1).astype(np.float32)) / 32768.0
