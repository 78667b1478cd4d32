"""What the tests of views of tiny models share: clips, batches, and what is true of every view."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from speech_robust_bench.attacks.clips import AttackBatch, AttackClip, Bound, padded
from speech_robust_bench.attacks.pgd import Pgd
from speech_robust_bench.attacks.views.base import View
from speech_robust_bench.core.audio import from_pcm16


def clip_of(seconds: float) -> AttackClip:
    """Noise that swells, and a transcript."""
    size = int(16_000 * seconds)
    noise = np.random.default_rng(size).standard_normal(size) * np.abs(np.sin(np.arange(size) / 900))
    return AttackClip(f"c{size}", (0.1 * noise).astype(np.float32), "The fox.", "en", "noise")


def batch_of(view: View, clip: AttackClip) -> tuple[torch.Tensor, AttackBatch]:
    waves, lengths = padded([clip.samples])
    return waves, AttackBatch(lengths, [view.spell(clip.text)], "en")


def assert_gradients_are_right(view: View) -> None:
    """Along the gradient, as finite differences say."""
    waves, batch = batch_of(view, clip_of(0.5))
    _, slope = view.gradient(waves, batch)
    direction, step = slope / slope.abs().max(), 1e-4
    rise = (view.values(waves + step * direction, batch) - view.values(waves - step * direction, batch)) / (2 * step)
    assert (slope * direction).sum().item() == pytest.approx(rise.item(), rel=0.02)


def assert_pgd_raises_the_loss(view: View) -> None:
    clip = clip_of(0.6)
    view.check([clip])
    (attacked,) = Pgd(Bound("l2", 10.0), 1, steps=4).run(view, [clip])
    waves, batch = batch_of(view, clip)
    changed = torch.from_numpy(from_pcm16(attacked.pcm))[None]
    assert view.values(changed, batch) > view.values(waves, batch)
