"""Spectral gating (`noisereduce`): what stays below a threshold of its own band is turned down."""

from __future__ import annotations

import numpy as np

from speech_robust_bench.models.interface import Clip, FrontEnd, need

INSTALL = "pip install noisereduce"


def load(target: str) -> FrontEnd:
    """The gate as a function; `noisereduce:stationary` takes the noise to be the same throughout."""
    package = need("noisereduce", "noisereduce", INSTALL)

    def enhance(clip: Clip, rate: int) -> Clip:
        if not np.any(clip):
            return clip
        return package.reduce_noise(clip, rate, stationary=target == "stationary").astype(np.float32)

    return enhance
