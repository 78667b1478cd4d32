"""DeepFilterNet (Schröter et al. 2022), 48 kHz: `pip install deepfilternet` brings its weights and needs torchaudio."""

from __future__ import annotations

import numpy as np

from srb.core.audio import resample
from srb.models.front_ends.rnnoise import fitted
from srb.models.interface import Clip, FrontEnd, need

INSTALL = "pip install deepfilternet (it needs torchaudio: an environment of its own is best)"


def load(target: str) -> FrontEnd:
    """The model as a function."""
    package = need("df.enhance", "deepfilternet", INSTALL)
    torch = need("torch", "deepfilternet", "pip install torch==2.13.0")
    model, state, _ = package.init_df()

    def enhance(clip: Clip, rate: int) -> Clip:
        samples = torch.from_numpy(np.ascontiguousarray(resample(clip, rate, state.sr())))[None]
        clean = package.enhance(model, state, samples)[0].cpu().numpy()
        return fitted(resample(clean, state.sr(), rate), len(clip))

    return enhance
