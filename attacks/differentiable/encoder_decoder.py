"""Views of the encoder-decoder models of transformers: Moonshine, SpeechT5, Canary and others."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from speech_robust_bench.attacks import losses
from speech_robust_bench.attacks.clips import AttackBatch
from speech_robust_bench.attacks.differentiable.transformers_model import TransformersView
from speech_robust_bench.core.audio import RATE
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.models.hf.base import positions


@dataclass
class Seq2SeqView(TransformersView):
    """Moonshine, SpeechT5, Canary and others; the loss tells the decoder the right tokens before each one."""

    first_weight: float = 0.0  # see losses.cross_entropy

    def losses(self, waves: Tensor, batch: AttackBatch) -> Tensor:
        tokens = self.right_tokens(waves, batch)
        return losses.cross_entropy(self.logits(waves, batch, tokens), tokens, self.first_weight)

    def logits(self, waves: Tensor, batch: AttackBatch, tokens: list[Tensor]) -> Tensor:
        """(clip, position, token), where position i has been told the tokens before i."""
        prompt = torch.tensor(self.prompt(batch.language))
        told = pad_sequence([torch.cat([prompt, label[:-1]]) for label in tokens], True, self.end).to(self.device)
        if told.shape[1] > (room := positions(self.model.config) + 4):
            raise UserError(f"{self.recogniser.name}: a transcript of {told.shape[1]} tokens; it has room for {room}")
        logits = self.model(**self.inputs(waves, batch.lengths), decoder_input_ids=told, use_cache=False).logits
        return logits[:, len(prompt) - 1 :].to(torch.promote_types(logits.dtype, torch.float32))

    @property
    def has_margins(self) -> bool:
        return True

    def right_tokens(self, waves: Tensor, batch: AttackBatch) -> list[Tensor]:
        return [torch.tensor([*self.tokens(text), self.end]) for text in batch.texts]

    def token_scores(self, waves: Tensor, batch: AttackBatch, right: list[Tensor]) -> Tensor:
        return self.logits(waves, batch, right)

    def read(self, waves: Tensor, batch: AttackBatch) -> list[str]:
        """The transcripts that the decoder would write at each position, told `batch.texts` before it."""
        tokens = self.right_tokens(waves, batch)
        with torch.no_grad():
            best = self.logits(waves, batch, tokens).argmax(-1)
        return [
            self.tokenizer.decode(row[: len(label)].tolist(), skip_special_tokens=True).strip()
            for row, label in zip(best, tokens, strict=True)
        ]

    def spell(self, text: str) -> str:
        # Corpora such as LibriSpeech write capitals only; a model that writes sentences would find those unlikely
        # before any attack.
        return super().spell(text.capitalize() if text.isupper() else text)

    @cached_property
    def end(self) -> int:
        """The token that ends a transcript."""
        end = self.model.generation_config.eos_token_id
        return end[0] if isinstance(end, list) else end

    def prompt(self, language: str | None) -> list[int]:
        """What the decoder is given before the first word."""
        settings = self.model.generation_config
        start = settings.decoder_start_token_id
        if hasattr(self.processor, "apply_transcription_request"):  # Canary is told the language and the task
            request = self.recogniser._request([np.zeros(RATE, np.float32)], self.recogniser._spoken(language))  # type: ignore[attr-defined]
            given = request["decoder_input_ids"][0].tolist()
            return given if start in (None, given[0]) else [start, *given]  # as `generate` begins
        return [start if start is not None else settings.bos_token_id]
