"""Enhancement and separation models of SpeechBrain: `speechbrain:<id or folder>`; a separator gives every talker."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from speech_robust_bench.core.audio import resample
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.extensions.front_ends.rnnoise import fitted
from speech_robust_bench.models.interface import Clip, FrontEnd, need

INSTALL = "pip install speechbrain"


def load(target: str) -> FrontEnd:
    """The model as a function."""
    if not target:
        raise UserError("speechbrain needs a model: front:speechbrain:speechbrain/metricgan-plus-voicebank|moonshine")
    torch = need("torch", "speechbrain", "pip install torch==2.13.0")
    enhancement = need("speechbrain.inference.enhancement", "speechbrain", INSTALL)
    separation = need("speechbrain.inference.separation", "speechbrain", INSTALL)
    separates = "sepformer" in target.lower() or "masknet" in _hyperparameters(target)
    kind = separation.SepformerSeparation if separates else enhancement.SpectralMaskEnhancement
    model = kind.from_hparams(source=target)
    model_rate = int(getattr(model.hparams, "sample_rate", 16_000))

    def enhance(clip: Clip, rate: int) -> Clip:
        samples = torch.from_numpy(np.ascontiguousarray(resample(clip, rate, model_rate)))[None]
        with torch.no_grad():
            if hasattr(model, "separate_batch"):
                talkers = model.separate_batch(samples)[0].T  # one where the model denoises
            else:
                talkers = model.enhance_batch(samples, lengths=torch.ones(1))
        parts = [fitted(resample(talker, model_rate, rate), len(clip)) for talker in talkers.cpu().numpy()]
        return parts[0] if len(parts) == 1 else np.stack(parts)

    return enhance


def _hyperparameters(target: str) -> str:
    """The text of a model folder's hyperparameters, which name its parts; nothing for a model of the Hub."""
    path = Path(target) / "hyperparams.yaml"
    return path.read_text(encoding="utf-8") if path.is_file() else ""
