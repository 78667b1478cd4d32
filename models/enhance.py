"""A-priori-SNR enhancement (Scalart and Filho 1996): a Wiener filter whose SNR estimate leans on the frame before.

Used on speech to which white noise of a known size was added, so the noise spectrum need not be estimated (Olivier,
7.2.1: the best of the enhancers tried for randomised smoothing).
"""

from __future__ import annotations

import numpy as np

FRAME, HOP = 512, 128  # 32 ms at 16 kHz, three quarters overlapping
LEAN = 0.98  # on the frame before: the decision-directed weight of Ephraim and Malah
LEAST_GAIN = 0.05  # keeps a little of the noise: musical tones disturb recognisers more


def a_priori_snr(samples: np.ndarray, sigma: float) -> np.ndarray:
    """Speech with white noise of deviation `sigma`, the noise mostly removed."""
    if sigma <= 0 or not len(samples):
        return samples
    window = np.sqrt(np.hanning(FRAME + 1)[:-1])
    count = -(-len(samples) // HOP) + FRAME // HOP
    padded = np.pad(samples, (FRAME - HOP, count * HOP - len(samples)))
    frames = np.lib.stride_tricks.sliding_window_view(padded, FRAME)[::HOP][:count]
    spectrum = np.fft.rfft(frames * window)
    a_posteriori = np.abs(spectrum) ** 2 / (sigma**2 * np.sum(window**2))
    kept = np.zeros(spectrum.shape[1])  # the speech-to-noise power of the frame before, as estimated
    for frame, posterior in zip(spectrum, a_posteriori, strict=True):
        a_priori = LEAN * kept + (1 - LEAN) * np.maximum(posterior - 1, 0)
        gain = np.maximum(a_priori / (1 + a_priori), LEAST_GAIN)
        frame *= gain
        kept = gain**2 * posterior
    parts = np.fft.irfft(spectrum, FRAME) * window
    out, weight = np.zeros(len(padded) + FRAME), np.zeros(len(padded) + FRAME)
    for index, part in enumerate(parts):
        out[index * HOP : index * HOP + FRAME] += part
        weight[index * HOP : index * HOP + FRAME] += window**2
    start = FRAME - HOP
    whole = out[start : start + len(samples)] / np.maximum(weight[start : start + len(samples)], 1e-9)
    return whole.astype(np.float32)
