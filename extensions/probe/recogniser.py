"""A trained probe as a recogniser (encoder, head, greedy CTC decoding), and its differentiable view for attacks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from speech_robust_bench.attacks.clips import AttackBatch
from speech_robust_bench.attacks.views.base import View
from speech_robust_bench.attacks.views.transformers_models import CtcView
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.extensions.probe.head import BLANK, Head, Letters, spelled
from speech_robust_bench.extensions.probe.upstream import Upstream
from speech_robust_bench.models.hf.base import TransformersRecogniser
from speech_robust_bench.models.interface import Clip, Recogniser


class ProbeModel(nn.Module):
    """A frozen encoder and the head that was trained above it."""

    def __init__(self, upstream: Upstream, head: Head) -> None:
        super().__init__()
        self.upstream = upstream
        self.encoder = upstream.encoder
        self.head = head
        self.main_input_name = self.encoder.main_input_name

    @property
    def device(self) -> torch.device:
        return self.head.layer_logits.device

    @property
    def dtype(self) -> torch.dtype:
        return self.head.layer_logits.dtype

    def forward(self, inputs: dict[str, Tensor], lengths: list[int]) -> tuple[Tensor, Tensor]:
        """Logits (clip, frame, letter) of clips of some lengths in samples, and how many frames each has."""
        states = self.upstream.hidden_states(inputs)
        counts = self.upstream.frames(lengths, states.shape[2])
        return self.head([each[:, :count] for each, count in zip(states, counts, strict=True)])


@dataclass
class Probe(TransformersRecogniser):
    """Clips of up to 30 s whole; longer ones are cut at pauses."""

    letters: Letters = None  # type: ignore[assignment]

    def _inputs(self, clips: list[Clip], **more: Any) -> dict[str, Any]:
        return self.model.upstream.inputs(clips)

    def _padding_changes_nothing(self) -> bool:
        upstream: Upstream = self.model.upstream
        if upstream.fixed_window:
            return True
        tells = hasattr(upstream.encoder, "_get_feat_extract_output_lengths")
        return tells and super()._padding_changes_nothing()

    def _features(self, clips: list[Clip]) -> list[Any]:
        logits, frames = self.model(self._inputs(clips), [len(clip) for clip in clips])
        return [row[:count] for row, count in zip(logits, frames.tolist(), strict=True)]

    def _texts(self, clips: list[Clip], language: str | None) -> list[str]:
        pieces = self._in_pieces(clips, self._decoded)
        return [" ".join(text for text in texts if text) for texts in pieces]

    def _decoded(self, clips: list[Clip]) -> list[str]:
        return [self.letters.decode(logits.argmax(-1).tolist()) for logits in self._features(clips)]


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
            raise UserError("its transcript is empty, so it has no loss")
        letters = self.recogniser.letters.characters  # type: ignore[attr-defined]
        if odd := sorted(set(written) - set(letters)):
            name = self.recogniser.name
            raise UserError(f"its transcript has characters that {name} cannot write: {' '.join(odd)}")
        return written


def probe_view(recogniser: Recogniser, precision: torch.dtype | None, eot: int | None) -> View:
    """The view of an opened probe; it has nothing random, so `eot` changes nothing."""
    return ProbeView(recogniser, precision)
