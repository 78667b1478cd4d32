"""Views of Parakeet and Canary: the log-mel spectrogram of their feature extractor in torch, with the losses of
Parakeet's three heads (CTC, RNN-T, TDT) and of Canary's decoder.

The extractor itself takes a square root of powers, whose gradient does not exist where there is silence; squares are
the same and have one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from srb.attacks import losses
from srb.attacks.clips import AttackBatch, mask_of
from srb.attacks.differentiable.ctc import CtcView
from srb.attacks.differentiable.encoder_decoder import Seq2SeqView
from srb.attacks.differentiable.transformers_model import TransformersView
from srb.core.audio import RATE

LOG_GUARD = 2**-24  # both as in ParakeetFeatureExtractor
SPREAD_GUARD = 1e-5


@dataclass
class ParakeetView(TransformersView):
    """The front end that all heads share."""

    extractors: ClassVar[tuple[str, ...]] = ("ParakeetFeatureExtractor",)

    def inputs(self, waves: Tensor, lengths: Tensor) -> dict[str, Tensor]:
        waves, lengths = self._long_enough(waves, lengths)
        mask = mask_of(lengths, waves.shape[1])
        waves = waves * mask
        if (share := self.extractor.preemphasis) is not None:
            waves = torch.cat([waves[:, :1], waves[:, 1:] - share * waves[:, :-1]], 1) * mask
        logs = self._log_mel(waves)
        frames = lengths // self.extractor.hop_length
        real = mask_of(frames, logs.shape[1])
        return {"input_features": self._normalised(logs, real).to(self.model.dtype), "attention_mask": real}

    def _log_mel(self, waves: Tensor) -> Tensor:
        """(clip, frame, band)."""
        extractor = self.extractor
        window = torch.hann_window(extractor.win_length, periodic=False, device=waves.device, dtype=waves.dtype)
        spectrum = torch.stft(
            waves,
            extractor.n_fft,
            extractor.hop_length,
            extractor.win_length,
            window,
            pad_mode="constant",
            return_complex=True,
        )
        power = spectrum.real.square() + spectrum.imag.square()
        return (extractor.mel_filters.to(power) @ power + LOG_GUARD).log().transpose(1, 2)

    def _normalised(self, logs: Tensor, real: Tensor) -> Tensor:
        """Every band with mean 0 and deviation 1 over the clip's own frames."""
        weights = real[..., None].to(logs.dtype)
        count = weights.sum(1, keepdim=True)
        mean = (logs * weights).sum(1, keepdim=True) / count
        variance = ((logs - mean).square() * weights).sum(1, keepdim=True) / (count - 1)
        return (logs - mean) / (variance.sqrt() + SPREAD_GUARD) * weights

    def _frames(self, attention_mask: Tensor, count: int) -> Tensor:
        """How many of the encoder's frames belong to each clip."""
        return self.model._get_output_attention_mask(attention_mask, target_length=count).sum(-1)


@dataclass
class ParakeetCtcView(ParakeetView, CtcView):
    """Parakeet CTC."""

    extractors: ClassVar[tuple[str, ...]] = ParakeetView.extractors

    def logits(self, waves: Tensor, batch: AttackBatch) -> tuple[Tensor, Tensor]:
        inputs = self.inputs(waves, batch.lengths)
        logits = self.model(**inputs).logits
        frames = self._frames(inputs["attention_mask"], logits.shape[1])
        return logits.to(torch.promote_types(logits.dtype, torch.float32)), frames


@dataclass
class ParakeetTransducerView(ParakeetView):
    """Parakeet RNN-T and TDT: the probability of the transcript, summed over all its alignments."""

    extractors: ClassVar[tuple[str, ...]] = ParakeetView.extractors

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
        frames = self._frames(inputs["attention_mask"], logits.shape[1])
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


@dataclass
class CanaryView(ParakeetView, Seq2SeqView):
    """Canary: the decoder begins with a prompt that names the language and the task."""

    extractors: ClassVar[tuple[str, ...]] = ParakeetView.extractors

    def prompt(self, language: str | None) -> list[int]:
        silence = [np.zeros(RATE, np.float32)]
        request = self.recogniser._request(silence, self.recogniser._spoken(language))  # type: ignore[attr-defined]
        given = request["decoder_input_ids"][0].tolist()
        start = self.model.generation_config.decoder_start_token_id
        return given if start in (None, given[0]) else [start, *given]  # as `generate` begins
