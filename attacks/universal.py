"""One perturbation for every clip (Neekhara et al. 2019; the paper's Algorithm 1), fitted on clips that are not tested.

For each dev clip in turn: while its transcript is still too near to the clean one, add a signed step that raises the
loss, to a correction inside its own small ball; then take the correction over. (The paper prints the condition of that
inner loop the other way round.) The best epoch is kept, and test clips get the perturbation at the SNR. A fit that was
interrupted goes on at the epoch it was in.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from itertools import groupby
from pathlib import Path
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from speech_robust_bench.attacks.clips import AttackBatch, AttackClip, Bound, character_errors, norm2
from speech_robust_bench.attacks.pgd import Attacked, attacked_clips, outcomes, own_transcripts
from speech_robust_bench.attacks.registry import UNIVERSAL, UNIVERSAL_STEPS, AttackPlan
from speech_robust_bench.attacks.views.base import View
from speech_robust_bench.builders.perturb.environment import to_length as tiled
from speech_robust_bench.core.audio import RATE, Samples
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.files import DAMAGED_ARRAYS, replacing
from speech_robust_bench.core.options import Settings
from speech_robust_bench.core.seeding import content_id
from speech_robust_bench.models.interface import PERFORMANCE_OPTIONS


@dataclass(frozen=True)
class Perturbation:
    """A fitted perturbation and how it was fitted."""

    samples: Samples
    about: Settings = field(default_factory=dict)

    def save(self, path: Path) -> None:
        """Write the perturbation to an .npz file."""
        with replacing(path) as part, part.open("wb") as file:
            np.savez(file, samples=self.samples, about=np.array(json.dumps(self.about)))

    @classmethod
    def load(cls, path: Path) -> Perturbation:
        try:
            with np.load(path, allow_pickle=False) as saved:
                perturbation = cls(saved["samples"].astype(np.float32), json.loads(str(saved["about"])))
            sound = perturbation.samples.ndim == 1 and np.isfinite(perturbation.samples).all()
        except DAMAGED_ARRAYS:
            sound = False
        if not sound:
            raise UserError(f"{path}: no perturbation that srb attack universal saved")
        return perturbation

    @property
    def digest(self) -> str:
        return hashlib.sha256(np.ascontiguousarray(self.samples, "<f4").data).hexdigest()[:16]


def refuse_overlap(dev: Iterable[AttackClip], test: Iterable[AttackClip]) -> None:
    """A perturbation that has seen a clip says nothing about clips it has not seen."""
    ids: dict[str, str] = {}
    sounds: dict[str, str] = {}
    for clip in dev:
        ids[clip.id] = sounds[content_id(clip.samples)] = clip.id
    for clip in test:
        twin = ids.get(clip.id) or sounds.get(content_id(clip.samples))
        if twin:
            raise UserError(f"the dev clip '{twin}' is in the test config too ('{clip.id}'); fit on other clips")


def fit_key(settings: Settings, view: View, dev: Iterable[AttackClip]) -> str:
    """All that a fitted perturbation depends on, as a digest."""
    clips = [(clip.id, clip.text, content_id(clip.samples)) for clip in dev]
    recogniser = view.recogniser
    options = {key: value for key, value in recogniser.options.items() if key not in PERFORMANCE_OPTIONS}
    gradients = [str(view.precision), getattr(view, "draws", None)]  # mixed precision, draws per gradient
    facts = [settings, recogniser.name, recogniser.revision, options, gradients, clips]
    return hashlib.sha256(json.dumps(facts, sort_keys=True, default=str).encode()).hexdigest()[:16]


@dataclass
class Fitting:
    """A perturbation in the making, kept on disk after every epoch."""

    current: Tensor
    best: Tensor
    success: float = -1.0  # of the best
    epoch: int = 0  # how many are done

    @classmethod
    def begin(cls, size: int, device: str, place: Path | None, key: str) -> Fitting:
        """From nothing, or from where a fit of the same key stopped."""
        if place is not None and place.is_file():
            with suppress(*DAMAGED_ARRAYS), np.load(place, allow_pickle=False) as kept:  # a damaged fit begins anew
                if str(kept["key"]) == key and kept["current"].shape == kept["best"].shape == (size,):
                    current, best = (torch.from_numpy(kept[name]).to(device) for name in ("current", "best"))
                    return cls(current, best, float(kept["success"]), int(kept["epoch"]))
        return cls(torch.zeros(size, device=device), torch.zeros(size, device=device))

    def end_epoch(self, success: float, place: Path | None, key: str) -> None:
        """Count an epoch, remember the best one so far, and keep both."""
        self.epoch += 1
        if success >= self.success:  # of two equal ones the later has learnt more
            self.best, self.success = self.current.clone(), success
        if place is not None:
            current, best = (tensor.cpu().numpy() for tensor in (self.current, self.best))
            with replacing(place) as part, part.open("wb") as file:
                np.savez(file, current=current, best=best, success=self.success, epoch=self.epoch, key=np.array(key))


@dataclass(frozen=True)
class UniversalFit:
    """How a perturbation is fitted; the defaults are those of the authors' runs."""

    reports: ClassVar[str] = "success"
    snr_db: float
    epochs: int = UNIVERSAL.epochs
    steps: int = UNIVERSAL_STEPS  # at most, per clip and epoch
    learning_rate: float = UNIVERSAL.learning_rate
    seconds: float = UNIVERSAL.seconds
    clip_radius: float = UNIVERSAL.clip_radius
    cer: float = UNIVERSAL.cer  # a clip counts as fooled at this CER to its clean transcript
    enough: float = UNIVERSAL.enough  # share of fooled clips at which fitting ends
    transcribe_every: int = UNIVERSAL.transcribe_every

    def __call__(
        self,
        view: View,
        dev: Sequence[AttackClip],
        tick: Callable[[float], None] = lambda success: None,
        place: Path | None = None,
    ) -> Perturbation:
        """Fit on the dev clips; after every epoch `tick` is given the success and the file `place` keeps the state."""
        clean = _transcripts(view, [clip.samples for clip in dev], dev)
        usable = [index for index, text in enumerate(clean) if text]  # no transcript, nothing to get away from
        texts = {index: own_transcripts(view, [dev[index]], [clean[index]])[0] for index in usable}
        radius = float(np.mean([Bound("linf", self.snr_db).radius(clip.samples) for clip in dev]))
        key = fit_key(asdict(self), view, dev)
        state = Fitting.begin(int(self.seconds * RATE), view.device, place, key)
        while state.epoch < self.epochs and state.success < self.enough:
            for index in usable:
                self._learn(view, dev[index], texts[index], clean[index], state.current, radius)
            success = self._success(view, [dev[i] for i in usable], [clean[i] for i in usable], state.current)
            state.end_epoch(success, place, key)
            tick(success)
        about = {**asdict(self), "radius": radius, "dev_clips": len(dev), "dev_success": round(state.success, 4)}
        return Perturbation(state.best.cpu().numpy(), about | {"model": view.recogniser.name, "fit": key})

    def _learn(self, view: View, clip: AttackClip, text: str, clean: str, perturbation: Tensor, radius: float) -> None:
        """Let one clip change the perturbation, in place."""
        wave = torch.from_numpy(clip.samples).to(perturbation)[None]
        size = wave.shape[1]
        lengths = torch.tensor([size], device=perturbation.device)
        batch = AttackBatch(lengths, [text], clip.language, [clip.rng("universal", 0)], ids=[clip.id])
        own = torch.zeros_like(perturbation)
        for step in range(self.steps):
            noisy = (wave + _tile(perturbation + own, size)).clamp(-1, 1)
            if step % self.transcribe_every == 0 and self._cer(view, noisy[0], clip, clean) >= self.cer:
                break
            _, slope = view.gradient(noisy, batch)
            # descend 0.5 |own| - loss: the gradient of a norm is the direction, and nothing at zero
            slope = 0.5 * own / own.norm().clamp_min(1e-30) - _fold(slope[0], len(perturbation))
            moved = (own - self.learning_rate * slope.sign()).clamp(-self.clip_radius, self.clip_radius)
            own = (perturbation + moved).clamp(-radius, radius) - perturbation
        perturbation += own
        perturbation.clamp_(-radius, radius)

    def _cer(self, view: View, noisy: Tensor, clip: AttackClip, clean: str) -> float:
        hypotheses = view.transcribe([noisy.cpu().numpy()], clip.language)
        return float(character_errors([clean], hypotheses)[0])

    def _success(self, view: View, dev: Sequence[AttackClip], clean: list[str], perturbation: Tensor) -> float:
        waves = [torch.from_numpy(clip.samples).to(perturbation) for clip in dev]
        noisy = [(wave + _tile(perturbation, len(wave))).clamp(-1, 1).cpu().numpy() for wave in waves]
        return float(np.mean(character_errors(clean, _transcripts(view, noisy, dev)) >= self.cer)) if dev else 0.0


