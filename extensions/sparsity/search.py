"""The angle from a random direction to the nearest adversarial perturbation, by PGD inside a cap and binary search.

Olivier, Section 4.2 and 4.3, Algorithm 1. All perturbations lie on the sphere of the bound, an L2 norm. A cap holds
those within an angle alpha of a direction u. PGD inside the cap says whether one of them is adversarial, and the binary
search over alpha from 0 to pi finds the smallest such cap. The sparsity of a clip is the mean of that angle over
random directions: 0 where most directions are adversarial themselves, near pi / 2 where there is one in a small place,
because in many dimensions nearly all directions are at right angles to each other.

The projection on the cap is the exact one, cos(alpha) u + sin(alpha) p with p the unit part at right angles to u. The
thesis's Equations 4.14 to 4.16 multiply p by sin(alpha) without dividing the part along u by the cosine, so that their
result may lie outside the cap (at 90 degrees from u and alpha = 45 degrees it stays at 90).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from speech_robust_bench.attacks.clips import AttackBatch, AttackClip, Bound, norm2, word_errors
from speech_robust_bench.attacks.views.base import View


@dataclass(frozen=True)
class SearchSettings:
    """How angles are searched; the thesis's are 100 directions, 10 halvings and 20 steps."""

    directions: int = 100
    halvings: int = 10
    steps: int = 20
    step: float = 0.4  # of the radius
    wer: float = 0.0  # to the clean transcript: above it, a perturbation is adversarial
    batch_size: int = 8
    seed: str = ""


@dataclass(frozen=True)
class Angles:
    """What the search found around one clip: the angle of each direction, none where the clip is not vulnerable."""

    radians: tuple[float, ...]
    random: int  # directions that are adversarial themselves


def on_cap(delta: Tensor, centre: Tensor, angles: Tensor, radius: float) -> Tensor:
    """The nearest points of the sphere within an angle of the centres, which are unit vectors: (direction, sample)."""
    along = (delta * centre).sum(1, keepdim=True)
    across = delta - along * centre
    width = across.norm(dim=1, keepdim=True).clamp_min(1e-30)
    angle = torch.atan2(width, along)
    nearest = angles[:, None].cos() * centre + angles[:, None].sin() * across / width
    unit = delta / delta.norm(dim=1, keepdim=True).clamp_min(1e-30)
    return radius * torch.where(angle <= angles[:, None], unit, nearest)


@dataclass
class ConeSearch:
    """The search around one clip, whose own transcript is what a perturbation has to change."""

    view: View
    clip: AttackClip
    transcript: str
    snr_db: float
    settings: SearchSettings

    def __post_init__(self) -> None:
        self.radius = Bound("l2", self.snr_db).radius(self.clip.samples)
        self.text = self.view.spell(self.transcript)
        self.wave = torch.from_numpy(np.ascontiguousarray(self.clip.samples, np.float32)).to(self.view.device)

    def run(self) -> Angles:
        """The angles; the batches of directions are searched one after the other."""
        found: list[float] = []
        random = 0
        for centre in self.centres():
            start = torch.zeros(len(centre), device=centre.device)
            if not found and not self.succeed(centre, start + math.pi).any():
                return Angles((), 0)  # not vulnerable: there is no angle to speak of
            hit = self.adversarial(self.radius * centre)
            low, high = start, torch.where(hit, 0.0, math.pi)
            for _ in range(self.settings.halvings):
                middle = (low + high) / 2
                won = self.succeed(centre, middle) | hit
                low, high = torch.where(won, low, middle), torch.where(won, middle.minimum(high), high)
            found += ((low + high) / 2 * ~hit).tolist()
            random += int(hit.sum())
        return Angles(tuple(round(angle, 6) for angle in found), random)

    def succeed(self, centre: Tensor, angles: Tensor) -> Tensor:
        """Whether PGD finds an adversarial perturbation in each cap."""
        delta = self.radius * centre
        batch = self._batch(len(centre))
        for _ in range(self.settings.steps):
            _, slope = self.view.gradient(self._perturbed(delta), batch)
            slope = slope.to(delta.dtype)
            size = slope.norm(dim=1, keepdim=True).clamp_min(1e-30)
            delta = on_cap(delta + self.settings.step * self.radius * slope / size, centre, angles, self.radius)
        return self.adversarial(delta)

    def adversarial(self, delta: Tensor) -> Tensor:
        """Whether each perturbation changes the words of the transcript."""
        signals = list(self._perturbed(delta).cpu().numpy())
        texts = self.view.transcribe(signals, self.clip.language)
        errors = word_errors([self.transcript] * len(texts), texts, self.clip.language)
        return torch.from_numpy(errors > self.settings.wer).to(delta.device)

    def _perturbed(self, delta: Tensor) -> Tensor:
        return (self.wave + delta).clamp(-1, 1)

    def _batch(self, count: int) -> AttackBatch:
        rngs = [self.clip.rng("sparsity", 0, f"{self.settings.seed}view{n}") for n in range(count)]
        lengths = torch.full((count,), len(self.wave), device=self.wave.device)
        return AttackBatch(lengths, [self.text] * count, self.clip.language, rngs, ids=[self.clip.id] * count)

    def centres(self) -> Iterator[Tensor]:
        """Unit vectors, drawn for the clip: the same for every model."""
        rng = self.clip.rng("sparsity", 0, self.settings.seed)
        for start in range(0, self.settings.directions, self.settings.batch_size):
            count = min(self.settings.batch_size, self.settings.directions - start)
            drawn = rng.standard_normal((count, len(self.wave)))
            units = np.stack([direction / norm2(direction) for direction in drawn])
            yield torch.from_numpy(units.astype(np.float32)).to(self.wave.device)
