"""Views of the transducers of transformers: Parakeet RNN-T and TDT."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from speech_robust_bench.attacks import losses
from speech_robust_bench.attacks.clips import AttackBatch
from speech_robust_bench.attacks.differentiable.transducer_path import best_path, path_scores
from speech_robust_bench.attacks.differentiable.transformers_model import TransformersView, encoder_frames


@dataclass
class TransducerView(TransformersView):
    """Parakeet RNN-T and TDT: the probability of the transcript, summed over all its alignments."""

    def losses(self, waves: Tensor, batch: AttackBatch) -> Tensor:
        logits, frames, tokens = self.logits(waves, batch)
        if not self.durations:
            return losses.transducer(logits, frames, tokens, self.blank)
        return self._with_durations(logits, frames, tokens)

    @property
    def blank(self) -> int:
        return self.model.config.blank_token_id

    @property
    def durations(self) -> list[int]:
        """How many frames a token may take; none in RNN-T."""
        return list(getattr(self.model.config, "durations", ()))

    def logits(self, waves: Tensor, batch: AttackBatch) -> tuple[Tensor, Tensor, list[Tensor]]:
        """(clip, frame, tokens said so far, token), how many frames each clip has, and its tokens."""
        inputs = self.inputs(waves, batch.lengths)
        tokens = [torch.tensor(self.tokens(text), device=waves.device) for text in batch.texts]
        labels = pad_sequence(tokens, batch_first=True, padding_value=self.blank)
        told = torch.cat([torch.full_like(labels[:, :1], self.blank), labels], 1)
        encoded = self.model.get_audio_features(**inputs).pooler_output
        said = self.model.decoder(told)
        logits = self.model.joint(encoder_hidden_states=encoded[:, :, None], decoder_hidden_states=said[:, None])
        frames = encoder_frames(self.model, inputs["attention_mask"], logits.shape[1])
        return logits.to(torch.promote_types(logits.dtype, torch.float32)), frames, tokens

    def _with_durations(self, logits: Tensor, frames: Tensor, tokens: list[Tensor]) -> Tensor:
        """The token-and-duration transducer's loss (Xu et al. 2023), as transformers has it."""
        from transformers.loss.loss_tdt import tdt_loss

        counts = torch.tensor([len(row) for row in tokens], device=logits.device)
        labels = pad_sequence(tokens, batch_first=True, padding_value=self.blank)
        scores, steps = logits.split([self.model.config.vocab_size, len(self.durations)], -1)
        summed = tdt_loss(scores, steps, labels, frames, counts, self.blank, self.durations, reduction="none")
        return summed / counts

    @property
    def has_margins(self) -> bool:
        return True

    def right_tokens(self, waves: Tensor, batch: AttackBatch) -> list[Tensor]:
        """The decisions of the best path, blanks too: a blank that loses is an insertion."""
        return [
            best_path(row[:count, : len(tokens) + 1], tokens, self.blank, self.durations)
            for row, count, tokens in zip(*self.logits(waves, batch), strict=True)
        ]

    def token_scores(self, waves: Tensor, batch: AttackBatch, right: list[Tensor]) -> Tensor:
        rows = zip(self.logits(waves, batch)[0], right, strict=True)
        return pad_sequence([path_scores(row, path, self.blank, self.durations) for row, path in rows], True)
