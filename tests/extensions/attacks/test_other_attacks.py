"""Universal, Carlini and Wagner, genetic and Kenansville on small models and against definitions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from support.tone_configs import one_thread  # noqa: F401
from support.tones import SmallCtc as Kind
from support.tones import clip_of, ctc, trained

from speech_robust_bench.attacks.clips import AttackClip, Bound, above_threshold, snr_db, to_float
from speech_robust_bench.attacks.universal import Perturbation, Universal, UniversalFit, refuse_overlap
from speech_robust_bench.attacks.views.base import View
from speech_robust_bench.attacks.views.open_view import open_view
from speech_robust_bench.core.audio import to_pcm16
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.extensions.attacks.black_box import Genetic
from speech_robust_bench.extensions.attacks.scenarios import kenansville
from speech_robust_bench.extensions.attacks.targeted import (
    TARGETS,
    CarliniWagner,
    Psychoacoustic,
    TargetSearch,
    closest,
)
from speech_robust_bench.extensions.attacks.transfer import (
    Cell,
    Transfer,
    TransferCw,
    as_table,
    dropout_on,
    joined,
    judged_by,
    related,
)
from speech_robust_bench.models.adapters.python import Function


def recogniser(seed: int = 0) -> Function:
    model = trained(Kind, seed=seed) if seed else ctc()
    return Function(f"small{seed}", "1", {}, 8, model.transcribe, model)


@pytest.fixture(scope="module")
def view() -> View:
    return open_view(recogniser())


def test_universal_beats_noise_of_its_norm_on_held_out_clips(view) -> None:
    dev, test = [clip_of(seed) for seed in range(200, 206)], [clip_of(seed) for seed in range(12)]
    refuse_overlap(dev, test)
    seen: list[float] = []
    fit = UniversalFit(10, epochs=3, steps=8, learning_rate=0.01, clip_radius=0.05, seconds=0.5)(view, dev, seen.append)
    assert fit.about["dev_success"] == pytest.approx(max(seen), abs=1e-4)
    radius = np.mean([np.abs(clip.samples).max() for clip in dev]) * 10 ** (-10 / 20)
    assert np.abs(fit.samples).max() <= radius + 1e-6
    rng = np.random.default_rng(0)
    noise = Perturbation(rng.standard_normal(len(fit.samples)).astype(np.float32))
    fitted, random = (Universal(Bound(snr_db=10), one, 4).run(view, test) for one in (fit, noise))
    success = [np.mean([one.facts["success"] for one in found]) for found in (fitted, random)]
    assert success[0] > success[1] + 0.2
    for one, other in zip(fitted, random, strict=True):
        reached = [snr_db(found.clip.samples, found.pcm) for found in (one, other)]
        assert reached == pytest.approx([10, 10], abs=0.05)
        assert min(reached) >= 10


def test_an_interrupted_fit_goes_on_where_it_stopped(view, tmp_path) -> None:
    dev = [clip_of(seed) for seed in range(200, 204)]
    settings = {"epochs": 4, "steps": 3, "learning_rate": 0.002, "seconds": 0.5, "cer": 3.0}  # never reached
    fit, place = UniversalFit(10, **settings), tmp_path / "fit.npz"
    whole = fit(view, dev)
    seen: list[float] = []

    def interrupt(success: float) -> None:
        seen.append(success)
        if len(seen) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit(view, dev, interrupt, place)
    again = fit(view, dev, seen.append, place)
    assert len(seen) == 4  # two epochs before, two after
    assert max(seen) == 0  # so the last epoch counts: every one took more steps away from the clips
    assert np.abs(again.samples).max() > np.abs(UniversalFit(10, **settings | {"epochs": 1})(view, dev).samples).max()
    assert np.array_equal(again.samples, whole.samples)
    UniversalFit(20, **settings)(view, dev, seen.append, place)  # another fit does not go on from it
    assert len(seen) == 8


def test_dev_clips_in_the_test_set_are_refused() -> None:
    dev, test = [clip_of(1)], [clip_of(2), clip_of(1)]
    with pytest.raises(UserError, match="'clip-001' is in the test config too"):
        refuse_overlap(dev, test)
    renamed = AttackClip("another name", test[1].samples, "", "en", "x")
    with pytest.raises(UserError, match="'another name'"):
        refuse_overlap(dev, [renamed])


def test_a_perturbation_is_saved_and_loaded(tmp_path) -> None:
    one = Perturbation(np.arange(5, dtype=np.float32), {"snr_db": 10})
    one.save(tmp_path / "p.npz")
    again = Perturbation.load(tmp_path / "p.npz")
    assert (again.digest, again.about) == (one.digest, one.about)
    (tmp_path / "q.npz").write_text("no")
    with pytest.raises(UserError, match="no perturbation"):
        Perturbation.load(tmp_path / "q.npz")


def test_psychoacoustic_says_the_target_and_is_heard_less(view) -> None:
    clips = [clip_of(seed) for seed in range(4)]
    first = CarliniWagner(("ba dc",), eps=0.3, steps=60, shrinks=0, learning_rate=0.02, regularisation=0.01)
    attack = Psychoacoustic(first, steps=100, transcribe_every=5)
    found = attack.run(view, clips)
    reached = [one for one in found if one.facts["success"] == 1]
    assert len(reached) >= 2
    for one in reached:
        assert view.transcribe([to_float(one.pcm)], "en") == [one.facts["target"]] == ["ba dc"]
        assert attack.bound.holds(one.clip.samples, one.pcm)
    heard = [(above_threshold(o.clip.samples, to_float(o.pcm)), o.facts["first_above_threshold"]) for o in reached]
    assert all(after <= before + 1e-4 for after, before in heard)
    assert np.mean([after for after, _ in heard]) < 0.9 * np.mean([before for _, before in heard])


def test_transfer_cw_keeps_what_the_judge_reads_best() -> None:
    proxies = [open_view(recogniser(seed)) for seed in (0, 5)]
    view = judged_by(proxies, recogniser(0))
    attack = TransferCw(("ba dc",), eps=0.3, learning_rate=0.02, regularisation=0.01, steps=60, transcribe_every=5)
    clips = [clip_of(seed) for seed in range(4)]
    found = attack.run(view, clips)
    assert np.mean([one.facts["success"] for one in found]) > 0.7
    assert all(attack.bound.holds(one.clip.samples, one.pcm) for one in found)
    (alone,) = attack.run(view, clips[2:3])
    assert np.abs(alone.pcm.astype(int) - found[2].pcm).max() <= 1
    stranger = judged_by(proxies, recogniser(7))
    (judged,) = replace(attack, steps=5).run(stranger, clips[:1])
    assert recogniser(7).transcribe([to_float(judged.pcm)], 16_000, "en") == [judged.facts["prediction_after"]]


def test_dropout_is_on_for_the_gradient_alone() -> None:
    layer = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Dropout(0.5), torch.nn.BatchNorm1d(4)).eval()
    view = open_view(recogniser())
    view.model = layer
    with dropout_on(view):
        assert [part.training for part in layer] == [False, True, False]
    assert [part.training for part in layer] == [False, False, False]


def test_cw_reaches_its_target_and_then_gets_fainter(view) -> None:
    clips = [clip_of(seed) for seed in range(5)]
    loud = CarliniWagner(("ba dc",), eps=0.3, steps=60, shrinks=0, learning_rate=0.02, regularisation=0.01)
    faint = CarliniWagner(("ba dc",), eps=0.3, steps=120, learning_rate=0.02, regularisation=0.01)
    first, last = loud.run(view, clips), faint.run(view, clips)
    assert sum(one.facts["success"] == 1 for one in first) >= 3
    for one, other in zip(first, last, strict=True):
        if one.facts["success"] == 1:
            assert other.facts["prediction_after"] == "ba dc"
            assert snr_db(other.clip.samples, other.pcm) > snr_db(one.clip.samples, one.pcm)
            assert other.facts["last_radius"] < 0.3
            assert other.facts["loss_after"] < other.facts["loss_before"]


def target_search(clips: int, **settings: float) -> TargetSearch:
    attack = CarliniWagner(("ba dc",), transcribe_every=1, **settings)  # type: ignore[arg-type]
    return TargetSearch(attack, None, [clip_of(seed) for seed in range(clips)], [], torch.zeros(clips, 50))  # type: ignore[arg-type]


def test_a_step_of_cw_is_adam_on_the_signs_of_the_gradient() -> None:
    """As in robust_speech's cw.py and imperceptible.py: the gradient of loss + c |delta|, its signs, then Adam."""
    torch.manual_seed(0)
    search = target_search(2, eps=0.05, learning_rate=0.01, regularisation=0.25)
    delta = 0.02 * torch.randn(2, 50)
    place = torch.nn.Parameter(delta.clone())
    adam = torch.optim.Adam([place], lr=0.01)
    for _ in range(6):
        slope = 0.05 * torch.randn(2, 50)
        (penalty,) = torch.autograd.grad(0.25 * place.norm(dim=1).sum(), place)
        place.grad = (slope + penalty).sign()
        adam.step()
        place.data.clamp_(-0.05, 0.05)
        delta = search.update(delta, slope, torch.zeros(2), [0, 1])
        torch.testing.assert_close(delta, place.data)


