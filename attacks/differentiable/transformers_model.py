"""What the views of all transformers models share: the waveform as their feature extractors prepare it, and the check
that the model is given the same input as when it transcribes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from speech_robust_bench.attacks.clips import AttackClip, mask_of, padded
from speech_robust_bench.attacks.differentiable.base import View
from speech_robust_bench.attacks.differentiable.front_ends import FRONT_ENDS, front_end
from speech_robust_bench.attacks.differentiable.spelling import writable_spelling
from speech_robust_bench.core.audio import RATE
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.models.hf.base import SHORTEST_S

TOLERANCE = 1e-3  # of the features' spread: rounding is below it, another preprocessing above


@dataclass
class TransformersView(View):
    """What the views of transformers models share: the waveform as their feature extractors give it to them."""

    def __post_init__(self) -> None:
        self.model = self.recogniser.model  # type: ignore[attr-defined]
        self.processor = self.recogniser.processor  # type: ignore[attr-defined]
        self.model.requires_grad_(False)  # the attack moves the sound, not the weights: a third of the work saved
        self.pads_safely = self.recogniser.pads_safely  # type: ignore[attr-defined]
        self.longest_s = self.recogniser.chunk_s  # type: ignore[attr-defined]
        self.extractor = extractor_of(self.processor)
        self.tokenizer: Any = getattr(self.processor, "tokenizer", None)
        self.front_end = front_end(self.extractor)
        if self.front_end is None:
            raise UserError(
                f"{self.recogniser.name}: there is no differentiable form of {type(self.extractor).__name__} at "
                f"{self.extractor.sampling_rate} Hz; those of {', '.join(FRONT_ENDS)} at {RATE} Hz exist"
            )

    @property
    def device(self) -> str:
        return str(self.model.device)

    def compile(self) -> None:
        self.model.compile()

    def inputs(self, waves: Tensor, lengths: Tensor) -> dict[str, Tensor]:
        """What the model is given, made from the waveforms differentiably."""
        waves, lengths = self._long_enough(waves, lengths)
        assert self.front_end is not None
        with self._mixed(enabled=False):  # features as when it transcribes, in any precision
            given = self.front_end(self.extractor, waves * mask_of(lengths, waves.shape[1]), lengths)
        return {
            name: value.to(self.model.dtype) if value.is_floating_point() else value for name, value in given.items()
        }

    def _long_enough(self, waves: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        shortest = int(SHORTEST_S * RATE)
        waves = functional.pad(waves, (0, max(0, shortest - waves.shape[1])))
        return waves.to(torch.promote_types(self.model.dtype, torch.float32)), lengths.clamp_min(shortest)

    def their_inputs(self, clips: Sequence[AttackClip]) -> dict[str, Tensor]:
        """What the model is given when it transcribes."""
        return self.recogniser._inputs([self._padded(clip) for clip in clips])  # type: ignore[attr-defined]

    def _padded(self, clip: AttackClip) -> np.ndarray:
        return np.pad(clip.samples, (0, max(0, int(SHORTEST_S * RATE) - len(clip.samples))))

    def difference(self, clips: Sequence[AttackClip]) -> float:
        """The largest difference between the two inputs, in units of their spread."""
        with torch.no_grad():
            ours = self.inputs(*padded([clip.samples for clip in clips], self.device))
        theirs = self.their_inputs(clips)
        name = next(iter(ours))
        if ours[name].shape != theirs[name].shape:
            return float("inf")
        return float((ours[name] - theirs[name]).abs().max() / theirs[name].float().std())

    def check(self, clips: Sequence[AttackClip]) -> None:
        if (distance := self.difference(clips)) > max(TOLERANCE, 4 * torch.finfo(self.model.dtype).eps):
            raise UserError(
                f"{self.recogniser.name}: the differentiable preprocessing differs from the recogniser's own by "
                f"{distance:.3g} of its spread, so an attack on it would prove nothing"
            )

    def tokens(self, text: str) -> list[int]:
        return self.tokenizer(text, add_special_tokens=False).input_ids

    def spell(self, text: str) -> str:
        return writable_spelling(super().spell(text), self._writable, self.recogniser.name)

    def _writable(self, text: str) -> bool:
        return text.isspace() or self.tokenizer.unk_token_id not in self.tokens(text)


def extractor_of(processor: Any) -> Any:
    """The part of a processor that takes audio."""
    for name in ("feature_extractor", "audio_processor"):
        if (part := getattr(processor, name, None)) is not None:
            return part
    return processor


def encoder_frames(model: Any, attention_mask: Tensor, count: int) -> Tensor:
    """How many of an encoder's frames belong to each clip."""
    return model._get_output_attention_mask(attention_mask, target_length=count).sum(-1)
