"""Views of language models that take audio: Voxtral, Qwen3-ASR, Granite Speech, and what shares their extractors.

The request (prompt, masks, places for the audio) is the recogniser's own and depends on the lengths of the clips alone;
the features in it are replaced by those of the differentiable way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from speech_robust_bench.attacks.clips import AttackBatch, AttackClip
from speech_robust_bench.attacks.differentiable.encoder_decoder import Seq2SeqView
from speech_robust_bench.core.audio import RATE
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.models.hf.base import SHORTEST_S

FEATURES = "input_features"
PIECE_S = 30.0  # longer clips go to the encoder in pieces, by rules of each processor


@dataclass
class AudioLanguageModelView(Seq2SeqView):
    """A language model that is asked for a transcript and told its right tokens before each next one."""

    _requests: dict[Any, dict[str, Tensor]] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.longest_s = min(self.longest_s, PIECE_S)

    def logits(self, waves: Tensor, batch: AttackBatch, tokens: list[Tensor]) -> Tensor:
        request = self.request(batch)
        told = pad_sequence([label[:-1] for label in tokens], True, self.end).to(self.device)
        prompt = request["input_ids"].shape
        given = {**request, **self.inputs(waves, batch.lengths)}
        for name, value in request.items():
            if value.shape == prompt:  # what there is for each token of the prompt: those that are told follow
                more = told if name == "input_ids" else torch.full_like(told, int(name == "attention_mask"))
                given[name] = torch.cat([value, more.to(value.dtype)], 1)
        logits = self.model(**given, use_cache=False).logits[:, prompt[1] - 1 :]
        return logits.to(torch.promote_types(logits.dtype, torch.float32))

    def request(self, batch: AttackBatch) -> dict[str, Tensor]:
        """What goes with the features of clips of these lengths."""
        key = (tuple(batch.lengths.tolist()), batch.language)
        if key not in self._requests:
            shortest = int(SHORTEST_S * RATE)
            silence = [np.zeros(max(length, shortest), np.float32) for length in key[0]]
            self._requests = {key: self._request(silence, batch.language)}  # the batch at hand; others are done with
        return self._requests[key]

    def _request(self, signals: list[np.ndarray], language: str | None) -> dict[str, Tensor]:
        spoken = self.recogniser._spoken(language)  # type: ignore[attr-defined]
        if spoken is None and self.model.config.model_type == "qwen3_asr":
            raise UserError(f"{self.recogniser.name}: name the language (?language=en); it writes it first otherwise")
        with torch.no_grad():
            request = self.recogniser._request(signals, spoken)  # type: ignore[attr-defined]
        return {name: value for name, value in request.items() if isinstance(value, Tensor)}

    def their_inputs(self, clips: Sequence[AttackClip]) -> dict[str, Tensor]:
        return self._request([self._padded(clip) for clip in clips], clips[0].language)
