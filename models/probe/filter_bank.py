"""Log mel filter banks with their first and second differences, the baseline of SUPERB and SUPERB-SG (FBANK, 10 ms).

80 filters, windows of 25 ms every 10 ms, differences over two frames to each side, and every dimension brought to mean
0 and variance 1 within the clip, as s3prl's `fbank` has it; in torch, so that it can be attacked.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from speech_robust_bench.core.audio import RATE

FILTERS, WINDOW, HOP, FFT = 80, 400, 160, 512
DELTA_FRAMES = 2
LEAST_POWER = 1e-8


class Waveform:
    """A feature extractor that leaves the waveform as it is; clips that share a batch have one length."""

    sampling_rate = RATE
    return_attention_mask = False

    def __call__(self, clips: Sequence[np.ndarray], **how: Any) -> dict[str, Tensor]:
        longest = max(len(clip) for clip in clips)
        rows = [torch.from_numpy(np.pad(clip, (0, longest - len(clip))).astype(np.float32)) for clip in clips]
        return {"input_values": torch.stack(rows)}


class FilterBank(nn.Module):
    """Waveforms (clip, sample) to one hidden state (clip, frame, 240)."""

    main_input_name = "input_values"

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("filters", torch.from_numpy(mel_filters()), persistent=False)
        self.register_buffer("window", torch.hamming_window(WINDOW, periodic=False), persistent=False)

    def forward(self, input_values: Tensor, **_: Any) -> SimpleNamespace:
        frames = input_values.unfold(1, WINDOW, HOP)
        spectrum = torch.fft.rfft((frames - frames.mean(-1, keepdim=True)) * self.window, FFT)
        power = spectrum.real.square() + spectrum.imag.square()
        logs = (power @ self.filters.to(power.dtype)).clamp_min(LEAST_POWER).log()
        features = torch.cat([logs, (first := deltas(logs)), deltas(first)], -1)
        centred = features - features.mean(1, keepdim=True)
        return SimpleNamespace(hidden_states=(centred / (centred.square().mean(1, keepdim=True).sqrt() + 1e-10),))


def deltas(features: Tensor) -> Tensor:
    """The slope of each dimension over time, by regression over `DELTA_FRAMES` frames to each side."""
    steps = range(1, DELTA_FRAMES + 1)
    padded = functional.pad(features.transpose(1, 2), (DELTA_FRAMES, DELTA_FRAMES), mode="replicate").transpose(1, 2)
    count, middle = features.shape[1], DELTA_FRAMES
    slopes = sum(n * (padded[:, middle + n :][:, :count] - padded[:, middle - n :][:, :count]) for n in steps)
    return slopes / (2 * sum(n * n for n in steps))


def mel_filters() -> np.ndarray:
    """Triangles (frequency bin, filter) that are equally wide in mel, from 20 Hz to half the rate, as Kaldi's."""

    def mel(hertz: np.ndarray | float) -> np.ndarray:
        return 1127.0 * np.log1p(np.asarray(hertz) / 700.0)

    corners = np.linspace(mel(20.0), mel(RATE / 2), FILTERS + 2)
    bins = mel(np.fft.rfftfreq(FFT, 1 / RATE))[:, None]
    rising = (bins - corners[:-2]) / (corners[1:-1] - corners[:-2])
    falling = (corners[2:] - bins) / (corners[2:] - corners[1:-1])
    return np.maximum(0, np.minimum(rising, falling)).astype(np.float32)