def _transcripts(view: View, signals: Sequence[np.ndarray], clips: Sequence[AttackClip]) -> list[str]:
    """The transcripts, as many at a time as the recogniser likes."""
    hypotheses: list[str] = []
    size = view.recogniser.batch_size
    for language, group in groupby(zip(signals, clips, strict=True), key=lambda pair: pair[1].language):
        waves = [wave for wave, _ in group]
        for start in range(0, len(waves), size):
            hypotheses += view.transcribe(waves[start : start + size], language)
    return hypotheses


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

    def describe(self) -> Settings:
        about = {key: value for key, value in self.perturbation.about.items() if key not in ("snr_db", "steps")}
        return {"perturbation": self.perturbation.digest, "bound": asdict(self.bound), **about}

    def run(self, view: View, clips: list[AttackClip]) -> list[Attacked]:
        before = view.transcribe([clip.samples for clip in clips], clips[0].language)
        pcms = [self.stored(clip) for clip in clips]
        after = view.transcribe([pcm.astype(np.float32) / 32768 for pcm in pcms], clips[0].language)
        facts = outcomes(clips, before, after)
        return attacked_clips(self, view, clips, pcms, own_transcripts(view, clips, before), facts, [0] * len(clips))

    def stored(self, clip: AttackClip) -> np.ndarray:
        """The 16-bit samples of a clip with the perturbation at the SNR."""
        noise = tiled(self.perturbation.samples, len(clip.samples))
        return self.bound.store(clip.samples, noise * (self.bound.radius(clip.samples) / max(norm2(noise), 1e-30)))


def make_universal(plan: AttackPlan) -> Universal:
    return Universal(plan.bound, plan.perturbation, plan.severity)


def universal_fit(plan: AttackPlan) -> UniversalFit:
    return UniversalFit(plan.snr_db, **plan.settings.given("epochs", "steps", "transcribe_every"))
