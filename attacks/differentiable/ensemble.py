"""Several recognisers attacked as one, by the sum of their losses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from speech_robust_bench.attacks.clips import AttackBatch, AttackClip
from speech_robust_bench.attacks.differentiable.base import View


@dataclass
class Ensemble(View):
    """Several recognisers as one: the sum of their losses (Olivier, 6.3.1). Transcripts are those of the first."""

    views: list[View] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.pads_safely = all(view.pads_safely for view in self.views)
        self.longest_s = min(view.longest_s for view in self.views)

    @property
    def device(self) -> str:
        return self.views[0].device

    def gradient(self, waves: Tensor, batch: AttackBatch) -> tuple[Tensor, Tensor]:
        return self._sum(lambda view, own: view.gradient(waves.to(view.device), own), batch)

    def values(self, waves: Tensor, batch: AttackBatch) -> Tensor:
        return self._sum(lambda view, own: (view.values(waves.to(view.device), own),), batch)[0]

    def spell(self, text: str) -> str:
        for view in self.views:
            view.spell(text)
        return text

    def check(self, clips: Sequence[AttackClip]) -> None:
        for view in self.views:
            view.check(clips)

    def _sum(self, function: Callable[[View, AttackBatch], tuple[Tensor, ...]], batch: AttackBatch) -> Any:
        parts = []
        for view in self.views:
            own = replace(batch, texts=[view.spell(text) for text in batch.texts], right_tokens=[])
            parts.append([part.to(self.device) for part in function(view, own)])
        return tuple(torch.stack(same).sum(0) for same in zip(*parts, strict=True))


def joined(views: Sequence[View]) -> View:
    """Several proxies as one view; one alone stays as it is."""
    return views[0] if len(views) == 1 else Ensemble(views[0].recogniser, views=list(views))
