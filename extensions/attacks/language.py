"""Whisper's language confusion (Olivier, 5.4): push the language token that it decides on first, and what follows is
written in the wrong language. Per clip (45 dB, 30 steps) or by one perturbation for all (40 dB).

It acts where the model has to find out the language itself: `hf:...?language=auto`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from speech_robust_bench.attacks.clips import AttackBatch, AttackClip, Bound, padded, to_float
from speech_robust_bench.attacks.pgd import Attacked, BestCandidates, Pgd, attacked_clips, outcomes
from speech_robust_bench.attacks.registry import AttackPlan
from speech_robust_bench.attacks.universal import Fitting, Perturbation, Universal, _fold, _tile, fit_key
from speech_robust_bench.attacks.views.base import View
from speech_robust_bench.attacks.views.transformers_models import WhisperView
from speech_robust_bench.core.audio import RATE
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.options import Settings


@dataclass(kw_only=True)
class LanguageView(View):
    """Whisper as a classifier of languages: the loss is the cross-entropy of one of its language tokens."""

    whisper: WhisperView
    target: str = "sr"

    @classmethod
    def of_whisper(cls, view: View, target: str) -> LanguageView:
        """The view of a multilingual Whisper that has to find the language itself."""
        if not isinstance(view, WhisperView) or not view.multilingual:
            raise UserError(
                f"{view.recogniser.name} decides on no language; language confusion is for multilingual Whisper"
            )
        if f"<|{target}|>" not in view.model.generation_config.lang_to_id:
            raise UserError(f"{view.recogniser.name} knows no language '{target}'; say a code such as en, tl or sr")
        if view.recogniser.forced_language != "auto":  # type: ignore[attr-defined]
            raise UserError("the model is told the language, so it cannot be confused; add ?language=auto to its spec")
        return cls(view.recogniser, view.precision, whisper=view, target=target)

    def __post_init__(self) -> None:
        self.pads_safely, self.longest_s = self.whisper.pads_safely, self.whisper.longest_s

    @property
    def device(self) -> str:
        return self.whisper.device

    def _scores(self, waves: Tensor, batch: AttackBatch) -> Tensor:
        """(clip, language), in the order of `codes`."""
        start = torch.full((len(waves), 1), self.whisper.prompt(None)[0], device=waves.device)
        inputs = self.whisper.inputs(waves, batch.lengths)
        logits = self.whisper.model(**inputs, decoder_input_ids=start, use_cache=False).logits[:, 0].float()
        return logits[:, list(self._languages.values())]

    @property
    def _languages(self) -> dict[str, int]:
        return self.whisper.model.generation_config.lang_to_id

    def losses(self, waves: Tensor, batch: AttackBatch) -> Tensor:
        wanted = list(self._languages).index(f"<|{self.target}|>")
        return -self._scores(waves, batch).log_softmax(-1)[:, wanted]

    def detect(self, signals: Sequence[np.ndarray]) -> list[str]:
        """The language that the model decides on for each clip."""
        waves, lengths = padded(signals, self.device)
        with torch.no_grad():
            best = self._scores(waves, AttackBatch(lengths, [""] * len(waves))).argmax(-1).tolist()
        return [list(self._languages)[index].strip("<|>") for index in best]

    def spell(self, text: str) -> str:
        return self.whisper.spell(text)

    def check(self, clips: Sequence[AttackClip]) -> None:
        self.whisper.check(clips)


def _confused(attacked: list[Attacked], view: LanguageView) -> list[Attacked]:
    """With the languages decided on, before and after; success is the target language."""
    before = view.detect([clip.clip.samples for clip in attacked])
    after = view.detect([to_float(clip.pcm) for clip in attacked])
    for clip, was, now in zip(attacked, before, after, strict=True):
        clip.facts |= {"language_before": was, "language_after": now, "success": float(now == view.target)}
    return attacked


@dataclass(frozen=True)
class Language:
    """Targeted PGD on the language, clip by clip."""

    bound: Bound
    target: str = "sr"
    steps: int = 30
    step: float = 0.1  # of the radius
    severity: int = 0
    seed: str = ""
    name: str = field(default="language", init=False)

    def describe(self) -> Settings:
        return asdict(self)

    def run(self, view: View, clips: list[AttackClip]) -> list[Attacked]:
        confused = LanguageView.of_whisper(view, self.target)
        before = view.transcribe([clip.samples for clip in clips], None)
        candidates = BestCandidates(view, clips, self.bound, [clip.text for clip in clips])
        texts = [""] * len(clips)  # what is said plays no part
        pgd = Pgd(self.bound, self.severity, self.steps, self.step, seed=f"language{self.seed}")
        taken = pgd.search(confused, clips, texts, candidates, towards=-1)
        pcms, after = candidates.best_of_each()
        return _confused(
            attacked_clips(self, confused, clips, pcms, texts, outcomes(clips, before, after), taken), confused
        )


@dataclass(frozen=True)
class LanguageFit:
    """One perturbation of 30 s for all clips: signed steps in an L-inf ball, one step per dev clip and epoch."""

    reports: ClassVar[str] = "loss"
    snr_db: float
    target: str = "sr"
    epochs: int = 2000
    learning_rate: float = 0.001  # of the radius
    seconds: float = 30.0

    def __call__(
        self,
        view: View,
        dev: Sequence[AttackClip],
        tick: Callable[[float], None] = lambda success: None,
        place: Path | None = None,
    ) -> Perturbation:
        """Fit on the dev clips; `tick` is given the loss after every epoch; the file `place` keeps the state."""
        confused = LanguageView.of_whisper(view, self.target)
        radius = float(np.mean([Bound("linf", self.snr_db).radius(clip.samples) for clip in dev]))
        key = fit_key(asdict(self), view, dev)
        state = Fitting.begin(int(self.seconds * RATE), view.device, place, key)
        while state.epoch < self.epochs:
            seen = 0.0
            for clip in dev:
                wave = torch.from_numpy(clip.samples).to(state.current)[None]
                noisy = (wave + _tile(state.current, wave.shape[1])).clamp(-1, 1)
                size = torch.tensor([wave.shape[1]], device=noisy.device)
                loss, slope = confused.gradient(noisy, AttackBatch(size, [""]))
                state.current -= self.learning_rate * radius * _fold(slope[0], len(state.current)).sign()
                state.current.clamp_(-radius, radius)
                seen += float(loss[0])
            state.end_epoch(state.epoch + 1.0, place, key)  # the last epoch counts
            tick(seen / len(dev))
        about = {**asdict(self), "radius": radius, "dev_clips": len(dev), "model": view.recogniser.name, "fit": key}
        return Perturbation(state.current.cpu().numpy(), about)


@dataclass(frozen=True)
class LanguageUniversal(Universal):
    """Add the fitted perturbation at an SNR, and record which language the model decides on."""

    name: str = "language_universal"

    def run(self, view: View, clips: list[AttackClip]) -> list[Attacked]:
        return _confused(super().run(view, clips), LanguageView.of_whisper(view, self.perturbation.about["target"]))


def make_language(plan: AttackPlan) -> Language:
    chosen = plan.settings.given("steps", "step", "seed")
    return Language(plan.bound, plan.settings.target_language, severity=plan.severity, **chosen)


def make_language_universal(plan: AttackPlan) -> LanguageUniversal:
    return LanguageUniversal(plan.bound, plan.perturbation, plan.severity)


def language_fit(plan: AttackPlan) -> LanguageFit:
    return LanguageFit(plan.snr_db, plan.settings.target_language, **plan.settings.given("epochs"))
