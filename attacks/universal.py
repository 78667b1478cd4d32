"""One perturbation for every clip (Neekhara et al. 2019; the paper's Algorithm 1), fitted on clips that are not tested.

For each dev clip in turn: while its transcript is still too near to the clean one, add a signed step that raises the
loss, to a correction inside its own small ball; then take the correction over. (The paper prints the condition of that
inner loop the other way round.) The best epoch is kept, and test clips get the perturbation at the SNR.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from srb.attacks.clips import Batch, Bound, Clip, character_errors, norm2
from srb.attacks.loop import Attacked, concluded, own_words, report
from srb.attacks.views import View
from srb.builders.audio import RATE, Samples, replacing
from srb.builders.errors import UserError
from srb.builders.perturb.noise import fit as tiled
from srb.builders.seeding import content_id


@dataclass(frozen=True)
class Perturbation:
    """A fitted perturbation and how it was fitted."""

    samples: Samples
    about: dict[str, Any] = field(default_factory=dict)

    def save(self, path: Path) -> None:
        """To an .npz file."""
        import json

        with replacing(path) as part, part.open("wb") as file:
            np.savez(file, samples=self.samples, about=np.array(json.dumps(self.about)))

    @classmethod
    def load(cls, path: Path) -> Perturbation:
        import json

        try:
            with np.load(path) as found:
                return cls(found["samples"], json.loads(str(found["about"])))
        except (OSError, ValueError, KeyError):
            raise UserError(f"{path}: no perturbation that srb attack universal saved") from None

    @property
    def digest(self) -> str:
        return hashlib.sha256(np.ascontiguousarray(self.samples, "<f4").data).hexdigest()[:16]


def refuse_overlap(dev: Iterable[Clip], test: Iterable[Clip]) -> None:
    """A perturbation that has seen a clip says nothing about clips it has not seen."""
    ids: dict[str, str] = {}
    sounds: dict[str, str] = {}
    for clip in dev:
        ids[clip.id] = sounds[content_id(clip.samples)] = clip.id
    for clip in test:
        twin = ids.get(clip.id) or sounds.get(content_id(clip.samples))
        if twin:
            raise UserError(f"the dev clip '{twin}' is in the test config too ('{clip.id}'); fit on other clips")


@dataclass(frozen=True)
class Fit:
    """How a perturbation is fitted; the defaults are those of the authors' runs."""

    snr_db: float
    epochs: int = 10
    steps: int = 20  # at most, per clip and epoch
    learning_rate: float = 0.001
    seconds: float = 18.0
    clip_radius: float = 0.003
    cer: float = 0.7  # a clip counts as fooled at this CER to its clean transcript
    enough: float = 1.0  # share of fooled clips at which fitting ends
    hear_every: int = 1

    def __call__(
        self, view: View, dev: Sequence[Clip], tick: Callable[[float], None] = lambda success: None
    ) -> Perturbation:
        """Fit on the dev clips; `tick` hears the success on them after every epoch."""
        clean = [view.transcribe([clip.samples], clip.language)[0] for clip in dev]
        usable = [index for index, text in enumerate(clean) if text]  # no transcript, nothing to get away from
        texts = {index: own_words(view, [dev[index]], [clean[index]])[0] for index in usable}
        radius = float(np.mean([Bound("linf", self.snr_db).radius(clip.samples) for clip in dev]))
        found = torch.zeros(int(self.seconds * RATE), device=view.device)
        best, best_success = found, -1.0
        for _ in range(self.epochs):
            for index in usable:
                self._learn(view, dev[index], texts[index], clean[index], found, radius)
            success = self._success(view, dev, clean, usable, found)
            tick(success)
            if success > best_success:
                best, best_success = found.clone(), success
            if success >= self.enough:
                break
        about = {**asdict(self), "radius": radius, "dev_clips": len(dev), "dev_success": round(best_success, 4)}
        return Perturbation(best.cpu().numpy(), about | {"model": view.recogniser.name})

    def _learn(self, view: View, clip: Clip, text: str, clean: str, found: Tensor, radius: float) -> None:
        """Let one clip change the perturbation, in place."""
        wave = torch.from_numpy(clip.samples).to(found)[None]
        size = wave.shape[1]
        batch = Batch(torch.tensor([size], device=found.device), [text], clip.language, [clip.rng("universal", 0)])
        own = torch.zeros_like(found)
        for step in range(self.steps):
            noisy = (wave + _tile(found + own, size)).clamp(-1, 1)
            if step % self.hear_every == 0 and self._cer(view, noisy[0], clip, clean) >= self.cer:
                break
            _, slope = view.gradient(noisy, batch)
            # descend 0.5 |own| - loss: the gradient of a norm is the direction, and nothing at zero
            slope = 0.5 * own / own.norm().clamp_min(1e-30) - _fold(slope[0], len(found))
            moved = (own - self.learning_rate * slope.sign()).clamp(-self.clip_radius, self.clip_radius)
            own = (found + moved).clamp(-radius, radius) - found
        found += own
        found.clamp_(-radius, radius)

    def _cer(self, view: View, noisy: Tensor, clip: Clip, clean: str) -> float:
        heard = view.transcribe([noisy.cpu().numpy()], clip.language)
        return float(character_errors([clean], heard)[0])

    def _success(self, view: View, dev: Sequence[Clip], clean: list[str], usable: list[int], found: Tensor) -> float:
        fooled = 0
        for index in usable:
            wave = torch.from_numpy(dev[index].samples).to(found)
            noisy = (wave + _tile(found, len(wave))).clamp(-1, 1)
            fooled += self._cer(view, noisy, dev[index], clean[index]) >= self.cer
        return fooled / max(1, len(usable))


def _tile(signal: Tensor, size: int) -> Tensor:
    return signal.repeat(-(-size // len(signal)))[:size]


def _fold(slope: Tensor, period: int) -> Tensor:
    """The gradient of a tiled signal: the sum over its repetitions."""
    padded = torch.nn.functional.pad(slope, (0, -len(slope) % period))
    return padded.view(-1, period).sum(0)


@dataclass(frozen=True)
class Universal:
    """Add a fitted perturbation to clips, at an SNR."""

    bound: Bound
    perturbation: Perturbation
    severity: int = 0
    name: str = "universal"

    def describe(self) -> dict[str, Any]:
        about = {key: value for key, value in self.perturbation.about.items() if key not in ("snr_db", "steps")}
        return {"perturbation": self.perturbation.digest, "bound": asdict(self.bound), **about}

    def run(self, view: View, clips: list[Clip]) -> list[Attacked]:
        before = view.transcribe([clip.samples for clip in clips], clips[0].language)
        pcms = [self.bound.store(clip.samples, self._at_snr(clip)) for clip in clips]
        after = view.transcribe([pcm.astype(np.float32) / 32768 for pcm in pcms], clips[0].language)
        facts = report(clips, before, after)
        return concluded(self, view, clips, pcms, own_words(view, clips, before), facts, [0] * len(clips))

    def _at_snr(self, clip: Clip) -> Samples:
        noise = tiled(self.perturbation.samples, len(clip.samples))
        return noise * (self.bound.radius(clip.samples) / max(norm2(noise), 1e-30))
