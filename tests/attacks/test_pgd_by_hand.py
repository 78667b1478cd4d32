"""PGD on a loss that rises by the same slope everywhere: every step, start and setting can be worked out by hand."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from types import SimpleNamespace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from speech_robust_bench.attacks.clips import AttackClip, Bound, to_float
from speech_robust_bench.attacks.pgd import BestCandidates, Pgd
from speech_robust_bench.attacks.views.base import View


class Slope(View):
    """A recogniser whose loss rises by the same slope everywhere: where PGD goes can be worked out by hand."""

    def __init__(self, slope: list[float]) -> None:
        self.slope = torch.tensor(slope)
        self.visited: list[list[float]] = []  # where the gradient was asked for

    def gradient(self, waves, batch):
        self.visited += waves.tolist()
        return waves @ self.slope, self.slope.expand_as(waves)

    def transcribe(self, signals, language):
        return ["a"] * len(signals)


def visited(bound: Bound, towards: int, slope: list[float], samples: list[float], **options) -> np.ndarray:
    """The perturbations from which PGD took its steps, one row a step; the last is where it ended."""
    view, clip = Slope(slope), AttackClip("x", np.array(samples, np.float32), "a")
    candidates = BestCandidates(view, [clip], bound, ["a"])
    Pgd(bound, random_start=False, **options).search(view, [clip], ["a"], candidates, towards)
    assert candidates.best[0] is not None
    end = to_float(candidates.best[0][1])
    return np.array([*view.visited, end]) - clip.samples


LSB = 1 / 32768


@pytest.mark.parametrize("towards", [1, -1])
def test_l2_steps_are_0_4_of_the_radius_and_end_on_the_sphere(towards) -> None:
    """The clip has norm 0.5, so at 20 dB the radius is 0.05; the slope has the direction (0.6, 0.8)."""
    found = visited(Bound(snr_db=20), towards, [3.0, 4.0], [0.3, 0.4], steps=5)
    expected = np.outer([0, 0.02, 0.04, 0.05, 0.05, 0.05], [0.6 * towards, 0.8 * towards])
    assert np.allclose(found, expected, atol=2 * LSB)


@pytest.mark.parametrize("towards", [1, -1])
def test_linf_steps_go_to_the_corner_of_the_cube_and_stay(towards) -> None:
    found = visited(Bound("linf", eps=0.01), towards, [3.0, -0.1, 0.0], [0.3, 0.4, 0.1], steps=5)
    expected = np.outer([0, 0.004, 0.008, 0.01, 0.01, 0.01], [towards, -towards, 0])
    assert np.allclose(found, expected, atol=2 * LSB)


def test_a_clip_at_full_scale_is_held_in_the_range() -> None:
    found = visited(Bound("linf", eps=0.1), 1, [1.0, 1.0], [0.95, -0.95], steps=4)
    assert np.allclose(found[:, 0], [0, 0.04, 0.05, 0.05, 0.05 - LSB], atol=2 * LSB)
    assert np.allclose(found[:, 1], [0, 0.04, 0.08, 0.1, 0.1], atol=2 * LSB)


def test_projection_gives_the_nearest_point_of_the_ball() -> None:
    delta, radii = torch.tensor([[3.0, 4.0], [0.3, 0.4]]), torch.tensor([1.0, 1.0])
    assert torch.allclose(Bound(snr_db=0).project(delta, radii), torch.tensor([[0.6, 0.8], [0.3, 0.4]]))
    cube = Bound("linf", eps=1.0)
    assert torch.equal(cube.project(delta, radii), torch.tensor([[1.0, 1.0], [0.3, 0.4]]))
    assert torch.equal(cube.project(-delta, radii), torch.tensor([[-1.0, -1.0], [-0.3, -0.4]]))


def test_each_restart_draws_another_start_of_the_clip() -> None:
    """Where the loss is flat, PGD stays where the clip's own stream put it, inside the range."""
    bound, view = Bound(snr_db=0), Slope([0.0, 0.0, 0.0])
    clip = AttackClip("x", np.array([0.9, -0.9, 0.1], np.float32), "a")
    attack = Pgd(bound, 3, steps=1, restarts=2, seed="mine")
    taken = attack.search(view, [clip], ["a"], BestCandidates(view, [clip], bound, ["a"]), towards=1)
    assert taken == [2]
    for visited, seed in zip(view.visited, ("mine", "mine1"), strict=True):
        start = bound.draw(clip.samples, clip.rng("pgd", 3, seed))
        assert np.allclose(visited, np.clip(clip.samples + start, -1, 1), atol=1e-6)
        assert np.abs(start).max() > 0.01


class Listener(Slope):
    """It writes "a" while the first sample is as it was, "b" once it was moved up, and "c" once it was moved down."""

    def __init__(self, slope: list[float]) -> None:
        super().__init__(slope)
        self.recogniser = SimpleNamespace(name="listener", revision="1")
        self.precision, self.asked, self.climbed = None, [], []

    def gradient(self, waves, batch):
        self.climbed.append((batch.texts, [rng is not None for rng in batch.rngs]))
        return super().gradient(waves, batch)

    def values(self, waves, batch):
        return waves @ self.slope

    def transcribe(self, signals, language):
        self.asked.append(len(signals))
        return ["a" if abs(s[0] - 0.25) < 0.001 else "b" if s[0] > 0.25 else "c" for s in signals]

    def spell(self, text):
        return text


