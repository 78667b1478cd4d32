"""Weighted prediction error (Nakatani et al. 2010; `nara-wpe`): late echoes are predicted and taken off."""

from __future__ import annotations

import numpy as np

from speech_robust_bench.extensions.front_ends.rnnoise import fitted
from speech_robust_bench.models.interface import Clip, FrontEnd, need

INSTALL = "pip install nara-wpe"
SIZE, SHIFT = 512, 128
TAPS, DELAY, ITERATIONS = 10, 3, 3  # the package's own


def load(target: str) -> FrontEnd:
    """The filter as a function, on one channel."""
    need("nara_wpe", "wpe", INSTALL)
    from nara_wpe.utils import istft, stft
    from nara_wpe.wpe import wpe

    def enhance(clip: Clip, rate: int) -> Clip:
        if len(clip) < SIZE * TAPS or not np.any(clip):  # too short for the prediction to mean anything
            return clip
        spectrum = stft(clip[None].astype(np.float64), size=SIZE, shift=SHIFT).transpose(2, 0, 1)
        dry = wpe(spectrum, taps=TAPS, delay=DELAY, iterations=ITERATIONS).transpose(1, 2, 0)
        return fitted(istft(dry, size=SIZE, shift=SHIFT)[0].astype(np.float32), len(clip))

    return enhance
