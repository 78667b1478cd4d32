"""Smoothing as a recogniser, and attacks that know of it."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from support.tone_configs import one_thread  # noqa: F401
from support.tones import clip_of, ctc

from speech_robust_bench.attacks.clips import AttackBatch, Bound, padded
from speech_robust_bench.attacks.pgd import Pgd
from speech_robust_bench.attacks.views.open_view import open_view
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.extensions.defences.smooth import Smooth, rover
from speech_robust_bench.extensions.defences.views import Defended, random_noise, straight_through
from speech_robust_bench.models.adapters.python import Function
from speech_robust_bench.models.enhance import a_priori_snr
from speech_robust_bench.models.interface import Described, open_model, parse_spec


def inner() -> Function:
    model = ctc()
    return Function("small", "1", {}, 8, model.transcribe, model)


def smoothed(sigma: float = 0.05, n: int = 5, enhance: str = "none") -> Smooth:
    return Smooth("smooth-small", "1", {}, 8, inner=inner(), sigma=sigma, n=n, enhance=enhance)


@pytest.mark.parametrize(
    ("texts", "winner"),
    [
        (["the cat sat"], "the cat sat"),
        (["the cat sat", "the bat sat", "the cat sat"], "the cat sat"),
        (["the cat sat", "the cat sat down", "the cat sat"], "the cat sat"),
        (["cat sat", "the cat sat", "the cat sat"], "the cat sat"),
        (["the cat", "the cat sat", "the cat sat"], "the cat sat"),
        (["", "", "noise"], ""),
        (["a x c", "a b c", "y b c", "a b z"], "a b c"),
    ],
)
def test_rover_takes_the_word_that_most_heard(texts, winner) -> None:
    assert rover(texts) == winner


def test_enhancement_takes_noise_away_and_leaves_speech() -> None:
    clip = clip_of(3).samples
    noise = 0.05 * np.random.default_rng(0).standard_normal(len(clip)).astype(np.float32)
    better = a_priori_snr(clip + noise, 0.05)
    assert better.shape == clip.shape
    assert np.sum((better - clip) ** 2) < 0.4 * np.sum(noise**2)
    assert np.abs(a_priori_snr(clip, 1e-6) - clip).max() < 1e-3


def test_a_smoothed_recogniser_hears_the_same_in_any_batch() -> None:
    clips = [clip_of(seed).samples for seed in range(4)]
    recogniser = smoothed()
    together = recogniser.transcribe(clips, 16_000, "en")
    assert together == [recogniser.transcribe([clip], 16_000, "en")[0] for clip in clips]
    assert together == [clip_of(seed).text for seed in range(4)]


def test_the_spec_of_a_smoothed_model() -> None:
    recogniser = open_model("smooth:python:support.tones:Ctc?sigma=0.02&n=3&enhance=asnr")
    assert (recogniser.sigma, recogniser.n, recogniser.enhance) == (0.02, 3, "asnr")
    assert recogniser.transcribe([clip_of(1).samples], 16_000, "en") == [clip_of(1).text]
    assert parse_spec("smooth:hf:openai/whisper-tiny.en?n=4").folder == "smooth-whisper-tiny.en"
    with pytest.raises(UserError, match="no enhancer 'asn'; did you mean asnr"):
        open_model("smooth:python:support.tones:Ctc?enhance=asn")
    with pytest.raises(UserError, match="needs a recogniser"):
        open_model("smooth")
    with pytest.raises(UserError, match="no vote 'rovr'; did you mean rover"):
        open_model("smooth:python:support.tones:Ctc?vote=rovr")
    with pytest.raises(UserError, match="vote=logits needs a CTC model"):
        open_model("smooth:python:support.tones:Ctc?vote=logits")
    with pytest.raises(UserError, match="removes white noise"):
        open_model("smooth:python:support.tones:Ctc?noise=mad&enhance=asnr")


def test_votes_differ_where_words_do() -> None:
    class Fixed(Described):
        def transcribe(self, clips, rate, language):
            return (["a b x", "a y c", "z b c", "z b c"] * len(clips))[: len(clips)]

    def vote(kind: str) -> str:
        smooth = Smooth("s", "1", {}, 4, inner=Fixed("fixed", "1", {}, 4), n=4, vote=kind)
        return smooth.transcribe([clip_of(0).samples], 16_000, "en")[0]

    assert vote("majority") == "z b c"
    assert vote("rover") == "a b c"


def test_the_vote_over_logits_is_the_text_of_their_mean(tmp_path) -> None:
    pytest.importorskip("transformers")
    from support.small_models import LAYER, short_ctc_folder

    folder = short_ctc_folder(tmp_path, "Wav2Vec2", **LAYER)
    recogniser = open_model(f"smooth:hf:{folder}?device=cpu?sigma=0.05&n=3&vote=logits")
    clip, processor = clip_of(1).samples, recogniser.inner.processor
    with torch.inference_mode():
        copies = [processor(copy, sampling_rate=16_000, return_tensors="pt") for copy in recogniser.copies(clip)]
        logits = torch.stack([recogniser.inner.model(**copy).logits[0] for copy in copies]).mean(0)
    by_hand = processor.decode(logits.argmax(-1).tolist()).strip()
    assert recogniser.transcribe([clip], 16_000, "en") == [by_hand]


@pytest.mark.parametrize("enhance", ["mp3", "quantise"])
def test_older_defences_and_the_attack_that_knows_of_them(enhance) -> None:
    recogniser = smoothed(sigma=0.0, n=1, enhance=enhance)
    clips = [clip_of(seed) for seed in range(3)]
    assert recogniser.transcribe([clip.samples for clip in clips], 16_000, "en") == [clip.text for clip in clips]
    view = open_view(recogniser)
    assert view.draws == 1  # nothing to average over
    found = Pgd(Bound(snr_db=10), 4, steps=10, transcribe_every=5).run(view, clips)
    assert np.mean([one.facts["success"] for one in found]) > 0.5
    if enhance == "quantise":
        assert np.unique(np.round(next(recogniser.copies(clips[0].samples)) * 128) / 128).size <= 257


def test_a_step_without_derivatives_has_a_useful_gradient() -> None:
    """Rounding to 6 bits: its derivative is zero, straight through it is not, and following it raises the loss."""
    view = open_view(inner())
    clip = clip_of(2)
    coarse = Defended(
        view.recogniser, inner=view, transforms=[straight_through(lambda x: np.round(x * 32) / 32)], draws=1
    )
    waves, lengths = padded([clip.samples])
    batch = AttackBatch(lengths, [clip.text], "en")
    loss, slope = coarse.gradient(waves, batch)
    assert slope.abs().max() > 0
    rounded = torch.from_numpy(np.round(clip.samples * 32) / 32)[None]
    assert torch.allclose(loss, view.values(rounded, batch))
    step = Bound(snr_db=10).step(slope, torch.tensor([Bound(snr_db=10).radius(clip.samples)]))
    assert coarse.values(waves + step, batch) > loss + 0.1


def test_the_gradient_is_the_mean_over_the_draws() -> None:
    view = open_view(inner())
    clip = clip_of(2)
    waves, lengths = padded([clip.samples])

    def batch() -> AttackBatch:
        return AttackBatch(lengths, [clip.text], "en", [clip.rng("x", 0)])

    defended = Defended(view.recogniser, inner=view, transforms=[random_noise(0.05)], draws=3)
    _, mean = defended.gradient(waves, batch())
    rng = clip.rng("x", 0)
    noises = [0.05 * rng.standard_normal(len(clip.samples), np.float32) for _ in range(3)]
    each = [view.gradient(waves + torch.from_numpy(noise), batch())[1] for noise in noises]
    assert torch.allclose(mean, torch.stack(each).mean(0), rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("enhance", ["none", "asnr"])
def test_the_adaptive_attack_beats_the_naive_one(enhance) -> None:
    recogniser = smoothed(sigma=0.08, n=5, enhance=enhance)
    clips = [clip_of(seed) for seed in range(6)]
    judge = open_view(recogniser, eot=16)
    losses = {}
    for name, draws in (("naive", 0), ("adaptive", 6)):
        found = Pgd(Bound(snr_db=14), 3, steps=15, transcribe_every=0).run(open_view(recogniser, eot=draws), clips)
        waves, lengths = padded([one.pcm.astype(np.float32) / 32768 for one in found])
        rngs = [clip.rng("judge", 0) for clip in clips]
        losses[name] = judge.values(waves, AttackBatch(lengths, [clip.text for clip in clips], "en", rngs)).mean()
    assert losses["adaptive"] > 1.1 * losses["naive"]
