"""Views of NeMo's and SpeechBrain's recognisers by their training loss.

NeMo: CTC and RNN-T (Parakeet, Conformer; of hybrids the RNN-T). It computes its features without gradients, so the code
below that wall is called, as `transcribe` sets it: no padding to a multiple of frames, no dither. `check` compares the
features with NeMo's own.

SpeechBrain: CTC above an encoder, and decoders with attention. `encode_batch` is what transcribing calls as well, so
the input is the recogniser's own. The beam search is left out: its parts (embedding and recurrent decoder, or
Transformer, and the layer above) are told the right tokens before.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from torch.nn.utils.rnn import pad_sequence

from speech_robust_bench.attacks.clips import AttackBatch, AttackClip, padded
from speech_robust_bench.attacks.views import base
from speech_robust_bench.attacks.views.base import View, writable_spelling
from speech_robust_bench.attacks.views.transformers_models import best_path, path_scores
from speech_robust_bench.core.audio import RATE
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.models.adapters.speechbrain import LONGEST_S, SHORTEST_S

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
    """`EncDecCTCModel` and its like; the last token is the blank."""

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
    """`EncDecRNNTModel` and its like; the last token is the blank."""

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
        """The blank."""
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
