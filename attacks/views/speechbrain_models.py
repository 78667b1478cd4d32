"""Views of SpeechBrain's recognisers: CTC above an encoder, and decoders with attention, each by its training loss.

`encode_batch` is what transcribing calls as well, so the input is the recogniser's own. The beam search is left out:
its parts (embedding and recurrent decoder, or Transformer, and the layer above) are told the right tokens before.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from torch.nn.utils.rnn import pad_sequence

from speech_robust_bench.attacks.clips import AttackBatch, AttackClip, padded
from speech_robust_bench.attacks.views import base
from speech_robust_bench.attacks.views.base import View, writable_spelling
from speech_robust_bench.core.audio import RATE
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.models.adapters.speechbrain import LONGEST_S, SHORTEST_S


@dataclass
class SpeechBrainView(View):
    """What both kinds share: the encoder, and the tokens of a text."""

    def __post_init__(self) -> None:
        self.model: Any = self.recogniser.model  # type: ignore[attr-defined]
        self.tokenizer = self.model.tokenizer
        self.pads_safely = False  # it transcribes clips of one length together
        self.longest_s = LONGEST_S
        if self.recogniser.rate != RATE:  # type: ignore[attr-defined]
            raise UserError(f"{self.recogniser.name}: attacks are on {RATE} Hz, and it takes other audio")

    @property
    def device(self) -> str:
        return str(self.model.device)

    def encoded(self, waves: Tensor) -> Tensor:
        """(clip, frame, feature), of clips of one length."""
        waves = functional.pad(waves, (0, max(0, int(SHORTEST_S * RATE) - waves.shape[1])))
        with torch.backends.cudnn.flags(enabled=False):  # its recurrent layers have gradients in training alone
            return self.model.encode_batch(waves, torch.ones(len(waves), device=waves.device)).float()

    def check(self, clips: Sequence[AttackClip]) -> None:
        """Refuse a model whose features stop the gradient."""
        waves, lengths = padded([clips[0].samples], self.device)
        _, slope = self.gradient(waves, AttackBatch(lengths, [self.spell(clips[0].text)], clips[0].language))
        if not slope.any():
            raise UserError(
                f"{self.recogniser.name}: its loss does not depend on the waveform; something cuts gradients"
            )

    def tokens(self, text: str) -> list[int]:
        if hasattr(self.tokenizer, "encode_as_ids"):  # SentencePiece
            return self.tokenizer.encode_as_ids(text)
        return self.tokenizer.encode_sequence(list(text))  # CTCTextEncoder: letters

    def spell(self, text: str) -> str:
        return writable_spelling(super().spell(text), self._writable, self.recogniser.name)

    def _writable(self, text: str) -> bool:
        if hasattr(self.tokenizer, "encode_as_ids"):
            return self.tokenizer.unk_id() not in self.tokens(text)
        return all(char in self.tokenizer.lab2ind for char in text)

    @property
    def has_margins(self) -> bool:
        return True


@dataclass
class SpeechBrainCtcView(SpeechBrainView):
    """The gradient view of SpeechBrain's CTC models (`EncoderASR`)."""

    def losses(self, waves: Tensor, batch: AttackBatch) -> Tensor:
        log_probs = self.encoded(waves)
        frames = torch.full((len(waves),), log_probs.shape[1])
        return base.ctc(log_probs, frames, [torch.tensor(self.tokens(text)) for text in batch.texts], self.blank)

    @property
    def blank(self) -> int:
        """The token that is no letter."""
        known = getattr(self.model.hparams, "blank_index", None)
        return known if known is not None else self.model.decoding_function.keywords["blank_id"]

    def right_tokens(self, waves: Tensor, batch: AttackBatch) -> list[Tensor]:
        """The best letter of every frame, blanks too: a blank that loses is an insertion."""
        return list(self.encoded(waves).argmax(-1))

    def token_scores(self, waves: Tensor, batch: AttackBatch, right: list[Tensor]) -> Tensor:
        return self.encoded(waves)


@dataclass
class SpeechBrainDecoderView(SpeechBrainView):
    """`EncoderDecoderASR`, with a recurrent decoder or a Transformer."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.search: Any = self.model.mods.decoder
        if not (hasattr(self.search, "dec") or hasattr(self.search, "model")):
            raise UserError(
                f"{self.recogniser.name}: {type(self.search).__name__} is not a decoder whose loss is known; "
                "recurrent decoders with attention and Transformers are"
            )

    def losses(self, waves: Tensor, batch: AttackBatch) -> Tensor:
        tokens = self.right_tokens(waves, batch)
        return base.cross_entropy(self.token_scores(waves, batch, tokens), tokens)

    def right_tokens(self, waves: Tensor, batch: AttackBatch) -> list[Tensor]:
        return [torch.tensor([*self.tokens(text), self.search.eos_index]) for text in batch.texts]

    def token_scores(self, waves: Tensor, batch: AttackBatch, right: list[Tensor]) -> Tensor:
        start = torch.tensor([self.search.bos_index])
        told = pad_sequence([torch.cat([start, label[:-1]]) for label in right], True, self.search.eos_index)
        told, encoded = told.to(self.device), self.encoded(waves)
        whole = torch.ones(len(waves), device=encoded.device)
        if hasattr(self.search, "dec"):
            with torch.backends.cudnn.flags(enabled=False):
                hidden, _ = self.search.dec(self.search.emb(told), encoded, whole)
        else:  # below its no_grad; it takes the number of frames, not a part of the longest
            transformer = self.search.model
            decode = inspect.unwrap(type(transformer).decode)
            hidden, _ = decode(transformer, told, encoded, (whole * encoded.shape[1]).int())
        return self.search.fc(hidden).float()


def speechbrain_view(recogniser: Any, precision: torch.dtype | None = None) -> View:
    """The view of a SpeechBrain recogniser, by its class."""
    kinds = {"EncoderASR": SpeechBrainCtcView, "EncoderDecoderASR": SpeechBrainDecoderView}
    kind = recogniser.options["kind"]
    if kind not in kinds:
        raise UserError(f"{recogniser.name} is a {kind}; those with gradients are {', '.join(kinds)} (Whisper: hf:)")
    return kinds[kind](recogniser, precision)
