"""The trained part: a mix of an encoder's layers, three BLSTM layers, and a mask for each signal that is looked for.

Settings of s3prl's `enhancement_stft` and `separation_stft` (SUPERB-SG, Sections 3.1.4 and 3.1.5): 896 units a
direction, dropout 0.5, ReLU, STFT of 512 points with a hop of the encoder's stride. The target is the non-negative
phase-sensitive mask (Kolbæk et al., 2017): the squared error between the masked magnitude and the signal's magnitude
times the positive part of the cosine of the phase difference, in the order of the signals that fits best.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

from speech_robust_bench.extensions.probe.upstream import Upstream
from speech_robust_bench.extensions.superb_sg.head_training import Mix

FFT = 512
LAYERS, UNITS, DROPOUT = 3, 896, 0.5


class MaskHead(nn.Module):
    """Hidden states of a mixture to one mask per signal."""

    def __init__(self, layers: int, width: int, signals: int, units: int = UNITS, dropout: float = DROPOUT) -> None:
        super().__init__()
        self.mix = Mix(layers)
        self.rnn = nn.LSTM(width, units, LAYERS, batch_first=True, dropout=dropout, bidirectional=True)
        self.dropout = nn.Dropout(dropout)
        self.out = nn.ModuleList(nn.Linear(2 * units, FFT // 2 + 1) for _ in range(signals))

    def forward(self, states: Sequence[Tensor], frames: Sequence[int]) -> list[Tensor]:
        """Per clip the masks (signal, frame, bin); states are stretched or cut to the frames of the STFT."""
        mixed = [fitted(self.mix(each), n) for each, n in zip(states, frames, strict=True)]
        packed = pack_padded_sequence(
            pad_sequence(mixed, batch_first=True), torch.tensor(list(frames)), batch_first=True, enforce_sorted=False
        )
        hidden, _ = pad_packed_sequence(self.rnn(packed)[0], batch_first=True)
        masks = torch.stack([functional.relu(linear(self.dropout(hidden))) for linear in self.out], 1)
        return [mask[:, :n] for mask, n in zip(masks, frames, strict=True)]


def fitted(frames: Tensor, count: int) -> Tensor:
    """Exactly `count` frames: the rest cut off, or zeros added."""
    return functional.pad(frames[:count], (0, 0, 0, max(0, count - len(frames))))


def spectrum(signal: Tensor, hop: int) -> Tensor:
    """The STFT (frame, bin) of a signal, or (signal, frame, bin) of several."""
    window = torch.hann_window(FFT, device=signal.device)
    return torch.stft(signal, FFT, hop, window=window, center=True, return_complex=True).transpose(-1, -2)


def mask_loss(masks: Sequence[Tensor], mixed: Sequence[Tensor], signals: Sequence[Tensor]) -> Tensor:
    """The squared error of the masked magnitudes per frame and signal, each clip in the order that fits best."""
    losses = []
    for mask, mixture, targets in zip(masks, mixed, signals, strict=True):
        phase = (targets.angle() - mixture.angle()).cos().clamp_min(0)
        wanted, estimate = targets.abs() * phase, mask * mixture.abs()
        orders = [(estimate - wanted[list(order)]).square().sum() for order in permutations(range(len(targets)))]
        losses.append(torch.stack(orders).min() / (len(targets) * len(mixture)))
    return torch.stack(losses).mean()


def separate(head: MaskHead, upstream: Upstream, clip: np.ndarray) -> np.ndarray:
    """The signals that the head finds in a clip: (signal, sample)."""
    wave = torch.from_numpy(np.ascontiguousarray(clip, np.float32)).to(head.mix.logits.device)
    with torch.no_grad():
        mixed = spectrum(wave, upstream.stride)
        (masks,) = head(upstream.states([clip]), [len(mixed)])
        window = torch.hann_window(FFT, device=wave.device)
        masked = (masks * mixed).transpose(-1, -2)
        signals = torch.istft(masked, FFT, upstream.stride, window=window, center=True, length=len(wave))
    return signals.cpu().numpy()
