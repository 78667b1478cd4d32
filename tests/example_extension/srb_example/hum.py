"""An attack: a hum of 50 Hz at the SNR of the bound, which needs no model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from speech_robust_bench.attacks.registry import AttackPlan, AttackRow
from speech_robust_bench.builders.scenario import attack_scenario
from speech_robust_bench.core.audio import RATE, to_pcm16

HUM = attack_scenario("hum", "adv_hum", "an example", "a hum of 50 Hz")
ROW = AttackRow("hum", "a hum of 50 Hz; needs no model", f"{__name__}:make", ("severity",), needs="nothing")


@dataclass(frozen=True)
class Hum:
    """The same tone for every clip, as loud as the bound allows."""

    plan: AttackPlan
    name: str = "hum"

    @property
    def bound(self) -> Any:
        """The L2 ball of the severity."""
        return self.plan.bound

    @property
    def severity(self) -> int:
        """That of the scenario."""
        return self.plan.severity

    def describe(self) -> dict[str, Any]:
        """It has no settings."""
        return {}

    def run(self, view: Any, clips: list[Any]) -> list[Any]:
        """Each clip with the tone."""
        from speech_robust_bench.attacks.pgd import Attacked  # needs torch, which `srb ls` does not

        attacked = []
        for clip in clips:
            tone = np.sin(2 * np.pi * 50 * np.arange(len(clip.samples)) / RATE)
            tone *= 0.99 * self.bound.radius(clip.samples) / np.linalg.norm(tone)
            attacked.append(Attacked(clip, to_pcm16((clip.samples + tone).astype(np.float32))))
        return attacked


def make(plan: AttackPlan) -> Hum:
    """The attack at a severity."""
    return Hum(plan)
