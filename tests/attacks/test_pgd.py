"""PGD on small models of each loss: it does what it says, stays in its bound, and a clip does not feel its batch."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from hypothesis import given, settings
from hypothesis import strategies as st
from support.tone_configs import one_thread  # noqa: F401
from support.tones import clip_of, ctc, seq2seq, transducer

from speech_robust_bench.attacks.clips import AttackBatch, AttackClip, Bound, batches, padded, snr_db, to_float
from speech_robust_bench.attacks.pgd import Pgd
from speech_robust_bench.attacks.views.base import View
from speech_robust_bench.attacks.views.open_view import open_view
from speech_robust_bench.models.adapters.python import Function

KINDS = {"ctc": ctc, "seq2seq": seq2seq, "transducer": transducer}


def view_of(make) -> View:
    model = make()
    return open_view(Function("small", "1", {}, 8, model.transcribe, model))


@pytest.fixture(scope="module", params=KINDS)
def view(request) -> View:
    return view_of(KINDS[request.param])


@pytest.fixture(scope="module")
def clips() -> list[AttackClip]:
    return [clip_of(seed, words=1 + seed % 3) for seed in range(8)]


def test_the_small_models_know_their_language(view, clips) -> None:
    assert view.transcribe([clip.samples for clip in clips], "en") == [clip.text for clip in clips]


def test_untargeted_raises_the_loss_and_the_errors(view, clips) -> None:
    found = Pgd(Bound(snr_db=10), 4, steps=20).run(view, clips)
    assert all(one.facts["loss_after"] > one.facts["loss_before"] + 0.2 for one in found)
    assert np.mean([one.facts["wer_after"] for one in found]) > 0.5
    assert {one.facts["wer_before"] for one in found} == {0.0}
    assert all(snr_db(one.clip.samples, one.pcm) >= 10 for one in found)


def test_targeted_lowers_the_loss_of_the_target(view, clips) -> None:
    found = Pgd(Bound(snr_db=0), 4, steps=30, step=0.1, target="dc").run(view, clips)
    assert all(one.facts["loss_after"] < one.facts["loss_before"] for one in found)
    assert np.mean([one.facts["loss_after"] / one.facts["loss_before"] for one in found]) < 0.5
    assert {one.facts["target"] for one in found} == {"dc"}


@pytest.fixture
def exact(view) -> View:
    """In double precision: a hundred steps of PGD blow the rounding of single precision up to what can be seen."""
    view.module.double()
    yield view
    view.module.float()


def test_a_batch_of_8_gives_what_8_batches_of_1_give(exact, clips) -> None:
    attack = Pgd(Bound(snr_db=15), 3, steps=6, transcribe_every=3)
    singles = [one for clip in clips for one in attack.run(exact, [clip])]
    for together, alone in zip(attack.run(exact, clips), singles, strict=True):
        assert np.abs(together.pcm.astype(int) - alone.pcm).max() <= 1  # the last bit of the stored samples
        assert {**together.facts, "loss_after": 0, "loss_before": 0} == {
            **alone.facts,
            "loss_after": 0,
            "loss_before": 0,
        }
        assert together.facts["loss_after"] == pytest.approx(alone.facts["loss_after"], rel=1e-3)


def test_a_clip_that_is_done_leaves_the_others_as_they_are(exact, clips) -> None:
    patient = Pgd(Bound(snr_db=12), 3, steps=8, transcribe_every=2)
    hasty = Pgd(Bound(snr_db=12), 3, steps=8, transcribe_every=2, stop=0.5)
    for slow, quick in zip(patient.run(exact, clips), hasty.run(exact, clips), strict=True):
        assert quick.facts["steps"] <= slow.facts["steps"] == 8
        if quick.facts["steps"] == 8:
            assert np.abs(slow.pcm.astype(int) - quick.pcm).max() <= 1
        else:
            assert quick.facts["wer_after"] >= 0.5


def test_gradients_are_those_of_finite_differences(view, clips) -> None:
    model = view.module
    model.double()
    try:
        waves, lengths = padded([clip.samples for clip in clips[:3]])
        waves, batch = waves.double(), AttackBatch(lengths, [clip.text for clip in clips[:3]])
        found, slope = view.gradient(waves, batch)
        torch.manual_seed(0)
        way = torch.randn_like(waves) * (slope != 0)
        h = 1e-6
        rise = (view.values(waves + h * way, batch) - view.values(waves - h * way, batch)) / (2 * h)
        assert torch.allclose(rise, (slope * way).sum(1), rtol=1e-4)
        for row, length in zip(slope, lengths.tolist(), strict=True):
            assert torch.all(row[length:] == 0)
            assert row[:length].abs().max() > 0
        # what lies behind a clip's end is not even seen
        dirty = waves + torch.where(slope == 0, 0.5, 0.0) * (torch.arange(waves.shape[1])[None] >= lengths[:, None])
        assert torch.allclose(view.values(dirty, batch), found)
    finally:
        model.float()


def test_fgsm_is_one_full_signed_step(clips) -> None:
    view = view_of(ctc)
    (one,) = Pgd.fgsm(Bound("linf", eps=0.01)).run(view, clips[:1])
    waves, lengths = padded([clips[0].samples])
    _, slope = view.gradient(waves, AttackBatch(lengths, [clips[0].text]))
    moved = to_float(one.pcm) - clips[0].samples
    most = np.floor(0.01 * 32768) / 32768
    assert np.allclose(moved, most * np.sign(slope[0].numpy()), atol=1e-7)
    assert one.facts["steps"] == 1


def test_more_restarts_are_never_worse(clips) -> None:
    view = view_of(ctc)
    once = Pgd(Bound(snr_db=25), 2, steps=3, transcribe_every=0).run(view, clips)
    often = Pgd(Bound(snr_db=25), 2, steps=3, transcribe_every=0, restarts=4).run(view, clips)
    assert all(b.facts["wer_after"] >= a.facts["wer_after"] for a, b in zip(once, often, strict=True))
    assert all(b.facts["steps"] == 12 for b in often)


def test_it_beats_white_noise_of_the_same_snr(clips) -> None:
    view = view_of(ctc)
    found = Pgd(Bound(snr_db=12), 3, steps=20).run(view, clips)
    rng = np.random.default_rng(0)
    noisy = []
    for clip in clips:
        noise = rng.standard_normal(len(clip.samples))
        noisy.append(to_float(Bound(snr_db=12).store(clip.samples, noise / np.linalg.norm(noise) * 10)))
    from speech_robust_bench.attacks.clips import word_errors

    white = word_errors([clip.text for clip in clips], view.transcribe(noisy, "en"))
    assert np.mean([one.facts["wer_after"] for one in found]) > white.mean() + 0.4


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 400),
    st.integers(0, 2**32 - 1),
    st.sampled_from([0.0002, 0.01, 0.3, 1.0]),
    st.sampled_from([0, 10, 40, 80]),
    st.sampled_from(["l2", "linf"]),
    st.sampled_from([0.1, 1.0, 50.0]),
)
def test_stored_samples_are_never_beyond_the_bound(size, seed, loudness, snr, norm, excess) -> None:
    rng = np.random.default_rng(seed)
    clip = AttackClip("x", (loudness * rng.uniform(-1, 1, size)).astype(np.float32), "a")
    bound = Bound(norm, snr)
    delta = excess * bound.radius(clip.samples) * rng.standard_normal(size) / np.sqrt(size)
    pcm = bound.store(clip.samples, delta)
    assert bound.holds(clip.samples, pcm)
    reached = snr_db(clip.samples, pcm)
    if norm == "l2" and reached is not None:
        assert reached >= snr - 1e-9


def test_the_bound_is_used_and_not_only_kept() -> None:
    """Rounding must not eat the perturbation: a loud clip at 20 dB ends within a hundredth of a dB."""
    rng = np.random.default_rng(1)
    clip = AttackClip("x", (0.3 * rng.standard_normal(16_000)).clip(-1, 1).astype(np.float32), "a")
    bound = Bound(snr_db=20)
    delta = rng.standard_normal(16_000)
    pcm = bound.store(clip.samples, 3 * bound.radius(clip.samples) * delta / np.linalg.norm(delta))
    assert 20 <= snr_db(clip.samples, pcm) < 20.2  # clipping at full scale takes a little


def test_batches_are_of_like_length(clips) -> None:
    assert sorted(clip.id for batch in batches(clips, 3, True) for clip in batch) == [clip.id for clip in clips]
    assert all(len({len(clip.samples) for clip in batch}) == 1 for batch in batches(clips, 3, False))
    assert max(len(batch) for batch in batches(clips, 3, True)) == 3
