"""The feature extractors of transformers in torch, differentiable: waveforms in, what the model is given out.

One function per extractor, in one table. Each repeats its extractor's arithmetic; before an attack begins, `check` of
the view compares the two on the clips at hand. Where an extractor takes the root of a power and squares it again, the
root is left out: its gradient does not exist where there is silence.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from speech_robust_bench.attacks.clips import mask_of
from speech_robust_bench.core.audio import RATE

# (extractor, waveforms that are zero behind their ends, their lengths) -> the model's input and its mask
FrontEnd = Callable[[Any, Tensor, Tensor], dict[str, Tensor]]

LOG_GUARD = 2**-24  # both as in ParakeetFeatureExtractor
SPREAD_GUARD = 1e-5
RANGE = 8.0  # log10: what is more than 80 dB below the loudest is raised to it (Radford et al. 2023)


def waveform(extractor: Any, waves: Tensor, lengths: Tensor) -> dict[str, Tensor]:
    """The samples themselves (wav2vec 2.0, Moonshine, SpeechT5), with mean 0 and deviation 1 if so configured."""
    mask = mask_of(lengths, waves.shape[1])
    if getattr(extractor, "do_normalize", False):
        count = lengths[:, None].to(waves.dtype)
        centred = (waves - waves.sum(1, keepdim=True) / count) * mask
        waves = centred / (centred.square().sum(1, keepdim=True) / count + 1e-7).sqrt()
    return {"input_values": waves} | ({"attention_mask": mask.long()} if extractor.return_attention_mask else {})


def power_spectrum(waves: Tensor, n_fft: int, hop: int, window: Tensor, pad_mode: str = "reflect") -> Tensor:
    """The power of each frequency bin in each frame, as (clip, bin, frame)."""
    spectrum = torch.stft(waves, n_fft, hop, len(window), window, pad_mode=pad_mode, return_complex=True)
    return (spectrum.real.square() + spectrum.imag.square()).contiguous()


def log_mel_80_db(power: Tensor, filters: Tensor) -> Tensor:
    """(clip, band, frame): Whisper's log10 of mel energies, of which 80 dB below the clip's loudest are kept."""
    logs = (filters.T @ power).clamp_min(1e-10).log10()
    return logs.maximum(logs.amax((1, 2), keepdim=True) - RANGE)


def whisper(extractor: Any, waves: Tensor, lengths: Tensor) -> dict[str, Tensor]:
    """Always 30 s, whatever the clip's length (Whisper, Voxtral)."""
    waves = functional.pad(waves, (0, extractor.n_samples - waves.shape[1]))
    return {"input_features": _whisper_features(extractor, waves)}


def _whisper_features(extractor: Any, waves: Tensor) -> Tensor:
    window = torch.hann_window(extractor.n_fft, device=waves.device, dtype=waves.dtype)
    power = power_spectrum(waves, extractor.n_fft, extractor.hop_length, window)[..., :-1]
    return (log_mel_80_db(power, torch.from_numpy(extractor.mel_filters).to(waves)) + 4.0) / 4.0


def qwen3_asr(extractor: Any, waves: Tensor, lengths: Tensor) -> dict[str, Tensor]:
    """Whisper's spectrogram of half a second or more, with zeros up to a multiple of the encoder's window."""
    waves = functional.pad(waves, (0, max(0, extractor.min_length - waves.shape[1])))
    features = _whisper_features(extractor, waves)
    return {"input_features": functional.pad(features, (0, -features.shape[2] % (2 * extractor.n_window)))}


def granite_speech(extractor: Any, waves: Tensor, lengths: Tensor) -> dict[str, Tensor]:
    """torchaudio's mel spectrogram on Whisper's scale, two frames side by side."""
    settings = extractor.melspec_kwargs
    window = torch.hann_window(settings["win_length"], device=waves.device, dtype=waves.dtype)
    power = power_spectrum(waves, settings["n_fft"], settings["hop_length"], window)
    filters = _htk_filters(settings["n_fft"], settings["n_mels"], settings["sample_rate"]).to(waves)
    frames = log_mel_80_db(power, filters).transpose(1, 2) / 4 + 1
    frames = frames[:, : frames.shape[1] // 2 * 2]
    return {"input_features": frames.reshape(len(frames), -1, 2 * frames.shape[2])}


@cache
def _htk_filters(n_fft: int, bands: int, rate: int) -> Tensor:
    """(bin, band): triangles on the HTK mel scale, as torchaudio's `melscale_fbanks` has them by default."""
    top = 2595 * math.log10(1 + rate / 2 / 700)
    corners = 700 * (10 ** (torch.linspace(0, top, bands + 2, dtype=torch.float64) / 2595) - 1)
    slopes = corners[None] - torch.linspace(0, rate // 2, n_fft // 2 + 1, dtype=torch.float64)[:, None]
    steps = corners.diff()
    return torch.minimum(-slopes[:, :-2] / steps[:-1], slopes[:, 2:] / steps[1:]).clamp_min(0)


def parakeet(extractor: Any, waves: Tensor, lengths: Tensor) -> dict[str, Tensor]:
    """Log mel energies, every band with mean 0 and deviation 1 over the clip's own frames (Parakeet, Canary)."""
    if (share := extractor.preemphasis) is not None:
        waves = torch.cat([waves[:, :1], waves[:, 1:] - share * waves[:, :-1]], 1)
        waves = waves * mask_of(lengths, waves.shape[1])
    window = torch.hann_window(extractor.win_length, periodic=False, device=waves.device, dtype=waves.dtype)
    power = power_spectrum(waves, extractor.n_fft, extractor.hop_length, window, "constant")
    logs = (extractor.mel_filters.to(power) @ power + LOG_GUARD).log().transpose(1, 2)
    real = mask_of(lengths // extractor.hop_length, logs.shape[1])
    weights = real[..., None].to(logs.dtype)
    count = weights.sum(1, keepdim=True)
    mean = (logs * weights).sum(1, keepdim=True) / count
    variance = ((logs - mean).square() * weights).sum(1, keepdim=True) / (count - 1)
    return {
        "input_features": (logs - mean) / (variance.sqrt() + SPREAD_GUARD) * weights,
        "attention_mask": real,
    }


FRONT_ENDS: dict[str, FrontEnd] = {
    "Wav2Vec2FeatureExtractor": waveform,
    "SpeechT5FeatureExtractor": waveform,
    "Waveform": waveform,  # filter banks, which are a part of the model
    "WhisperFeatureExtractor": whisper,
    "ParakeetFeatureExtractor": parakeet,
    "Qwen3ASRFeatureExtractor": qwen3_asr,
    "GraniteSpeechFeatureExtractor": granite_speech,
}


def front_end(extractor: Any) -> FrontEnd | None:
    """The differentiable form of an extractor, if there is one."""
    return FRONT_ENDS.get(type(extractor).__name__) if extractor.sampling_rate == RATE else None
