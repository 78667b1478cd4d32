"""Batches one after the other on one opened model: its input is checked before the first, memory planned from it.

What becomes of a clip does not depend on its batch, so a batch that does not fit into a GPU's memory may be cut in two.
How many seconds of padded audio fit is learnt from the peak of the first batch, and from any that did not fit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from speech_robust_bench.attacks.clips import AttackClip
from speech_robust_bench.attacks.differentiable.base import View
from speech_robust_bench.attacks.gradient_loop import Attack, Attacked
from speech_robust_bench.core.errors import UserError

HEADROOM = 0.9  # of the memory that a plan uses: allocators leave gaps


def padded_s(clips: Sequence[AttackClip]) -> float:
    """Seconds of audio of a batch, all clips being as long as the longest."""
    return len(clips) * max(clip.seconds for clip in clips)


class BatchRunner:
    """An opened target of attacks (a view, a recogniser or nothing) and what is known of its memory."""

    def __init__(self, target: Any) -> None:
        self.target = target
        self.most_s = math.inf  # seconds of padded audio that fit
        self._began = False

    def run(self, attack: Attack, clips: list[AttackClip]) -> list[Attacked]:
        """The clips, attacked, in as many parts as memory asks for."""
        if not self._began and isinstance(self.target, View):
            self.target.check(clips)
        waiting, done = [clips], []
        while waiting:
            part = waiting.pop(0)
            if padded_s(part) > self.most_s and len(part) > 1:
                waiting[:0] = _halves(part)
                continue
            try:
                done += attack.run(self.target, part)
            except torch.OutOfMemoryError:
                waiting[:0] = self._smaller(part)
                continue
            if not self._began:
                self._learn(part)
                self._began = True
        return done

    def _smaller(self, part: list[AttackClip]) -> list[list[AttackClip]]:
        if len(part) == 1:
            raise UserError(
                f"{part[0].id}: its {part[0].seconds:.1f} s do not fit into the memory of {self.target.device}; "
                "try --precision bfloat16, another --device, or shorter clips"
            )
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        self.most_s = min(self.most_s, padded_s(part) / 2)
        return _halves(part)

    def _learn(self, part: list[AttackClip]) -> None:
        device = torch.device(getattr(self.target, "device", None) or "cpu")
        if device.type == "cuda":
            peak, whole = torch.cuda.max_memory_allocated(device), torch.cuda.mem_get_info(device)[1]
            self.most_s = min(self.most_s, planned_s(padded_s(part), peak, whole))


def planned_s(seconds: float, peak_bytes: int, whole_bytes: int) -> float:
    """How many seconds fit, if so many took so much; weights count as if they grew, which errs on the safe side."""
    return max(seconds, seconds * HEADROOM * whole_bytes / max(peak_bytes, 1))


def _halves(clips: list[AttackClip]) -> list[list[AttackClip]]:
    middle = len(clips) // 2
    return [clips[:middle], clips[middle:]]
