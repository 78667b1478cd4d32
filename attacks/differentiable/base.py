"""A recogniser as an attacker sees it: waveforms in, one loss per clip out, and gradients back to the waveforms.

The way to the loss repeats, in torch, the preprocessing that the recogniser uses when it transcribes; `check` proves on
the clips at hand that both give the model the same input. Samples behind a clip's end are never seen, so they have no
gradient, and nothing is averaged across clips.

A `python:` recogniser joins with one more method, `losses(waves, lengths, texts)`: a tensor (clip, sample), the true
lengths, the transcripts; it returns one loss per clip.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from speech_robust_bench.attacks.clips import AttackBatch, AttackClip, mask_of
from speech_robust_bench.core.audio import RATE
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.models.interface import Recogniser
from speech_robust_bench.scoring.scoring import normalise


@dataclass
class View:
    """What every attack needs of a recogniser."""

    recogniser: Recogniser
    precision: torch.dtype | None = None  # of autocast, for mixed precision
    pads_safely: bool = field(default=True, init=False)
    longest_s: float = field(default=float("inf"), init=False)

    @property
    def device(self) -> str:
        return "cpu"

    def losses(self, waves: Tensor, batch: AttackBatch) -> Tensor:
        """One loss per clip."""
        raise NotImplementedError

    @property
    def has_margins(self) -> bool:
        """Whether the scores of single tokens are known, so that their margins can be attacked."""
        return False

    def right_tokens(self, waves: Tensor, batch: AttackBatch) -> list[Tensor]:
        """Per clip, the right token at each position of `token_scores`."""
        raise NotImplementedError

    def token_scores(self, waves: Tensor, batch: AttackBatch, right: list[Tensor]) -> Tensor:
        """(clip, position, token): the logits from which the model chooses its tokens."""
        raise NotImplementedError

    def gradient(self, waves: Tensor, batch: AttackBatch) -> tuple[Tensor, Tensor]:
        """The losses, and the gradient of each clip's own loss."""
        waves = waves.detach().requires_grad_()
        with self._mixed():
            clip_losses = self.losses(waves, batch)
        for clip, loss in enumerate(clip_losses.tolist()):
            if not math.isfinite(loss):
                where = f"{batch.ids[clip]}: " if batch.ids else ""
                seconds = float(batch.lengths[clip]) / RATE
                told = f"'{batch.texts[clip]}' is too much text for a clip of {seconds:.2f} s: its loss is {loss}"
                raise UserError(where + told)
        (slope,) = torch.autograd.grad(clip_losses.sum(), waves)
        return clip_losses.detach(), slope * mask_of(batch.lengths, waves.shape[1])

    def values(self, waves: Tensor, batch: AttackBatch) -> Tensor:
        """The loss of each clip, without gradients."""
        with torch.no_grad(), self._mixed():
            return self.losses(waves, batch)

    def transcribe(self, signals: Sequence[np.ndarray], language: str | None) -> list[str]:
        """The transcripts of the recogniser itself."""
        return [text.strip() for text in self.recogniser.transcribe(list(signals), RATE, language)]

    def spell(self, text: str) -> str:
        """A transcript as the model would write it; an error where it cannot."""
        if not normalise(text):
            raise UserError("its transcript is empty: there is no loss to raise or lower")
        return text

    def check(self, clips: Sequence[AttackClip]) -> None:
        """Refuse to go on where the way to the loss does not give the model what transcribing gives it."""

    def compile(self) -> None:
        """Compile the model with torch.compile, where there is one to compile."""

    def _mixed(self, enabled: bool = True) -> Any:
        if self.precision is None:
            return contextlib.nullcontext()
        return torch.autocast(torch.device(self.device).type, self.precision, enabled=enabled)


@dataclass
class WrappedView(View):
    """Another view with something around it: a defence, other losses, dropout. It transcribes by its own recogniser."""

    inner: View = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        self.pads_safely, self.longest_s = self.inner.pads_safely, self.inner.longest_s

    @property
    def device(self) -> str:
        return self.inner.device

    def spell(self, text: str) -> str:
        return self.inner.spell(text)

    def check(self, clips: Sequence[AttackClip]) -> None:
        self.inner.check(clips)

    def compile(self) -> None:
        self.inner.compile()
