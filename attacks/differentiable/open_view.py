"""The differentiable view of a recogniser: which class of this package, or of `srb.attacks.defences`, fits it."""

from __future__ import annotations

from collections.abc import Callable

import torch

from srb.attacks.defences import Defended
from srb.attacks.differentiable.audio_language_model import AudioLanguageModelView
from srb.attacks.differentiable.base import View
from srb.attacks.differentiable.ctc import CtcView
from srb.attacks.differentiable.encoder_decoder import Seq2SeqView
from srb.attacks.differentiable.nemo_model import nemo_view
from srb.attacks.differentiable.probe import ProbeView
from srb.attacks.differentiable.python_model import ModuleView
from srb.attacks.differentiable.speechbrain_model import speechbrain_view
from srb.attacks.differentiable.transducer import TransducerView
from srb.attacks.differentiable.whisper import WhisperView
from srb.core.errors import UserError
from srb.models.adapters import hf, nemo, python, speechbrain
from srb.models.adapters.smooth import Smooth
from srb.models.interface import Recogniser
from srb.models.probe.recogniser import Probe

WITH_GRADIENTS = (
    "hf: (transformers), speechbrain:, nemo:, probe:, python: (an object with a `losses` method) "
    "and smooth: over any of these"
)

VIEWS: tuple[tuple[type, Callable[..., View]], ...] = (
    (hf.Whisper, WhisperView),
    (hf.Ctc, CtcView),
    (hf.Transducer, TransducerView),
    (hf.Seq2Seq, Seq2SeqView),
    (hf.AudioLanguageModel, AudioLanguageModelView),
    (Probe, ProbeView),
    (speechbrain.SpeechBrainRecogniser, speechbrain_view),
    (nemo.Nemo, nemo_view),
)


def open_view(recogniser: Recogniser, *, eot: int | None = None, precision: torch.dtype | None = None) -> View:
    """The differentiable view of an opened recogniser; `eot` is the number of draws for one with a random defence."""
    if isinstance(recogniser, Smooth):
        return Defended.around(recogniser, open_view(recogniser.inner, precision=precision), eot)
    for kind, view in VIEWS:
        if isinstance(recogniser, kind):
            return view(recogniser, precision)
    if isinstance(recogniser, python.Function) and hasattr(recogniser.owner, "losses"):
        return ModuleView(recogniser, precision)
    raise UserError(
        f"{recogniser.name} has no gradients; the adapters that have are {WITH_GRADIENTS}. "
        "genetic needs none, kenansville not even a model"
    )
