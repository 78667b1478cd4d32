"""What one hears of a perturbation: the masking threshold of a clip, and the share of a perturbation above it.

The psychoacoustic model 1 of MPEG-1 (ISO 11172-3, Annex D) in the form of Lin and Abdulla (2015) that Qin et al. (2019,
Appendix) use: per frame, the tones of the clip that stand out mask what lies near them in frequency; what is below the
threshold in quiet is not heard either. Levels are relative: the loudest bin of the clip counts as 96 dB.

The imperceptible attack of Qin et al. (2019): a targeted perturbation that hides under the clip's masking threshold.

First Carlini and Wagner's attack finds any perturbation that makes the model write the target. Then Adam lowers the
model's loss plus alpha times the perturbation's power above the masking threshold (`masking_threshold.py`); alpha grows
while the target is written and shrinks while it is not. The least audible stored result that says the target is kept.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from speech_robust_bench.attacks.clips import AttackClip, Bound, to_float, word_errors
from speech_robust_bench.attacks.gradient_loop import Attacked, attacked_clips, descend, outcomes, prepare, tensor_of
from speech_robust_bench.attacks.views.base import View
from speech_robust_bench.core.audio import RATE, Samples
from speech_robust_bench.extensions.attacks.cw import Adam, CarliniWagner

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


GROW, SHRINK = 1.2, 0.8  # of alpha, as in Qin et al.


@dataclass(frozen=True)
class Psychoacoustic:
    """`first` finds the target; `steps` then hide it."""

    first: CarliniWagner = field(default_factory=CarliniWagner)
    steps: int = 1000
    learning_rate: float = 0.0005
    alpha: float = 0.05
    transcribe_every: int = 10
    severity: int = 0
    name: str = field(default="psychoacoustic", init=False)

    @property
    def bound(self) -> Bound:
        return self.first.bound

    def describe(self) -> dict[str, Any]:
        own = {key: value for key, value in asdict(self).items() if key != "first"}
        return {**own, "first": self.first.describe()}

    def run(self, view: View, clips: list[AttackClip]) -> list[Attacked]:
        by_id = {attacked.clip.id: attacked for attacked in self.first.run(view, clips)}
        results = [by_id[clip.id] for clip in clips]
        shares = [above_threshold(clip.samples, to_float(by_id[clip.id].pcm)) for clip in clips]
        first_steps = [attacked.facts["steps"] for attacked in results]
        which = [index for index, attacked in enumerate(results) if attacked.facts["success"] == 1.0]
        if which:
            self._hide(view, results, shares, which)
        for attacked, share, steps in zip(results, shares, first_steps, strict=True):
            attacked.facts |= {"first_steps": steps, "first_above_threshold": round(share, 4)}
        return results

    def _hide(self, view: View, results: list[Attacked], shares: list[float], which: list[int]) -> None:
        """The second stage, for the clips that already say their target: `results` of them become less audible."""
        clips = [results[index].clip for index in which]
        goals = [results[index].facts["target"] for index in which]
        texts = [view.spell(goal) for goal in goals]
        waves, batch = prepare(view, clips, texts, [clip.rng(self.name, 0) for clip in clips])
        delta = tensor_of([to_float(results[index].pcm) - results[index].clip.samples for index in which], waves)
        search = _HidingSearch(self, view, clips, goals, delta, [shares[index] for index in which])
        taken = descend(view, waves, batch, delta, search.update, self.steps, search.watch)
        for place, index in enumerate(which):
            results[index].facts["steps"] = taken[place]
            if (kept := search.kept[place]) is not None:
                before = results[index].facts["prediction_before"]
                facts = outcomes([clips[place]], [before], [kept[1]], [goals[place]])
                (results[index],) = attacked_clips(
                    self, view, [clips[place]], [kept[0]], [texts[place]], facts, [taken[place]]
                )


class _HidingSearch:
    """The weight of the second loss and the least audible success of every clip."""

    def __init__(
        self,
        settings: Psychoacoustic,
        view: View,
        clips: list[AttackClip],
        goals: list[str],
        delta: Tensor,
        shares: list[float],
    ) -> None:
        self.settings, self.view, self.clips, self.goals = settings, view, clips, goals
        self.shares = list(shares)  # above the threshold, the least so far
        self.adam = Adam(delta, settings.learning_rate)
        self.limits, self.scales = batch_of([threshold(clip.samples) for clip in clips], delta)
        self.alpha = torch.full((len(clips),), settings.alpha, dtype=delta.dtype, device=delta.device)
        self.kept: list[tuple[np.ndarray, str] | None] = [None] * len(clips)

    def update(self, delta: Tensor, slope: Tensor, losses: Tensor, which: list[int]) -> Tensor:
        change = delta.detach().requires_grad_()
        (audible_slope,) = torch.autograd.grad(self._excess(change, which).sum(), change)
        eps = self.settings.bound.eps
        assert eps is not None
        return self.adam.step(delta, slope + self.alpha[which, None] * audible_slope, which).clamp(-eps, eps)

    def _excess(self, change: Tensor, which: list[int]) -> Tensor:
        full = torch.nn.functional.pad(change, (0, self.adam.mean.shape[1] - change.shape[1]))
        return excess(full, self.limits[which], self.scales[which])

    def watch(self, step: int, delta: Tensor, active: list[int]) -> list[bool]:
        if step % self.settings.transcribe_every:
            return [False] * len(active)
        moves = delta.detach().cpu().numpy()
        pcms = [
            self.settings.bound.store(self.clips[index].samples, moves[index, : len(self.clips[index].samples)])
            for index in active
        ]
        language = self.clips[0].language
        hypotheses = self.view.transcribe([to_float(pcm) for pcm in pcms], language)
        errors = word_errors([self.goals[index] for index in active], hypotheses, language)
        for index, pcm, text, error in zip(active, pcms, hypotheses, errors, strict=True):
            self.alpha[index] *= GROW if error == 0 else SHRINK
            if error == 0:
                share = above_threshold(self.clips[index].samples, to_float(pcm))
                if share < self.shares[index]:
                    self.shares[index], self.kept[index] = share, (pcm, text)
        return [False] * len(active)
