"""The attack without knobs: APGD's rules, margins, and an ensemble that is as strong as PGD tuned by hand."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from support.tone_configs import one_thread, tone_data  # noqa: F401
from support.tones import clip_of, ctc, seq2seq, transducer

from speech_robust_bench.attacks.clips import AttackClip, Bound
from speech_robust_bench.attacks.pgd import Pgd, prepare
from speech_robust_bench.attacks.universal import Perturbation
from speech_robust_bench.attacks.views.open_view import open_view
from speech_robust_bench.cli.main import main
from speech_robust_bench.extensions.attacks.auto import (
    AdaptiveSteps,
    Auto,
    checkpoints,
    hinge,
    margin_view,
    right_tokens,
)
from speech_robust_bench.extensions.attacks.rows import STANDARD_AUTO as AUTO
from speech_robust_bench.models.adapters.python import Function


def view_of(model):
    return open_view(Function("small", "1", {}, 8, model.transcribe, model))


def test_checkpoints_are_those_of_the_paper() -> None:
    """Croce and Hein, Section 3.1: p = 0.22, then each gap 0.03 less than the one before, at least 0.06."""
    assert checkpoints(100)[:6] == [22, 41, 57, 70, 80, 87]
    assert checkpoints(100)[-1] <= 100


def climb(function, start: float, steps: int) -> tuple[AdaptiveSteps, list[float]]:
    """APGD on a function of one number in [-1, 1]; the points it went through."""
    here = torch.tensor([[start]])
    state = AdaptiveSteps(Bound("linf", eps=1.0), torch.ones(1), here, steps)
    points = []
    for _ in range(steps):
        here = here.detach().requires_grad_()
        loss = function(here)[:, 0]
        (slope,) = torch.autograd.grad(loss.sum(), here)
        points.append(float(here.detach()))
        here = state.update(here.detach(), slope, loss.detach(), [0])
    return state, points


def test_steps_shrink_until_a_maximum_inside_the_ball_is_met() -> None:
    """Signed steps of two radii jump over it for ever; halved ones do not."""
    state, points = climb(lambda x: -((x - 0.3) ** 2), -1.0, 100)
    assert float(state.best[0, 0]) == pytest.approx(0.3, abs=0.02)
    assert float(state.size[0]) < 0.2
    assert all(-1 <= point <= 1 for point in points)


def test_steps_stay_large_while_the_loss_rises() -> None:
    here = torch.zeros(2, 1)
    state = AdaptiveSteps(Bound("linf", eps=1.0), torch.ones(2), here, 50)
    for step in range(50):  # the loss of one clip rises at every step, that of the other falls
        here = state.update(here, torch.ones(2, 1), torch.tensor([float(step), -float(step)]), [0, 1])
    assert float(state.size[0]) == AUTO.first_step
    assert float(state.size[1]) < 0.1
    assert [float(loss) for loss in state.best_loss] == [49.0, 0.0]


def test_the_margin_by_hand() -> None:
    scores = torch.tensor([[[3.0, 1.0, 0.5], [0.0, 5.0, 2.0], [9.0, 9.0, 9.0]]])
    right = torch.tensor([[0, 2, -100]])
    # first: 1 - 3 = -2; second: 5 - 2 = 3, which has lost and counts 1; third: no token
    assert hinge(scores, right).tolist() == [pytest.approx((-2 + 1) / 2)]


@pytest.mark.parametrize("model", [ctc, seq2seq, transducer])
def test_margins_have_right_gradients(model) -> None:
    module = model().double()
    try:
        view = view_of(module)
        clips = [clip_of(seed) for seed in range(2)]
        waves, batch = prepare(view, clips, [clip.text for clip in clips], [])
        waves = waves.double()
        batch = replace(batch, right_tokens=right_tokens(view, waves, batch))
        by_margin = margin_view(view)
        assert by_margin is not None
        scores = module.token_scores(waves, batch.lengths, batch.right_tokens)
        assert (hinge(scores, torch.nn.utils.rnn.pad_sequence(batch.right_tokens, True, -100)) < 0).all()
        _, slope = by_margin.gradient(waves, batch)
        direction = torch.randn(waves.shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
        values = [by_margin.values(waves + sign * 1e-4 * direction, batch) for sign in (1, -1)]
        numeric = (values[0] - values[1]).double() / 2e-4
        assert (slope * direction).sum(1).tolist() == pytest.approx(numeric.tolist(), rel=1e-3, abs=1e-5)
    finally:
        module.float()


@pytest.mark.parametrize("model", [ctc, seq2seq, transducer])
def test_as_strong_as_the_best_tuned_pgd_at_equal_gradient_calls(model) -> None:
    view, clips, bound = view_of(model()), [clip_of(seed, 2) for seed in range(8)], Bound("l2", 18)
    auto = Auto(bound, 3, steps=24, queries=0).run(view, clips)
    assert max(clip.facts["steps"] for clip in auto) <= 24
    tuned = []
    for step in (0.1, 0.4, 1.0):
        attacked = Pgd(bound, 3, steps=24, step=step, transcribe_every=4, stop=1.0).run(view, clips)
        tuned.append(np.mean([clip.facts["success"] for clip in attacked]))
    assert np.mean([clip.facts["success"] for clip in auto]) >= max(tuned)
    assert all(bound.holds(clip.clip.samples, clip.pcm) for clip in auto)
    assert not any("flat loss" in clip.facts["gradient_masking"] for clip in auto)


class Masked:
    """The CTC model behind rounding to a coarse grid, which has no gradient."""

    revision = "1"

    def __init__(self) -> None:
        self.model = ctc()

    def spell(self, text: str) -> str:
        return self.model.spell(text)

    def transcribe(self, clips, rate, language):
        return self.model.transcribe([np.round(clip * 8) / 8 for clip in clips], rate, language)

    def losses(self, waves, lengths, texts):
        return self.model.losses((waves * 8).round() / 8, lengths, texts)


def test_a_loss_that_does_not_move_is_noticed() -> None:
    clips = [clip_of(seed) for seed in range(4)]
    attacked = Auto(Bound("l2", 20), 4, steps=8, queries=0).run(view_of(Masked()), clips)
    assert [clip.facts["gradient_masking"] for clip in attacked] == [["flat loss"]] * 4


class Fragile:
    """Loses its n-th word where one sample is louder than in the clean clip; its loss knows nothing of that."""

    revision = "1"

    def __init__(self, clean: np.ndarray, words: int) -> None:
        self.clean, self.places = clean, np.linspace(200, len(clean) - 200, words).astype(int)

    def transcribe(self, clips, rate, language):
        words = [[chr(97 + n) for n, i in enumerate(self.places) if clip[i] <= self.clean[i]] for clip in clips]
        return [" ".join(kept) for kept in words]

    def losses(self, waves, lengths, texts):
        return waves.square().sum(1) * 0 + 1.0


def test_a_search_that_beats_the_gradients_is_noticed() -> None:
    clip = AttackClip("one", clip_of(1, 3).samples, " ".join("abcdefghijkl"), "en", "x")
    (attacked,) = Auto(Bound("l2", 20), 3, steps=8, queries=200).run(view_of(Fragile(clip.samples, 12)), [clip])
    assert attacked.facts["gradient_masking"] == ["flat loss", "queries beat gradients"]
    assert attacked.facts["found_by"] == "queries"


def test_a_universal_perturbation_is_one_of_the_starts() -> None:
    noise = np.random.default_rng(0).standard_normal(16_000).astype(np.float32)
    attack = Auto(Bound("l2", 20), 3, Perturbation(noise), steps=20)
    assert [str(stage) for stage in attack.stages(True)] == [
        "own loss from random",
        "margin loss from worst",
        "own loss from universal",
        "margin loss from random",
    ]
    assert sum(stage.steps for stage in attack.stages(True)) == 20
    assert attack.describe()["universal"] == Perturbation(noise).digest
    assert len(attack.run(view_of(ctc()), [clip_of(1)])) == 1


def test_the_command_makes_a_config(tone_data, capsys) -> None:  # noqa: F811
    words = ["en-tones_clean", "--model", "python:support.tones:Ctc", "--data", str(tone_data), "--limit", "3"]
    settings = ["--severity", "4", "--steps", "8", "--quiet", "--out", str(tone_data)]
    assert main(["attack", "auto", *words, *settings]) == 0
    assert "en-tones_auto_sev4-support.tones-Ctc: 3 clips, success" in capsys.readouterr().out
    manifest = json.loads((tone_data / "en-tones_auto_sev4-support.tones-Ctc" / "_manifest.json").read_text())
    assert manifest["category"] == "adv_auto"
    assert manifest["attack"]["steps"] == 8
