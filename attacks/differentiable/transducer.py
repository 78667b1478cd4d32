"""Views of the transducers of transformers: Parakeet RNN-T and TDT."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from srb.attacks import losses
from srb.attacks.clips import AttackBatch
from srb.attacks.differentiable.transformers_model import TransformersView, encoder_frames


@dataclass
class TransducerView(TransformersView):
    """Parakeet RNN-T and TDT: the probability of the transcript, summed over all its alignments."""

    def losses(self, waves: Tensor, batch: AttackBatch) -> Tensor:
        inputs = self.inputs(waves, batch.lengths)
        tokens = [torch.tensor(self.tokens(text), device=waves.device) for text in batch.texts]
        blank = self.model.config.blank_token_id
        labels = pad_sequence(tokens, batch_first=True, padding_value=blank)
        told = torch.cat([torch.full_like(labels[:, :1], blank), labels], 1)
        encoded = self.model.get_audio_features(**inputs).pooler_output
        said = self.model.decoder(told)
        logits = self.model.joint(encoder_hidden_states=encoded[:, :, None], decoder_hidden_states=said[:, None])
        logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
        frames = encoder_frames(self.model, inputs["attention_mask"], logits.shape[1])
        if not hasattr(self.model.config, "durations"):
            return losses.transducer(logits, frames, tokens, blank)
        return self._with_durations(logits, frames, tokens, labels)

    def _with_durations(self, logits: Tensor, frames: Tensor, tokens: list[Tensor], labels: Tensor) -> Tensor:
        """The token-and-duration transducer's loss (Xu et al. 2023), as transformers has it."""
        from transformers.loss.loss_tdt import tdt_loss

        config = self.model.config
        counts = torch.tensor([len(row) for row in tokens], device=logits.device)
        scores, durations = logits[..., : config.vocab_size], logits[..., config.vocab_size :]
        blank, steps = config.blank_token_id, list(config.durations)
        summed = tdt_loss(scores, durations, labels, frames, counts, blank, steps, reduction="none")
        return summed / counts