def test_perturbation_and_step_shrink_with_the_ball(monkeypatch) -> None:
    search = target_search(2, eps=0.1, learning_rate=0.01, shrink=0.7)
    monkeypatch.setattr(search, "consider", lambda delta, which: [0])
    delta = torch.full((2, 50), 0.04)
    search.watch(1, delta, [0, 1])
    torch.testing.assert_close(delta[:, 0], torch.tensor([0.7 * 0.04, 0.04]))
    torch.testing.assert_close(search.radii, torch.tensor([0.7 * 0.04, 0.1]))
    moved = search.update(delta, torch.full((2, 50), 3.0), torch.zeros(2), [0, 1])
    torch.testing.assert_close((delta - moved)[:, 0], torch.tensor([0.01 * 0.28, 0.01]))


def test_a_target_of_the_closest_length_is_chosen() -> None:
    assert closest("one two three four five", TARGETS) == "Really short test string"
    assert closest("x" * 85, TARGETS).startswith("Tis a strange change")
    assert closest("x" * 200, TARGETS).startswith("The bourgeois did not care")
    assert len(TARGETS) == 2 + 13  # those of 7.3.1 and 5.3.1, and the thirteen of D.2.3
    assert closest("Let me see how can I begin", TARGETS) != "Let me see how can I begin"


