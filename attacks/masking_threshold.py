"""What one hears of a perturbation: the masking threshold of a clip, and the share of a perturbation above it.

The psychoacoustic model 1 of MPEG-1 (ISO 11172-3, Annex D) in the form of Lin and Abdulla (2015) that Qin et al. (2019,
Appendix) use: per frame, the tones of the clip that stand out mask what lies near them in frequency; what is below the
threshold in quiet is not heard either. Levels are relative: the loudest bin of the clip counts as 96 dB.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from speech_robust_bench.core.audio import RATE, Samples

WINDOW, HOP = 2048, 512  # samples at 16 kHz, as in Qin et al.
FULL_DB = 96.0
NEAR_BARK = 0.5  # of two tones that are nearer than this, the louder masks


def bark(hz: np.ndarray) -> np.ndarray:
    """The critical-band rate (Zwicker)."""
    return 13 * np.arctan(0.00076 * hz) + 3.5 * np.arctan((hz / 7500.0) ** 2)


def in_quiet_db(hz: np.ndarray) -> np.ndarray:
    """The threshold in quiet (Terhardt), with the 12 dB of ISO 11172-3 less.

    Below 100 Hz Qin et al. have none, so that nothing may be added there; it is only the ear that counts here.
    """
    khz = np.maximum(hz, 20.0) * 0.001
    return 3.64 * khz**-0.8 - 6.5 * np.exp(-0.6 * (khz - 3.3) ** 2) + 0.001 * khz**4 - 12


HZ = np.fft.rfftfreq(WINDOW, 1 / RATE)
BARK, QUIET_DB = bark(HZ), in_quiet_db(HZ)


def spectra(waves: Tensor) -> Tensor:
    """(clip, frame, bin): the power of a windowed frame; a sine of amplitude 1 has 1/4 x 8/3 x its window's gain."""
    padded = torch.nn.functional.pad(waves, (0, max(0, WINDOW - waves.shape[1]) + HOP))
    window = torch.hann_window(WINDOW, device=waves.device, dtype=waves.dtype)
    frames = torch.fft.rfft(padded.unfold(1, WINDOW, HOP) * window) / WINDOW
    return (frames.real.square() + frames.imag.square()) * (8 / 3)


@dataclass(frozen=True)
class Threshold:
    """Of one clip: how much power is masked in each frame and bin, on the scale that its loudest bin sets."""

    power: np.ndarray  # (frame, bin)
    loudest: float  # power of the loudest bin, which counts as 96 dB

    def relative(self, power: Tensor) -> Tensor:
        """Power of a perturbation on the threshold's scale."""
        return power * (10 ** (FULL_DB / 10) / self.loudest)


def threshold(samples: Samples) -> Threshold:
    """What each frame of a clip masks."""
    power = spectra(torch.from_numpy(np.asarray(samples, np.float64))[None])[0].numpy()
    loudest = max(float(power.max(initial=0.0)), 1e-20)
    levels = FULL_DB + 10 * np.log10(power / loudest + 1e-20)
    return Threshold(np.stack([_of_frame(level) for level in levels]), loudest)


def _of_frame(level_db: np.ndarray) -> np.ndarray:
    quiet = 10 ** (QUIET_DB / 10)
    tones, tone_db = _tones(level_db)
    if not len(tones):
        return quiet
    distance = BARK[None] - BARK[tones, None]
    rise, fall = 27.0, -27.0 + 0.37 * np.maximum(tone_db - 40, 0)[:, None]
    spread = np.where(distance > 0, fall * distance, rise * distance)
    masked_db = tone_db[:, None] + (-6.025 - 0.275 * BARK[tones, None]) + spread
    return quiet + (10 ** (masked_db / 10)).sum(0)


def _tones(level_db: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The bins of the tones that mask, and their levels: peaks above the threshold in quiet, one per half a Bark."""
    inner = level_db[1:-1]
    peaks = 1 + np.flatnonzero((inner > level_db[:-2]) & (inner > level_db[2:]))
    power = 10 ** (level_db / 10)
    level = 10 * np.log10(power[peaks - 1] + power[peaks] + power[peaks + 1])
    audible = level > QUIET_DB[peaks]
    kept: list[tuple[int, float]] = []
    for peak, value in zip(peaks[audible], level[audible], strict=True):
        if kept and BARK[peak] - BARK[kept[-1][0]] < NEAR_BARK:
            if value > kept[-1][1]:
                kept[-1] = (peak, value)
        else:
            kept.append((peak, value))
    return np.array([peak for peak, _ in kept], int), np.array([value for _, value in kept])


def above_threshold(samples: Samples, perturbed: Samples) -> float:
    """The share of the frames and bins of a perturbation that are above the clip's masking threshold, 0 to 1."""
    limit = threshold(samples)
    change = torch.from_numpy(np.asarray(perturbed, np.float64) - samples)[None]
    audible = limit.relative(spectra(change)[0]).numpy() > limit.power
    return float(audible.mean())


def excess(change: Tensor, limits: Tensor, scales: Tensor) -> Tensor:
    """Qin et al.'s second loss, per clip: the mean power of a perturbation above the threshold.

    `limits` (clip, frame, bin) and `scales` (clip) are those of the clips; frames of padding have infinite limits.
    """
    over = (spectra(change) * scales[:, None, None] - limits).clamp_min(0)
    real = torch.isfinite(limits)
    return torch.where(real, over, 0.0).sum((1, 2)) / real.sum((1, 2))


def batch_of(thresholds: list[Threshold], like: Tensor) -> tuple[Tensor, Tensor]:
    """Thresholds as one tensor, and each clip's factor from power to the thresholds' scale."""
    frames = spectra(like[:1]).shape[1]
    limits = torch.full((len(thresholds), frames, len(HZ)), math.inf, dtype=like.dtype, device=like.device)
    for row, limit in zip(limits, thresholds, strict=True):
        row[: len(limit.power)] = torch.from_numpy(limit.power).to(row)
    scales = torch.tensor([10 ** (FULL_DB / 10) / limit.loudest for limit in thresholds])
    return limits, scales.to(like)
