"""Batches that do not fit into memory are cut; the model's input is checked once; what mixed precision leaves alone."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from support.tone_configs import one_thread  # noqa: F401
from support.tones import clip_of

from speech_robust_bench.attacks.clips import AttackBatch, AttackClip, padded
from speech_robust_bench.attacks.make_configs import BatchRunner, padded_s, planned_s
from speech_robust_bench.attacks.pgd import Attacked
from speech_robust_bench.attacks.views.base import View
from speech_robust_bench.attacks.views.open_view import open_view
from speech_robust_bench.core.errors import UserError


class Hungry:
    """An attack for which only so many seconds fit."""

    def __init__(self, most_s: float) -> None:
        self.most_s, self.sizes = most_s, []

    def run(self, view, clips):
        self.sizes.append(len(clips))
        if padded_s(clips) > self.most_s:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return [Attacked(clip, clip.samples) for clip in clips]


class Checked(View):
    seen: int = 0

    def check(self, clips) -> None:
        self.seen += 1


def clips(count: int) -> list[AttackClip]:
    return [AttackClip(f"c{i}", np.full(16_000, 0.1, np.float32), "a") for i in range(count)]


def test_a_batch_that_does_not_fit_is_cut() -> None:
    view, attack = Checked(None), Hungry(2.0)
    runner = BatchRunner(view)
    assert [one.clip.id for one in runner.run(attack, clips(8))] == [f"c{i}" for i in range(8)]
    assert attack.sizes == [8, 4, 2, 2, 2, 2]
    attack.sizes.clear()
    assert len(runner.run(attack, clips(8))) == 8
    assert attack.sizes == [2, 2, 2, 2]
    assert view.seen == 1


def test_one_clip_that_does_not_fit_is_named() -> None:
    with pytest.raises(UserError, match=r"c0: its 1\.0 s do not fit into the memory of cpu"):
        BatchRunner(Checked(None)).run(Hungry(0.5), clips(2))


def test_the_plan_follows_from_the_first_peak() -> None:
    assert planned_s(10.0, 4 * 2**30, 40 * 2**30) == pytest.approx(90.0)
    assert planned_s(10.0, 39 * 2**30, 40 * 2**30) == 10.0  # what was run did fit


def test_mixed_precision_keeps_features_and_losses_single(tmp_path) -> None:
    pytest.importorskip("transformers")
    from support.small_models import whisper_folder, whisper_view

    plain = whisper_view(whisper_folder(tmp_path), None)
    mixed = open_view(plain.recogniser, precision=torch.bfloat16)
    clip = clip_of(1)
    waves, lengths = padded([clip.samples])
    with mixed._mixed():
        features = mixed.inputs(waves, lengths)["input_features"]
    assert torch.equal(features, plain.inputs(waves, lengths)["input_features"])
    loss = mixed.values(waves, AttackBatch(lengths, ["the fox"], "en"))
    assert loss.dtype == torch.float32
    exact = plain.values(waves, AttackBatch(lengths, ["the fox"], "en"))
    assert loss.tolist() == pytest.approx(exact.tolist(), rel=0.05)
    assert loss.tolist() != exact.tolist()  # the model itself did run in bfloat16
