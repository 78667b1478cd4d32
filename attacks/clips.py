"""Clips under attack: what is known of one, several as one padded batch, how far a perturbation may go, what one hears.

A clip's random stream is its own (`core.seeding`), so what an attack makes of it does not depend on its batch.

The masking threshold of a clip, and the share of a perturbation above it: the psychoacoustic model 1 of MPEG-1 (ISO
11172-3, Annex D) in the form of Lin and Abdulla (2015) that Qin et al. (2019, Appendix) use. Per frame, the tones of
the clip that stand out mask what lies near them in frequency; what is below the threshold in quiet is not heard either.
Levels are relative: the loudest bin of the clip counts as 96 dB.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from speech_robust_bench.builders.configs import Config, Window
from speech_robust_bench.core.audio import RATE, Samples, to_pcm16
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.seeding import clip_rng
from speech_robust_bench.scoring.scoring import align, default_unit

Norm = Literal["l2", "linf"]
LSB = 1 / 32768


@dataclass(frozen=True)
class AttackClip:
    """One recording and its transcript. `samples` lie on the 16-bit grid, so that storing them changes nothing."""

    id: str
    samples: Samples
    text: str
    language: str | None = None
    corpus: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "samples", to_float(to_pcm16(np.clip(self.samples, -1, 1))))

    @property
    def seconds(self) -> float:
        return len(self.samples) / RATE

    def rng(self, attack: str, severity: int, seed: str = "") -> np.random.Generator:
        """The clip's own stream in one attack."""
        return clip_rng(self.corpus, self.id, attack, severity, seed)


@dataclass(frozen=True)
class AttackBatch:
    """What stays the same while the waveforms of some clips change."""

    lengths: Tensor
    texts: list[str]
    language: str | None = None
    rngs: list[np.random.Generator] = field(default_factory=list)
    right_tokens: list[Tensor] = field(default_factory=list)  # what a margin loss makes lose, position by position
    ids: list[str] = field(default_factory=list)  # of the clips, for messages

    def select(self, which: Sequence[int]) -> AttackBatch:
        """Some of the clips. Their random streams go with them."""
        rngs = [self.rngs[index] for index in which] if self.rngs else []
        texts = [self.texts[index] for index in which]
        right = [self.right_tokens[index] for index in which] if self.right_tokens else []
        ids = [self.ids[index] for index in which] if self.ids else []
        return AttackBatch(self.lengths[list(which)], texts, self.language, rngs, right, ids)


def clips_of(config: Config, limit: int | None = None, positions: set[int] | None = None) -> Iterator[AttackClip]:
    """The clips of a config, decoded as they are asked for: the first `limit`, or those at some positions."""
    wanted = positions if positions is not None else {row.position for row in config.rows[:limit]}
    for window in config.windows(wanted):
        yield from window_clips(config, window)


def window_clips(config: Config, window: Window) -> Iterator[AttackClip]:
    """The clips of one stretch of a config."""
    for row in window.rows:
        if row.text is None:
            raise UserError(f"{config.name}/{row.id}: has no transcript, and an attack needs what was said")
        yield AttackClip(row.id, window.decode(row), row.text, row.language, config.about.corpus or "")


def padded(signals: Sequence[Samples], device: str = "cpu") -> tuple[Tensor, Tensor]:
    """Signals as one tensor (clip, sample), zero behind the end of each, and their lengths."""
    lengths = torch.tensor([len(signal) for signal in signals])
    waves = torch.zeros(len(signals), int(lengths.max()))
    for row, signal in zip(waves, signals, strict=True):
        row[: len(signal)] = torch.from_numpy(np.ascontiguousarray(signal, dtype=np.float32))
    return waves.to(device), lengths.to(device)


def mask_of(lengths: Tensor, longest: int) -> Tensor:
    """True on each clip's own samples."""
    return torch.arange(longest, device=lengths.device)[None] < lengths[:, None]


def batches(clips: Sequence[AttackClip], size: int, pads_safely: bool) -> Iterator[list[AttackClip]]:
    """Clips of like length and one language together; of exactly one length where padding would change the result."""
    group: list[AttackClip] = []
    for clip in sorted(clips, key=lambda clip: (clip.language or "", len(clip.samples), clip.id)):
        fits = group and group[0].language == clip.language
        if group and (
            len(group) == size or not fits or not (pads_safely or len(group[0].samples) == len(clip.samples))
        ):
            yield group
            group = []
        group.append(clip)
    if group:
        yield group


