"""The differentiable view of an opened recogniser: the class that fits it, here or in an extension.

A `python:` recogniser with a `losses` method of its own is its own view.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from speech_robust_bench.attacks.clips import AttackBatch, mask_of
from speech_robust_bench.attacks.views.base import View
from speech_robust_bench.attacks.views.toolkit_models import nemo_view, speechbrain_view
from speech_robust_bench.attacks.views.transformers_models import (
    AudioLanguageModelView,
    CtcView,
    Seq2SeqView,
    TransducerView,
    WhisperView,
)
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.extensions import load_object, registered
from speech_robust_bench.models.adapters import hf, nemo, python, speechbrain
from speech_robust_bench.models.interface import Recogniser


@dataclass
class ModuleView(View):
    """A `python:` object that has its own `losses`; it may also have `fit`, `device`, `pads_safely`, `longest_s`."""

    def __post_init__(self) -> None:
        self.module = self.recogniser.owner  # type: ignore[attr-defined]
        self.pads_safely = getattr(self.module, "pads_safely", True)
        self.longest_s = getattr(self.module, "longest_s", float("inf"))

    @property
    def device(self) -> str:
        return str(getattr(self.module, "device", "cpu"))

    def losses(self, waves: Tensor, batch: AttackBatch) -> Tensor:
        return self.module.losses(waves * mask_of(batch.lengths, waves.shape[1]), batch.lengths, batch.texts)

    @property
    def has_margins(self) -> bool:
        return hasattr(self.module, "token_scores")

    def right_tokens(self, waves: Tensor, batch: AttackBatch) -> list[Tensor]:
        return self.module.right_tokens(waves, batch.lengths, batch.texts)

    def token_scores(self, waves: Tensor, batch: AttackBatch, right: list[Tensor]) -> Tensor:
        return self.module.token_scores(waves * mask_of(batch.lengths, waves.shape[1]), batch.lengths, right)

    def spell(self, text: str) -> str:
        text = super().spell(text)
        return self.module.spell(text) if hasattr(self.module, "spell") else text


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
    (speechbrain.SpeechBrainRecogniser, speechbrain_view),
    (nemo.Nemo, nemo_view),
)


def open_view(recogniser: Recogniser, *, eot: int | None = None, precision: torch.dtype | None = None) -> View:
    """The differentiable view of an opened recogniser; `eot` is the number of draws for one with a random defence.

    An extension's `VIEWS` has the views of its own recognisers, by the name of their class.
    """
    added = registered("VIEWS").get(type(recogniser).__name__)
    if added:
        return load_object(added)(recogniser, precision, eot)
    for kind, view in VIEWS:
        if isinstance(recogniser, kind):
            return view(recogniser, precision)
    if isinstance(recogniser, python.Function) and hasattr(recogniser.owner, "losses"):
        return ModuleView(recogniser, precision)
    raise UserError(
        f"{recogniser.name} has no gradients; the adapters that have are {WITH_GRADIENTS}. "
        "genetic needs none, kenansville not even a model"
    )