CLIP = AttackClip("x", np.array([0.25, 0.25], np.float32), "a")


def test_the_defaults_are_the_papers():
    attack = Pgd(Bound(snr_db=20))
    described = attack.describe()
    assert described.pop("bound")["snr_db"] == 20
    assert described == {
        "severity": 0,
        "steps": 100,
        "step": 0.4,
        "random_start": True,
        "restarts": 1,
        "target": None,
        "transcribe_every": 20,
        "stop": None,
        "seed": "",
        "name": "pgd",
    }
    with pytest.raises(FrozenInstanceError):
        attack.steps = 1
    with pytest.raises(TypeError):
        Pgd(Bound(snr_db=20), name="mine")


def test_fgsm_is_one_full_step_from_the_clip_itself():
    attack = Pgd.fgsm(Bound("linf", eps=0.01), seed="mine")
    assert (attack.steps, attack.step, attack.random_start, attack.seed) == (1, 1.0, False, "mine")


def test_an_untargeted_attack_keeps_the_worst_candidate():
    view = Listener([1.0, 0.0])
    attack = Pgd(Bound("linf", eps=0.01), steps=6, transcribe_every=4, random_start=False)
    (attacked,) = attack.run(view, [CLIP])
    assert view.asked == [1, 1, 1]  # the clean clip, the fourth step, and the last one, which is not a fourth
    assert [texts for texts, _ in view.climbed[:6]] == [["a"]] * 6
    facts = attacked.facts
    assert (facts["prediction_before"], facts["prediction_after"]) == ("a", "b")
    assert (facts["wer_before"], facts["wer_after"], facts["steps"]) == (0, 1, 6)
    assert np.allclose(to_float(attacked.pcm) - CLIP.samples, [0.01, 0], atol=2 * LSB)
    assert np.allclose(np.array(view.visited[:2]) - CLIP.samples, [[0, 0], [0.004, 0]], atol=1e-6)


def test_the_worst_candidate_is_kept_even_if_the_clip_recovers():
    class Recovering(Listener):
        """It is wrong only on the way."""

        def transcribe(self, signals, language):
            self.asked.append(len(signals))
            return ["b" if 0.002 < s[0] - 0.25 < 0.006 else "a" for s in signals]

    attack = Pgd(Bound("linf", eps=0.01), steps=3, transcribe_every=1, random_start=False)
    (attacked,) = attack.run(Recovering([1.0, 0.0]), [CLIP])
    assert attacked.facts["prediction_after"] == "b"
    assert np.allclose(to_float(attacked.pcm) - CLIP.samples, [0.004, 0], atol=2 * LSB)


def test_a_targeted_attack_stops_when_the_target_is_written():
    view = Listener([1.0, 0.0])
    attack = Pgd(Bound("linf", eps=0.01), steps=20, target="c", transcribe_every=2, stop=0.0, random_start=False)
    (attacked,) = attack.run(view, [CLIP])
    assert view.climbed[0][0] == ["c"]
    assert attacked.facts["target"] == "c"
    assert attacked.facts["prediction_after"] == "c"
    assert attacked.facts["steps"] == 2
    assert attacked.facts["success"] == 1
    assert np.allclose(np.array(view.visited[:2]) - CLIP.samples, [[0, 0], [-0.004, 0]], atol=1e-6)
    assert (to_float(attacked.pcm) - CLIP.samples)[0] < 0


def test_the_last_step_is_transcribed_once():
    view = Listener([1.0, 0.0])
    Pgd(Bound("linf", eps=0.01), steps=4, transcribe_every=2, random_start=False).run(view, [CLIP])
    assert view.asked == [1, 1, 1]  # the clean clip and two candidates
    view = Listener([1.0, 0.0])
    Pgd(Bound("linf", eps=0.01), steps=4, transcribe_every=0, random_start=False).run(view, [CLIP])
    assert view.asked == [1, 1]  # the clean clip and the end


def test_every_clip_has_its_own_radius_and_its_own_start():
    loud = AttackClip("y", np.array([0.5, -0.5, 0.5, 0.5], np.float32), "a")
    view = Listener([0.0, 0.0, 0.0, 0.0])
    attack = Pgd(Bound(snr_db=20), 2, steps=1, seed="s")
    attack.search(view, [CLIP, loud], ["a", "a"], BestCandidates(view, [CLIP, loud], attack.bound, ["a", "a"]), 1)
    for row, clip in zip(np.array(view.visited), (CLIP, loud), strict=True):
        start = attack.bound.draw(clip.samples, clip.rng("pgd", 2, "s"))
        assert np.allclose(row[: len(clip.samples)], clip.samples + start, atol=1e-6)
        assert np.linalg.norm(start) <= 0.1 * np.linalg.norm(clip.samples) * (1 + 1e-6)
