"""Views of NeMo's recognisers by their training loss: CTC and RNN-T (Parakeet, Conformer; of hybrids the RNN-T).

NeMo computes its features without gradients. The same code below that wall is called, as `transcribe` sets it: no
padding to a multiple of frames, no dither. `check` compares the features with NeMo's own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from speech_robust_bench.attacks.clips import AttackBatch, AttackClip, padded
from speech_robust_bench.attacks.views import base
from speech_robust_bench.attacks.views.base import View, writable_spelling
from speech_robust_bench.attacks.views.transducer import best_path, path_scores
from speech_robust_bench.core.errors import UserError

TOLERANCE = 1e-3  # of the features' spread


@dataclass
class NemoView(View):
    """What both kinds share: features and encoder, and the tokens of a text."""

    def __post_init__(self) -> None:
        self.model: Any = self.recogniser.model  # type: ignore[attr-defined]
        self.model.requires_grad_(False)
        self.model.eval()
        self.pads_safely = False  # features are normalised over the clip, and convolutions see what is beside it

    @property
    def device(self) -> str:
        return str(self.model.device)

    def features(self, waves: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """(clip, feature, frame) and the number of frames, with gradients."""
        featurizer = self.model.preprocessor.featurizer
        with self._as_it_transcribes():
            return type(featurizer).forward(featurizer, waves.float(), lengths.to(waves.device))

    def encoded(self, waves: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """(clip, feature, frame) of the encoder, and the number of frames."""
        features, frames = self.features(waves, lengths)
        encoded, frames = self.model.encoder(audio_signal=features, length=frames)[:2]
        return encoded, frames

    def gradient(self, waves: Tensor, batch: AttackBatch) -> tuple[Tensor, Tensor]:
        # The square root in the spectrum has no slope at digital silence.
        clip_losses, slope = super().gradient(waves, batch)
        return clip_losses, slope.nan_to_num()

    def check(self, clips: Sequence[AttackClip]) -> None:
        waves, lengths = padded([clips[0].samples], self.device)
        with torch.no_grad(), self._as_it_transcribes():
            ours, _ = self.features(waves, lengths)
            theirs, _ = self.model.preprocessor(input_signal=waves, length=lengths.to(waves.device))
        distance = float((ours - theirs).abs().max() / theirs.std()) if ours.shape == theirs.shape else float("inf")
        if not distance <= TOLERANCE:
            raise UserError(
                f"{self.recogniser.name}: the differentiable features differ from NeMo's own by {distance:.3g} of "
                "their spread, so an attack on them would prove nothing"
            )

    @contextmanager
    def _as_it_transcribes(self) -> Iterator[None]:
        featurizer = self.model.preprocessor.featurizer
        before = featurizer.pad_to, featurizer.dither
        featurizer.pad_to, featurizer.dither = 0, 0.0
        try:
            yield
        finally:
            featurizer.pad_to, featurizer.dither = before

    def tokens(self, text: str) -> list[int]:
        if hasattr(self.model, "tokenizer"):
            return self.model.tokenizer.text_to_ids(text)
        return [self._letters[char] for char in text]

    def spell(self, text: str) -> str:
        return writable_spelling(super().spell(text), self._writable, self.recogniser.name)

    def _writable(self, text: str) -> bool:
        if hasattr(self.model, "tokenizer"):
            return getattr(self.model.tokenizer, "unk_id", None) not in self.tokens(text)
        return all(char in self._letters for char in text)

    @property
    def _letters(self) -> dict[str, int]:
        part = self.model.joint if hasattr(self.model, "joint") else self.model.decoder
        return {letter: place for place, letter in enumerate(part.vocabulary)}


@dataclass
class NemoCtcView(NemoView):
    """`EncDecCTCModel` and its like; the last token is no letter."""

    def losses(self, waves: Tensor, batch: AttackBatch) -> Tensor:
        log_probs, frames = self.log_probs(waves, batch)
        tokens = [torch.tensor(self.tokens(text)) for text in batch.texts]
        return base.ctc(log_probs, frames, tokens, log_probs.shape[-1] - 1)

    def log_probs(self, waves: Tensor, batch: AttackBatch) -> tuple[Tensor, Tensor]:
        encoded, frames = self.encoded(waves, batch.lengths)
        return self.model.decoder(encoder_output=encoded).float(), frames

    @property
    def has_margins(self) -> bool:
        return True

    def right_tokens(self, waves: Tensor, batch: AttackBatch) -> list[Tensor]:
        """The best letter of every frame, blanks too: a blank that loses is an insertion."""
        log_probs, frames = self.log_probs(waves, batch)
        return [row[:count] for row, count in zip(log_probs.argmax(-1), frames.tolist(), strict=True)]

    def token_scores(self, waves: Tensor, batch: AttackBatch, right: list[Tensor]) -> Tensor:
        return self.log_probs(waves, batch)[0]


@dataclass
class NemoTransducerView(NemoView):
    """`EncDecRNNTModel` and its like; the last token is no letter."""

    def losses(self, waves: Tensor, batch: AttackBatch) -> Tensor:
        rows = self.logits(waves, batch)
        values = [base.transducer(row[None], torch.tensor([len(row)]), [tokens], self.blank) for row, tokens in rows]
        return torch.cat(values)

    @property
    def blank(self) -> int:
        return self.model.joint.num_classes_with_blank - 1

    def logits(self, waves: Tensor, batch: AttackBatch) -> Iterator[tuple[Tensor, Tensor]]:
        """Per clip (frame, tokens said so far, token), and its tokens; one by one: memory, and no padding."""
        encoded, frames = self.encoded(waves, batch.lengths)
        for place, text in enumerate(batch.texts):
            tokens = torch.tensor(self.tokens(text), device=self.device)
            said = self.model.decoder(targets=tokens[None], target_length=torch.tensor([len(tokens)]).to(tokens))[0]
            heard = encoded[place : place + 1, :, : frames[place]]
            yield self.model.joint.joint(heard.transpose(1, 2), said.transpose(1, 2))[0].float(), tokens

    @property
    def has_margins(self) -> bool:
        return True

    def right_tokens(self, waves: Tensor, batch: AttackBatch) -> list[Tensor]:
        """The decisions of the best path, blanks too: a blank that loses is an insertion."""
        return [best_path(row, tokens, self.blank) for row, tokens in self.logits(waves, batch)]

    def token_scores(self, waves: Tensor, batch: AttackBatch, right: list[Tensor]) -> Tensor:
        rows = zip(self.logits(waves, batch), right, strict=True)
        return pad_sequence([path_scores(row, path, self.blank) for (row, _), path in rows], True)


def nemo_view(recogniser: Any, precision: torch.dtype | None = None) -> View:
    """The view of a NeMo recogniser, by what it is made of."""
    model = recogniser.model
    if getattr(getattr(model, "joint", None), "num_extra_outputs", 0):
        raise UserError(f"{recogniser.name}: TDT has no view as nemo:; attack the same model as hf:")
    if hasattr(model, "joint"):
        return NemoTransducerView(recogniser, precision)
    if "CTC" in type(model).__name__:
        return NemoCtcView(recogniser, precision)
    raise UserError(
        f"{recogniser.name} is a {type(model).__name__}; of NeMo's models CTC and RNN-T have gradients here. "
        "Canary can be attacked as hf:"
    )
