"""Kenansville: the weak-frequency cut as an attack, which needs no model."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from speech_robust_bench.attacks.clips import AttackClip, Bound
from speech_robust_bench.attacks.pgd import Attacked
from speech_robust_bench.attacks.registry import AttackPlan
from speech_robust_bench.core.audio import RATE, to_pcm16
from speech_robust_bench.core.options import Settings
from speech_robust_bench.extensions.attacks.scenarios import kenansville


@dataclass(frozen=True)
class Kenansville:
    """The weakest DFT bins zeroed, down to an SNR."""

    bound: Bound
    severity: int = 0
    name: str = field(default="kenansville", init=False)

    def describe(self) -> Settings:
        return {}

    def run(self, view: Any, clips: list[AttackClip]) -> list[Attacked]:
        snr_db = float(self.bound.snr_db or 0)
        rng = clips[0].rng(self.name, self.severity)  # it draws nothing
        return [Attacked(clip, to_pcm16(kenansville(clip.samples, RATE, snr_db, rng))) for clip in clips]


def make_kenansville(plan: AttackPlan) -> Kenansville:
    return Kenansville(plan.bound, plan.severity)
