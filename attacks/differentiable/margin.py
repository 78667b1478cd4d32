"""A loss that does not saturate: how far the right tokens are from losing, token by token.

Where a model is sure of a transcript, its own loss and the gradient of that loss are nearly zero. The margin between
the score of a right token and the best other one is not; and once a token has lost it counts no more, so that the steps
go to those that are still right (the idea of Carlini and Wagner's f6, and of AutoAttack's DLR).
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from speech_robust_bench.attacks.clips import AttackBatch
from speech_robust_bench.attacks.differentiable.base import View, WrappedView

LOST = 1.0  # a token that trails by this much has lost


def hinge(scores: Tensor, right: Tensor) -> Tensor:
    """Per clip, the mean over its tokens of min(best other score - right score, LOST).

    `scores` (clip, position, token) are logits, `right` (clip, position) the right tokens, -100 where there is none.
    """
    known = right != -100
    own = scores.gather(2, right.clamp_min(0)[..., None])[..., 0]
    others = scores.scatter(2, right.clamp_min(0)[..., None], float("-inf")).amax(-1)
    return ((others - own).clamp_max(LOST) * known).sum(1) / known.sum(1).clamp_min(1)


@dataclass
class MarginView(WrappedView):
    """Another view, with margins in place of its losses."""

    def losses(self, waves: Tensor, batch: AttackBatch) -> Tensor:
        right = pad_sequence(batch.right_tokens, batch_first=True, padding_value=-100)
        scores = self.inner.token_scores(waves, batch, batch.right_tokens)[:, : right.shape[1]]
        return hinge(scores.to(torch.promote_types(scores.dtype, torch.float32)), right.to(scores.device))


def margin_view(view: View) -> View | None:
    """The same model behind the same defence, with margins for losses; None if it does not tell its tokens' scores."""
    if isinstance(view, WrappedView):
        by_margin = margin_view(view.inner)
        return dataclasses.replace(view, inner=by_margin) if by_margin is not None else None
    if not view.has_margins:
        return None
    return MarginView(view.recogniser, view.precision, inner=view)


def right_tokens(view: View, waves: Tensor, batch: AttackBatch) -> list[Tensor]:
    """The tokens of the clean clips that are to lose, position by position; a defence plays no part in them."""
    while isinstance(view, WrappedView):
        view = view.inner
    with torch.no_grad():
        return view.right_tokens(waves, batch)
