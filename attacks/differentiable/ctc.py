"""Views of the CTC models of transformers: wav2vec 2.0, HuBERT, WavLM, Data2Vec, MMS, Parakeet."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from speech_robust_bench.attacks import losses
from speech_robust_bench.attacks.clips import AttackBatch
from speech_robust_bench.attacks.differentiable.transformers_model import TransformersView, encoder_frames


@dataclass
class CtcView(TransformersView):
    """wav2vec 2.0, HuBERT, WavLM, Data2Vec, MMS, Parakeet."""

    def losses(self, waves: Tensor, batch: AttackBatch) -> Tensor:
        logits, frames = self.logits(waves, batch)
        tokens = [torch.tensor(self.tokens(text)) for text in batch.texts]
        return losses.ctc(logits, frames, tokens, self.blank)

    @property
    def blank(self) -> int:
        """The token that is no letter."""
        return self.model.config.pad_token_id

    def logits(self, waves: Tensor, batch: AttackBatch) -> tuple[Tensor, Tensor]:
        """(clip, frame, letter), and how many frames each clip has."""
        self.recogniser._speak(batch.language)  # type: ignore[attr-defined]
        inputs = self.inputs(waves, batch.lengths)
        logits = self.model(**inputs).logits
        if hasattr(self.model, "_get_output_attention_mask"):
            frames = encoder_frames(self.model, inputs["attention_mask"], logits.shape[1])
        else:
            _, lengths = self._long_enough(waves[:0], batch.lengths)
            frames = self.model._get_feat_extract_output_lengths(lengths)
        return logits.to(torch.promote_types(logits.dtype, torch.float32)), frames

    @property
    def has_margins(self) -> bool:
        return True

    def right_tokens(self, waves: Tensor, batch: AttackBatch) -> list[Tensor]:
        """The best letter of every frame, blanks too: a blank that loses is an insertion."""
        logits, frames = self.logits(waves, batch)
        return [row[:count] for row, count in zip(logits.argmax(-1), frames.tolist(), strict=True)]

    def token_scores(self, waves: Tensor, batch: AttackBatch, right: list[Tensor]) -> Tensor:
        return self.logits(waves, batch)[0]

    def read(self, waves: Tensor, batch: AttackBatch) -> list[str]:
        """The transcripts by way of the differentiable path."""
        with torch.no_grad():
            logits, frames = self.logits(waves, batch)
        best = logits.argmax(-1)
        return [self.decode(row[:count].tolist()) for row, count in zip(best, frames, strict=True)]

    def decode(self, numbers: list[int]) -> str:
        """The text of the best letter of every frame."""
        return self.processor.decode(numbers)
