"""Log mel spectrograms at 24 kHz as s3prl's voice conversion predicts them, and Griffin and Lim's way back to sound."""

from __future__ import annotations

from functools import cache

import numpy as np
import torch
from torch import Tensor

from speech_robust_bench.core.audio import Samples

MEL_RATE, MELS, FFT, SHIFT, LOWEST_HZ, HIGHEST_HZ = 24_000, 80, 1024, 256, 80, 7600
LEAST = 1e-10
ROUNDS, MOMENTUM = 64, 0.99  # of Griffin and Lim (Perraudin et al., 2013), as in librosa


@cache
def filters() -> Tensor:
    """Slaney's triangles (frequency bin, mel), each of area 1, as librosa's."""
    from transformers.audio_utils import mel_filter_bank

    bank = mel_filter_bank(FFT // 2 + 1, MELS, LOWEST_HZ, HIGHEST_HZ, MEL_RATE, norm="slaney", mel_scale="slaney")
    return torch.from_numpy(bank).float()


def log_mel(samples: Samples) -> Tensor:
    """Decimal logarithms of the mel magnitudes (frame, mel) of a signal at 24 kHz."""
    wave = torch.from_numpy(np.pad(samples, (0, max(0, FFT - len(samples)))))
    return (_spectrum(wave).abs().T @ filters()).clamp_min(LEAST).log10()


def griffin_lim(mel: Tensor, seed: int = 0) -> Samples:
    """A signal at 24 kHz with such a spectrogram; its phases are guessed."""
    magnitudes = (10**mel @ torch.linalg.pinv(filters())).clamp_min(LEAST).T
    generator = torch.Generator().manual_seed(seed)
    angles = torch.polar(torch.ones_like(magnitudes), 2 * torch.pi * torch.rand(magnitudes.shape, generator=generator))
    previous = torch.zeros_like(angles)
    for _ in range(ROUNDS):
        rebuilt = _spectrum(_signal(magnitudes * angles))[:, : angles.shape[1]]
        angles = rebuilt - MOMENTUM / (1 + MOMENTUM) * previous
        angles, previous = angles / (angles.abs() + 1e-16), rebuilt
    return _signal(magnitudes * angles).numpy()


def _spectrum(wave: Tensor) -> Tensor:
    return torch.stft(wave, FFT, SHIFT, window=torch.hann_window(FFT), center=True, return_complex=True)


def _signal(spectrum: Tensor) -> Tensor:
    return torch.istft(spectrum, FFT, SHIFT, window=torch.hann_window(FFT), center=True)
