"""The training losses of recognisers, one value per clip, so that no clip's gradient depends on the clips beside it.

Each is the mean over the clip's own tokens: CTC (Graves et al. 2006), cross-entropy of a decoder that is told the
right tokens before, and the transducer's (Graves 2012).
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional
from torch.nn.utils.rnn import pad_sequence


def ctc(logits: Tensor, frames: Tensor, tokens: list[Tensor], blank: int) -> Tensor:
    """`logits` (clip, frame, token), of which a clip has `frames`. Infinite where there are more tokens than frames."""
    log_probs = logits.log_softmax(-1).transpose(0, 1)
    counts = torch.tensor([len(label) for label in tokens], device=logits.device)
    labels = torch.cat(tokens).to(logits.device)
    summed = functional.ctc_loss(log_probs, labels, frames.to(logits.device), counts, blank, reduction="none")
    return summed / counts


def cross_entropy(logits: Tensor, tokens: list[Tensor], first_weight: float = 0.0) -> Tensor:
    """`logits` (clip, position, token), padded as `tokens` are.

    `first_weight` is the lambda of Olivier's Eq. 5.2: the first token counts 1 + lambda times, because it is the one
    that a targeted attack on Whisper finds hardest to turn.
    """
    labels = pad_sequence(tokens, batch_first=True, padding_value=-100).to(logits.device)
    each = functional.cross_entropy(logits.transpose(1, 2), labels, ignore_index=-100, reduction="none")
    weights = (labels != -100).to(each.dtype)
    weights[:, 0] += first_weight
    return (each * weights).sum(1) / weights.sum(1)


def transducer(logits: Tensor, frames: Tensor, tokens: list[Tensor], blank: int = 0) -> Tensor:
    """RNN-T: `logits` (clip, frame, tokens said so far, token).

    Along one frame the recursion a[u] = logaddexp(stay[u], a[u-1] + say[u-1]) is a running sum once what was said so
    far is divided out, so only frames are looped over.
    """
    log_probs = logits.log_softmax(-1)
    labels = pad_sequence(tokens, batch_first=True).to(logits.device)
    counts = torch.tensor([len(label) for label in tokens], device=logits.device)
    stay = log_probs[..., blank]
    say = log_probs[:, :, :-1].gather(3, labels[:, None, :, None].expand(-1, log_probs.shape[1], -1, 1))[..., 0]
    said = functional.pad(say.cumsum(2), (1, 0))
    alpha = said[:, 0]
    reached = [alpha]
    for frame in range(1, log_probs.shape[1]):
        alpha = (alpha + stay[:, frame - 1] - said[:, frame]).logcumsumexp(1) + said[:, frame]
        reached.append(alpha)
    rows = torch.arange(len(tokens), device=logits.device)
    last = frames.to(logits.device) - 1
    total = torch.stack(reached, 1)[rows, last, counts] + stay[rows, last, counts]
    return -total / counts
