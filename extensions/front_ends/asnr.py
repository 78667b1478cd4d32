"""A-priori-SNR Wiener filter (`models/enhance.py`) for noise of an unknown size, estimated from the quietest frames."""

from __future__ import annotations

import numpy as np

from speech_robust_bench.models.enhance import a_priori_snr
from speech_robust_bench.models.interface import Clip, FrontEnd

FRAME_S = 0.032
QUIET_SHARE = 0.1  # of the frames: those between the words


def load(target: str) -> FrontEnd:
    """The filter as a function."""

    def enhance(clip: Clip, rate: int) -> Clip:
        return a_priori_snr(clip, noise_deviation(clip, rate))

    return enhance


def noise_deviation(clip: Clip, rate: int) -> float:
    """The RMS of the quietest tenth of the frames."""
    size = max(1, round(FRAME_S * rate))
    frames = clip[: len(clip) // size * size].reshape(-1, size)
    if not len(frames):
        return 0.0
    levels = np.sort(np.sqrt(np.square(frames, dtype=np.float64).mean(axis=1)))
    return float(levels[: max(1, round(QUIET_SHARE * len(levels)))].mean())
