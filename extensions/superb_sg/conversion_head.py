"""The trained part for voice conversion: s3prl's Taco2-AR (SUPERB-SG, Section 3.1.3; Huang et al., "S3PRL-VC", 2022).

The mixed hidden states, brought to the 93.75 frames a second of the target's log mel spectrogram, pass three
convolutions and a BLSTM; two LSTM cells then write the spectrogram frame by frame, each from the frame before, of which
a network with dropout lets half through, in use too. The loss is the mean absolute error of the normalised frames.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

from speech_robust_bench.core.audio import RATE
from speech_robust_bench.extensions.superb_sg.head_training import Mix
from speech_robust_bench.extensions.superb_sg.mel import MEL_RATE, MELS, SHIFT

CHANNELS, KERNEL, CONVOLUTIONS, CELLS = 512, 5, 3, 2
PRENET, PRENET_DROPOUT = 256, 0.5


class ConversionHead(nn.Module):
    """Hidden states of anybody's clip to the target speaker's log mel spectrogram."""

    def __init__(self, layers: int, width: int, stride: int, units: int = 1024, dropout: float = 0.5) -> None:
        super().__init__()
        self.mix, self.units = Mix(layers), units
        self.stretch = MEL_RATE / SHIFT * stride / RATE  # spectrogram frames for each of the encoder's
        self.register_buffer("mean", torch.zeros(MELS))
        self.register_buffer("scale", torch.ones(MELS))
        self.inner = nn.Linear(width, CHANNELS)
        self.convolutions = nn.ModuleList(_convolution(dropout) for _ in range(CONVOLUTIONS))
        self.blstm = nn.LSTM(CHANNELS, units // 2, batch_first=True, bidirectional=True)
        self.prenet = nn.ModuleList(nn.Linear(each, PRENET) for each in (MELS, PRENET))
        self.cells = nn.ModuleList(nn.LSTMCell(units + PRENET * (not place), units) for place in range(CELLS))
        self.after = nn.ModuleList(nn.Linear(units, units) for _ in range(CELLS))
        self.out = nn.Linear(units, MELS)

    def encode(self, states: Sequence[Tensor]) -> tuple[Tensor, list[int]]:
        """(clip, frame, units), and how many frames each clip has."""
        mixed = [self.mix(each) for each in states]
        frames = [max(1, int(len(each) * self.stretch)) for each in mixed]
        x = functional.interpolate(pad_sequence(mixed, batch_first=True).transpose(1, 2), scale_factor=self.stretch)
        x = self.inner(x.transpose(1, 2)).transpose(1, 2)
        for convolution in self.convolutions:
            x = convolution(x)
        packed = pack_padded_sequence(x.transpose(1, 2), torch.tensor(frames), batch_first=True, enforce_sorted=False)
        return pad_packed_sequence(self.blstm(packed)[0], batch_first=True)[0], frames

    def forward(self, states: Sequence[Tensor], mels: Sequence[Tensor] | None = None) -> tuple[Tensor, list[int]]:
        """Log mel spectrograms (clip, frame, mel); with those of the target, each frame follows the true one."""
        encoded, frames = self.encode(states)
        batch, count = encoded.shape[:2]
        previous = encoded.new_zeros(batch, MELS)
        if mels is not None:
            padded = pad_sequence(list(mels), batch_first=True)[:, :count]
            padded = functional.pad(padded, (0, 0, 0, count - padded.shape[1]))
            shifted = torch.cat([previous[:, None], self.normalised(padded)[:, :-1]], 1)
            given = self.recalled(shifted).unbind(1)
        memory = [(encoded.new_zeros(batch, self.units),) * 2 for _ in range(CELLS)]
        written = []
        for place, now in enumerate(encoded.unbind(1)):
            x = torch.cat([now, given[place] if mels is not None else self.recalled(previous)], 1)
            for number, (cell, after) in enumerate(zip(self.cells, self.after, strict=True)):
                hidden, kept = cell(x, memory[number])
                x = torch.tanh(after(hidden))
                memory[number] = (x, kept)
            written.append(self.out(x))
            if mels is None:
                previous = self.normalised(written[-1])
        return torch.stack(written, 1), frames

    def normalised(self, mel: Tensor) -> Tensor:
        return (mel - self.mean) / self.scale

    def recalled(self, frames: Tensor) -> Tensor:
        """What is let through of the frame before; half of it at random, always."""
        for linear in self.prenet:
            frames = functional.dropout(functional.relu(linear(frames)), PRENET_DROPOUT)
        return frames

    def distance(self, predicted: Tensor, frames: Sequence[int], mels: Sequence[Tensor]) -> Tensor:
        """The mean absolute error of normalised frames, over those that both have."""
        sizes = [min(count, len(mel)) for count, mel in zip(frames, mels, strict=True)]
        found = torch.cat([row[:size] for row, size in zip(predicted, sizes, strict=True)])
        wanted = torch.cat([mel[:size] for mel, size in zip(mels, sizes, strict=True)])
        return (self.normalised(found) - self.normalised(wanted)).abs().mean()


def _convolution(dropout: float) -> nn.Sequential:
    convolution = nn.Conv1d(CHANNELS, CHANNELS, KERNEL, padding=KERNEL // 2, bias=False)
    nn.init.xavier_uniform_(convolution.weight, nn.init.calculate_gain("relu"))
    return nn.Sequential(convolution, nn.BatchNorm1d(CHANNELS), nn.ReLU(), nn.Dropout(dropout))


@torch.no_grad()
def spoken_by_target(head: ConversionHead, states: Tensor, seed: int = 0) -> Tensor:
    """The log mel spectrogram (frame, mel) of a clip in the target's voice; the same at each call."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        predicted, (frames,) = head([states])
    return predicted[0, :frames]
