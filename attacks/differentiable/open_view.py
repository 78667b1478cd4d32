"""The differentiable view of a recogniser: which class of this package, or of `attacks.defences`, fits it."""

from __future__ import annotations

from collections.abc import Callable

import torch

from speech_robust_bench.attacks.defences import Defended
from speech_robust_bench.attacks.differentiable.audio_language_model import AudioLanguageModelView
from speech_robust_bench.attacks.differentiable.base import View
from speech_robust_bench.attacks.differentiable.ctc import CtcView
from speech_robust_bench.attacks.differentiable.encoder_decoder import Seq2SeqView
from speech_robust_bench.attacks.differentiable.nemo_model import nemo_view
from speech_robust_bench.attacks.differentiable.probe import ProbeView
from speech_robust_bench.attacks.differentiable.python_model import ModuleView
from speech_robust_bench.attacks.differentiable.speechbrain_model import speechbrain_view
from speech_robust_bench.attacks.differentiable.transducer import TransducerView
from speech_robust_bench.attacks.differentiable.whisper import WhisperView
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.models.adapters import hf, nemo, python, speechbrain
from speech_robust_bench.models.adapters.smooth import Smooth
from speech_robust_bench.models.interface import Recogniser
from speech_robust_bench.models.probe.recogniser import Probe

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
