"""The differentiable view of a recogniser: which class of this package, or of `srb.attacks.defences`, fits it."""

from __future__ import annotations

import torch

from srb.attacks.defences import Defended
from srb.attacks.differentiable.base import View
from srb.attacks.differentiable.ctc import CtcView
from srb.attacks.differentiable.encoder_decoder import Seq2SeqView
from srb.attacks.differentiable.parakeet import CanaryView, ParakeetCtcView, ParakeetTransducerView, ParakeetView
from srb.attacks.differentiable.python_model import ModuleView
from srb.attacks.differentiable.whisper import WhisperView
from srb.core.errors import UserError
from srb.models.adapters import hf, python
from srb.models.adapters.smooth import Smooth
from srb.models.interface import Recogniser

WITH_GRADIENTS = "hf: (transformers), python: (an object with a `losses` method) and smooth: over either"

VIEWS: tuple[tuple[type, type[View]], ...] = ((hf.Whisper, WhisperView), (hf.Ctc, CtcView), (hf.Seq2Seq, Seq2SeqView))
MEL_VIEWS: tuple[tuple[type, type[View]], ...] = (
    (hf.Ctc, ParakeetCtcView),
    (hf.Transducer, ParakeetTransducerView),
    (hf.Seq2Seq, CanaryView),
)


def open_view(recogniser: Recogniser, *, eot: int | None = None, precision: torch.dtype | None = None) -> View:
    """The differentiable view of an opened recogniser; `eot` is the number of draws for one with a random defence."""
    if isinstance(recogniser, Smooth):
        return Defended.around(recogniser, open_view(recogniser.inner, precision=precision), eot)
    for kind, view in MEL_VIEWS if _extractor(recogniser) in ParakeetView.extractors else VIEWS:
        if isinstance(recogniser, kind):
            return view(recogniser, precision)
    if isinstance(recogniser, python.Function) and hasattr(recogniser.owner, "losses"):
        return ModuleView(recogniser, precision)
    raise UserError(
        f"{recogniser.name} has no gradients; the adapters that have are {WITH_GRADIENTS}. "
        "genetic needs none, kenansville not even a model"
    )


def _extractor(recogniser: Recogniser) -> str:
    """The class of a transformers recogniser's feature extractor."""
    processor = getattr(recogniser, "processor", None)
    return type(getattr(processor, "feature_extractor", None)).__name__
