"""Clips under attack: what is known of one, several of them as one padded batch, and how far a perturbation may go.

A clip's random stream is its own (`core.seeding`), so what an attack makes of it does not depend on its batch.
"""

from __future__ import annotations

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