@dataclass(frozen=True)
class Bound:
    """How far a perturbation may go: an L2 ball at an SNR (Olivier, Eq. 5.1), or an L-inf ball.

    An L-inf ball is given by its radius, or by an SNR as in the paper's Algorithm 1: the clip's peak x 10^(-SNR/20).
    """

    norm: Norm = "l2"
    snr_db: float | None = None
    eps: float | None = None

    def __post_init__(self) -> None:
        if (self.snr_db is None) == (self.eps is None) or (self.norm == "l2" and self.eps is not None):
            raise UserError("a bound is an SNR in dB, or for the L-inf norm a radius (eps)")

    def radius(self, samples: Samples) -> float:
        """Of the ball around this clip."""
        if self.snr_db is None:
            return float(self.eps or 0.0)
        size = norm2(samples) if self.norm == "l2" else float(np.abs(samples).max(initial=0))
        return size * 10 ** (-self.snr_db / 20)

    def project(self, delta: Tensor, radii: Tensor) -> Tensor:
        """The nearest points of the balls."""
        if self.norm == "linf":
            return delta.clamp(-radii[:, None], radii[:, None])
        return delta * (radii / delta.norm(dim=1).clamp_min(1e-30)).clamp_max(1)[:, None]

    def step(self, gradient: Tensor, radii: Tensor) -> Tensor:
        """The steepest step of size one radius: the gradient scaled to unit L2, or its signs."""
        if self.norm == "linf":
            return gradient.sign() * radii[:, None]
        return gradient * (radii / gradient.norm(dim=1).clamp_min(1e-30))[:, None]

    def draw(self, samples: Samples, rng: np.random.Generator) -> Samples:
        """A random point of the ball."""
        radius = self.radius(samples)
        if self.norm == "linf":
            return rng.uniform(-radius, radius, len(samples)).astype(np.float32)
        direction = rng.standard_normal(len(samples))
        return (radius * rng.uniform() * direction / max(norm2(direction), 1e-30)).astype(np.float32)

    def holds(self, samples: Samples, pcm: np.ndarray) -> bool:
        """Whether stored samples keep to it."""
        change = to_float(pcm).astype(float) - samples
        size = norm2(change) if self.norm == "l2" else float(np.abs(change).max(initial=0))
        return size <= self.radius(samples)

    def store(self, samples: Samples, delta: Samples) -> np.ndarray:
        """The 16-bit samples of the perturbed clip, inside the bound *after* clamping and rounding.

        Rounding adds a little energy, so the perturbation shrinks until its rounded form fits; rounding towards the
        clip itself always does, because the clip is on the grid.
        """
        clean = to_pcm16(samples).astype(np.int64)
        steps = np.asarray(delta, dtype=float) / LSB
        if self.norm == "linf":
            most = np.floor(self.radius(samples) / LSB)
            return _clamped(clean + np.rint(steps).clip(-most, most))
        for _ in range(20):
            pcm = _clamped(clean + np.rint(steps))
            if self.holds(samples, pcm):
                return pcm
            steps *= min(0.999, self.radius(samples) / max(norm2(to_float(pcm).astype(float) - samples), 1e-30))
        return _clamped(clean + np.trunc(steps * min(1.0, self.radius(samples) / LSB / max(norm2(steps), 1e-30))))


def _clamped(pcm: np.ndarray) -> np.ndarray:
    return pcm.clip(-32768, 32767).astype(np.int16)


def to_float(pcm: np.ndarray) -> Samples:
    """16-bit samples as a reader of the FLAC gets them."""
    return pcm.astype(np.float32) * np.float32(LSB)


def norm2(signal: np.ndarray) -> float:
    return float(np.sqrt(np.sum(np.square(signal, dtype=float))))


def snr_db(samples: Samples, pcm: np.ndarray) -> float | None:
    """The SNR that stored samples reached; None where nothing was changed."""
    noise = norm2(to_float(pcm).astype(float) - samples)
    return 20 * float(np.log10(norm2(samples) / noise)) if noise > 0 and norm2(samples) > 0 else None


def word_errors(references: Sequence[str], hypotheses: Sequence[str], language: str | None = None) -> np.ndarray:
    """The WER of each clip alone, 1 for 100 %; of characters where the language does not separate words."""
    return align(references, hypotheses, unit=default_unit(language)).rates / 100


def character_errors(references: Sequence[str], hypotheses: Sequence[str]) -> np.ndarray:
    """The CER of each clip alone."""
    return align(references, hypotheses, unit="char").rates / 100


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