def test_a_target_that_does_not_fit_is_told_in_one_line(view) -> None:
    with pytest.raises(UserError, match=r"^clip-003: 'abcdabcdabcdabcd' is too much text for a clip of"):
        CarliniWagner(("abcdabcdabcdabcd",), steps=2).run(view, [clip_of(3, words=1)])


def test_genetic_needs_queries_alone_and_gets_better_with_them() -> None:
    deaf = Function("deaf", "1", {}, 8, ctc().transcribe)
    clips = [clip_of(seed) for seed in range(4)]
    short, long = (Genetic(Bound(snr_db=-10), 4, generations=n, stop=None).run(deaf, clips) for n in (1, 25))
    assert np.mean([one.facts["wer_after"] for one in long]) > np.mean([one.facts["wer_after"] for one in short])
    assert all(one.facts["queries"] == 25 * 20 for one in long)
    assert all(snr_db(one.clip.samples, one.pcm) >= -10 for one in long)


@pytest.mark.parametrize("snr", [40, 30, 20, 10])
@pytest.mark.parametrize("odd", [0, 1])
def test_kenansville_zeroes_the_weakest_bins_down_to_the_snr(speech, snr, odd) -> None:
    clip = AttackClip("x", speech[: 32_000 + odd], "a")
    made = kenansville(clip.samples, 16_000, snr, np.random.default_rng(0))
    reached = snr_db(clip.samples, to_pcm16(made))
    assert snr <= reached < snr + 0.5
    before, after = np.abs(np.fft.rfft(clip.samples.astype(float))), np.abs(np.fft.rfft(made.astype(float)))
    floor = 30 * np.sqrt(len(made)) / 32768  # what rounding to 16 bits leaves in a bin, amply
    gone = after < np.minimum(before / 2, floor)
    kept = np.abs(after - before) < floor
    assert np.all(gone | kept | (before < floor))
    if snr <= 20:
        assert before[gone].max() <= before[~gone & (before > floor)].min() * 1.5 + floor


def test_kenansville_leaves_silence_alone() -> None:
    silent = np.zeros(1000, np.float32)
    assert np.array_equal(kenansville(silent, 16_000, 10, np.random.default_rng(0)), silent)


def test_transfer_on_one_and_on_several_proxies() -> None:
    one, other = recogniser(), recogniser(1)
    clips = [clip_of(seed) for seed in range(6)]
    attack = Transfer(Bound(snr_db=10), 4, steps=10, transcribe_every=0)
    alone = attack.run(joined([open_view(one)]), clips)
    both = attack.run(joined([open_view(one), open_view(other)]), clips)
    from speech_robust_bench.extensions.attacks.transfer import score

    transferred = [score(other, [(found.clip, found.pcm) for found in column])[0] for column in (alone, both)]
    assert transferred[1] > transferred[0]


def test_models_that_share_weights_are_marked() -> None:
    base, stranger = recogniser(), recogniser(1)
    tuned = trained(Kind, seed=2)
    tuned.frames.weight.data = base.owner.frames.weight.data.clone()  # fine-tuned, the first layer frozen
    child = Function("tuned", "2", {}, 8, tuned.transcribe, tuned)
    assert related(base, base) == "same"
    assert related(base, child) == "shared weights"
    assert related(base, stranger) is None
    kinds = ((0.5, None), (1.0, "same"), (0.1, "shared weights"))
    table = as_table([Cell(f"m{success}", "p", success, success, tie) for success, tie in kinds])
    assert [line.split()[-1] for line in table.splitlines()[1:4]] == ["50.0", "100.0=", "10.0~"]


def test_the_weight_of_the_energy_is_an_option() -> None:
    from speech_robust_bench.attacks.registry import AttackOptions, make_attack

    assert make_attack("cw", 0, AttackOptions(regularisation=1.0)).describe()["regularisation"] == 1.0
    assert make_attack("cw", 0, AttackOptions()).describe()["regularisation"] == 0.25
