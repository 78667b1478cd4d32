"""Enhancement and separation models of SpeechBrain: `speechbrain:<id>`; of several voices the first is kept."""

from __future__ import annotations

import numpy as np

from srb.core.audio import resample
from srb.core.errors import UserError
from srb.models.front_ends.rnnoise import fitted
from srb.models.interface import Clip, FrontEnd, need

INSTALL = "pip install speechbrain"


def load(target: str) -> FrontEnd:
    """The model as a function; its class is that of its hyperparameters."""
    if not target:
        raise UserError("speechbrain needs a model: front:speechbrain:speechbrain/metricgan-plus-voicebank|moonshine")
    torch = need("torch", "speechbrain", "pip install torch==2.13.0")
    enhancement = need("speechbrain.inference.enhancement", "speechbrain", INSTALL)
    separation = need("speechbrain.inference.separation", "speechbrain", INSTALL)
    kind = separation.SepformerSeparation if "sepformer" in target.lower() else enhancement.SpectralMaskEnhancement
    model = kind.from_hparams(source=target)
    model_rate = int(getattr(model.hparams, "sample_rate", 16_000))

    def enhance(clip: Clip, rate: int) -> Clip:
        samples = torch.from_numpy(np.ascontiguousarray(resample(clip, rate, model_rate)))[None]
        with torch.no_grad():
            if hasattr(model, "separate_batch"):
                clean = model.separate_batch(samples)[0, :, 0]
            else:
                clean = model.enhance_batch(samples, lengths=torch.ones(1))[0]
        return fitted(resample(clean.cpu().numpy(), model_rate, rate), len(clip))

    return enhance
