"""The best path of a transducer through a clip: the decisions whose margins an attack makes lose.

A transducer decides again and again: the next token, or none (a blank) and on to the next frame. A token-and-duration
transducer decides for a token and a number of frames at once; such a pair is numbered `token * len(durations) + place
of the duration`, and its score is the sum of both scores.

Views of the transducers of transformers: Parakeet RNN-T and TDT.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from speech_robust_bench.attacks.clips import AttackBatch
from speech_robust_bench.attacks.views import base
from speech_robust_bench.attacks.views.transformers_models import TransformersView, encoder_frames


def best_path(logits: Tensor, tokens: Tensor, blank: int, durations: Sequence[int] = ()) -> Tensor:
    """The decisions of the most probable alignment. `logits` (frame, tokens said so far, token) are of one clip."""
    scores, steps = _split(logits, durations)
    scores, steps = scores.log_softmax(-1), steps.log_softmax(-1)
    stay = (scores[..., blank, None] + steps).cpu().numpy()
    index = tokens.to(logits.device)[None, :, None].expand(len(scores), -1, 1)
    say = (scores[:, :-1].gather(2, index) + steps[:, :-1]).cpu().numpy()
    moves = _best_moves(stay, say, durations or (1,), durations or (0,))
    width, said, path = max(1, len(durations)), 0, []
    for is_token, place in moves:
        path.append((int(tokens[said]) if is_token else blank) * width + place)
        said += is_token
    return torch.tensor(path, device=logits.device)


def path_scores(logits: Tensor, path: Tensor, blank: int, durations: Sequence[int] = ()) -> Tensor:
    """(position, decision): the scores from which the decisions of a path are chosen."""
    width = max(1, len(durations))
    is_token = path // width != blank
    taken = torch.tensor(durations, device=path.device)[path % width] if durations else (~is_token).long()
    frame, said = taken.cumsum(0) - taken, is_token.cumsum(0) - is_token.long()
    scores, steps = _split(logits[frame, said], durations)
    return (scores[..., None] + steps[..., None, :]).flatten(1)


def _split(logits: Tensor, durations: Sequence[int]) -> tuple[Tensor, Tensor]:
    """The scores of tokens and of durations; one duration of no weight where the model has none."""
    if not durations:
        return logits, torch.zeros_like(logits[..., :1])
    return logits[..., : -len(durations)], logits[..., -len(durations) :]


def _best_moves(
    stay: np.ndarray, say: np.ndarray, stay_durations: Sequence[int], say_durations: Sequence[int]
) -> list[tuple[bool, int]]:
    """Viterbi: (is it a token, place of its duration) from the first frame to the end behind the last."""
    frames, ends = stay.shape[:2]
    best, came = np.full((frames + 1, ends), -np.inf), {}
    best[0, 0] = 0.0
    for frame, said in np.ndindex(frames, ends):
        moves = [(frame + d, said, stay[frame, said, i], i) for i, d in enumerate(stay_durations) if d]
        if said < ends - 1:
            moves += [
                (frame + d, said + 1, say[frame, said, i], i) for i, d in enumerate(say_durations) if frame + d < frames
            ]
        for to, said_then, score, place in moves:
            if to <= frames and best[frame, said] + score > best[to, said_then]:
                best[to, said_then] = best[frame, said] + score
                came[to, said_then] = frame, said, place
    path, at = [], (frames, ends - 1)
    while at != (0, 0):
        frame, said, place = came[at]
        path.append((said < at[1], place))
        at = frame, said
    return path[::-1]


@dataclass
class TransducerView(TransformersView):
    """Parakeet RNN-T and TDT: the probability of the transcript, summed over all its alignments."""

    def losses(self, waves: Tensor, batch: AttackBatch) -> Tensor:
        logits, frames, tokens = self.logits(waves, batch)
        if not self.durations:
            return base.transducer(logits, frames, tokens, self.blank)
        return self._with_durations(logits, frames, tokens)

    @property
    def blank(self) -> int:
        return self.model.config.blank_token_id

    @property
    def durations(self) -> list[int]:
        """How many frames a token may take; none in RNN-T."""
        return list(getattr(self.model.config, "durations", ()))

    def logits(self, waves: Tensor, batch: AttackBatch) -> tuple[Tensor, Tensor, list[Tensor]]:
        """(clip, frame, tokens said so far, token), how many frames each clip has, and its tokens."""
        inputs = self.inputs(waves, batch.lengths)
        tokens = [torch.tensor(self.tokens(text), device=waves.device) for text in batch.texts]
        labels = pad_sequence(tokens, batch_first=True, padding_value=self.blank)
        told = torch.cat([torch.full_like(labels[:, :1], self.blank), labels], 1)
        encoded = self.model.get_audio_features(**inputs).pooler_output
        said = self.model.decoder(told)
        logits = self.model.joint(encoder_hidden_states=encoded[:, :, None], decoder_hidden_states=said[:, None])
        frames = encoder_frames(self.model, inputs["attention_mask"], logits.shape[1])
        return logits.to(torch.promote_types(logits.dtype, torch.float32)), frames, tokens

    def _with_durations(self, logits: Tensor, frames: Tensor, tokens: list[Tensor]) -> Tensor:
        """The token-and-duration transducer's loss (Xu et al. 2023), as transformers has it."""
        from transformers.loss.loss_tdt import tdt_loss

        counts = torch.tensor([len(row) for row in tokens], device=logits.device)
        labels = pad_sequence(tokens, batch_first=True, padding_value=self.blank)
        scores, steps = logits.split([self.model.config.vocab_size, len(self.durations)], -1)
        summed = tdt_loss(scores, steps, labels, frames, counts, self.blank, self.durations, reduction="none")
        return summed / counts

    @property
    def has_margins(self) -> bool:
        return True

    def right_tokens(self, waves: Tensor, batch: AttackBatch) -> list[Tensor]:
        """The decisions of the best path, blanks too: a blank that loses is an insertion."""
        return [
            best_path(row[:count, : len(tokens) + 1], tokens, self.blank, self.durations)
            for row, count, tokens in zip(*self.logits(waves, batch), strict=True)
        ]

    def token_scores(self, waves: Tensor, batch: AttackBatch, right: list[Tensor]) -> Tensor:
        rows = zip(self.logits(waves, batch)[0], right, strict=True)
        return pad_sequence([path_scores(row, path, self.blank, self.durations) for row, path in rows], True)
