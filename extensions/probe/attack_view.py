"""The view of a probe: CTC over the frames of a frozen encoder, with gradients through encoder and head."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from speech_robust_bench.attacks.clips import AttackBatch
from speech_robust_bench.attacks.views.base import View
from speech_robust_bench.attacks.views.transformers_models import CtcView
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.extensions.probe.head import BLANK, spelled
from speech_robust_bench.models.interface import Recogniser


@dataclass
class ProbeView(CtcView):
    """A probe above wav2vec 2.0 and its like, Moonshine, Whisper or filter banks."""

    @property
    def blank(self) -> int:
        return BLANK

    def logits(self, waves: Tensor, batch: AttackBatch) -> tuple[Tensor, Tensor]:
        logits, frames = self.model(self.inputs(waves, batch.lengths), batch.lengths.tolist())
        return logits.to(torch.promote_types(logits.dtype, torch.float32)), frames

    def tokens(self, text: str) -> list[int]:
        return self.recogniser.letters.encode(text)  # type: ignore[attr-defined]

    def decode(self, numbers: list[int]) -> str:
        return self.recogniser.letters.decode(numbers)  # type: ignore[attr-defined]

    def spell(self, text: str) -> str:
        written = spelled(text, None)
        if not written:
            raise UserError("its transcript is empty: there is no loss to raise or lower")
        letters = self.recogniser.letters.characters  # type: ignore[attr-defined]
        if odd := sorted(set(written) - set(letters)):
            name = self.recogniser.name
            raise UserError(f"its transcript has characters that {name} cannot write: {' '.join(odd)}")
        return written


def probe_view(recogniser: Recogniser, precision: torch.dtype | None, eot: int | None) -> View:
    """The view of an opened probe; it has nothing random, so `eot` changes nothing."""
    return ProbeView(recogniser, precision)
