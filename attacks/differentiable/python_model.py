"""The differentiable view of a `python:` recogniser that has a `losses` method of its own."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from speech_robust_bench.attacks.clips import AttackBatch, mask_of
from speech_robust_bench.attacks.differentiable.base import View


@dataclass
class ModuleView(View):
    """A `python:` object that has its own `losses`; it may also have `fit`, `device`, `pads_safely`, `longest_s`."""

    def __post_init__(self) -> None:
        self.module = self.recogniser.owner  # type: ignore[attr-defined]
        self.pads_safely = getattr(self.module, "pads_safely", True)
        self.longest_s = getattr(self.module, "longest_s", float("inf"))

    @property
    def device(self) -> str:
        return str(getattr(self.module, "device", "cpu"))

    def losses(self, waves: Tensor, batch: AttackBatch) -> Tensor:
        return self.module.losses(waves * mask_of(batch.lengths, waves.shape[1]), batch.lengths, batch.texts)

    @property
    def has_margins(self) -> bool:
        return hasattr(self.module, "token_scores")

    def right_tokens(self, waves: Tensor, batch: AttackBatch) -> list[Tensor]:
        return self.module.right_tokens(waves, batch.lengths, batch.texts)

    def token_scores(self, waves: Tensor, batch: AttackBatch, right: list[Tensor]) -> Tensor:
        return self.module.token_scores(waves * mask_of(batch.lengths, waves.shape[1]), batch.lengths, right)

    def spell(self, text: str) -> str:
        text = super().spell(text)
        return self.module.spell(text) if hasattr(self.module, "spell") else text
