"""Views of transformers models: the input of the model is the recogniser's own, and gradients are right.

Small models with random weights; Whisper tiny.en with OpenAI's where it is installed.
"""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
from support.small_models import ATTACKED_MODELS, LAYER, short_ctc_folder, whisper_folder, whisper_view
from support.tone_configs import one_thread  # noqa: F401
from support.whisper_weights import default_folder

from speech_robust_bench.attacks.clips import AttackBatch, AttackClip, Bound, padded
from speech_robust_bench.attacks.pgd import Pgd
from speech_robust_bench.attacks.universal import Perturbation
from speech_robust_bench.attacks.views.base import View
from speech_robust_bench.attacks.views.open_view import open_view
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.extensions.attacks.language import Language, LanguageFit, LanguageUniversal, LanguageView
from speech_robust_bench.models.interface import open_model

RATE = 16_000


@pytest.fixture(scope="module", params=ATTACKED_MODELS)
def spec(request, tmp_path_factory) -> str:
    return f"hf:{ATTACKED_MODELS[request.param](tmp_path_factory.mktemp('model'))}"


@pytest.fixture(scope="module")
def clips() -> list[AttackClip]:
    """Noises with the rhythm of syllables, 0.05 to 0.9 s; one is shorter than the shortest that the models take."""
    rng = np.random.default_rng(0)
    sizes = [int(RATE * seconds) for seconds in (0.05, 0.5, 0.7, 0.9)]
    beat = [np.abs(np.sin(np.arange(size) / RATE * 12)) for size in sizes]
    signals = [(0.1 * rng.standard_normal(len(wave)) * wave).astype(np.float32) for wave in beat]
    return [AttackClip(f"c{i}", signal, "the fox", "en", "noise") for i, signal in enumerate(signals)]


def some(view: View, clips: list[AttackClip]) -> list[AttackClip]:
    """Clips that may share a batch."""
    return clips if view.pads_safely else clips[1:2]


def test_the_model_is_given_what_transcribing_gives_it(spec, clips) -> None:
    view = open_view(open_model(f"{spec}?device=cpu"))
    view.check(some(view, clips))
    assert view.difference(some(view, clips)) < 1e-4
    for clip in clips:
        assert view.difference([clip]) < 1e-4


def test_another_preprocessing_is_refused(spec, clips) -> None:
    view = open_view(open_model(f"{spec}?device=cpu"))
    masked, normalised = view.extractor.return_attention_mask, view.extractor.do_normalize
    view.extractor = type(view.extractor)(return_attention_mask=masked, do_normalize=not normalised)
    with pytest.raises(UserError, match="differs from the recogniser's own"):
        view.check(clips[1:2])


def test_gradients_agree_with_finite_differences(spec, clips) -> None:
    view = open_view(open_model(f"{spec}?device=cpu&dtype=float64"))
    chosen = some(view, clips[1:])
    waves, lengths = padded([clip.samples for clip in chosen])
    waves, batch = waves.double(), AttackBatch(lengths, [view.spell(clip.text) for clip in chosen], "en")
    found, slope = view.gradient(waves, batch)
    torch.manual_seed(0)
    way = torch.randn_like(waves)
    h = 1e-6
    rise = (view.values(waves + h * way, batch) - view.values(waves - h * way, batch)) / (2 * h)
    assert torch.allclose(rise, (slope * way).sum(1), rtol=1e-3, atol=1e-6)
    for row, length in zip(slope, lengths.tolist(), strict=True):
        assert row[:length].abs().max() > 0
        assert torch.all(row[length:] == 0)
    for index, clip in enumerate(chosen):  # and the batch is what its clips are alone
        alone = torch.from_numpy(clip.samples)[None].double()
        loss, own = view.gradient(alone, batch.select([index]))
        assert torch.allclose(loss[0], found[index], rtol=1e-6)
        assert torch.allclose(own[0], slope[index, : len(clip.samples)], rtol=1e-4, atol=1e-9)


def test_ctc_reads_through_the_view_what_it_transcribes(tmp_path, clips) -> None:
    view = open_view(open_model(f"hf:{short_ctc_folder(tmp_path, 'Wav2Vec2', **LAYER)}?device=cpu"))
    waves, lengths = padded([clip.samples for clip in clips])
    read = view.read(waves, AttackBatch(lengths, [""] * len(clips), "en"))
    assert [text.strip() for text in read] == view.transcribe([clip.samples for clip in clips], "en")
    assert any(read)


def test_transcripts_are_written_as_the_model_writes(tmp_path) -> None:
    view = open_view(open_model(f"hf:{short_ctc_folder(tmp_path, 'Wav2Vec2', **LAYER)}?device=cpu"))
    assert view.spell("Hello, the 'fox'.") == "HELLO THE FOX"
    with pytest.raises(UserError, match="cannot write: é 4"):
        view.spell("café 4")
    with pytest.raises(UserError, match="transcript is empty"):
        view.spell(" ... ")


def slopes_agree(view: View, plain: View, clips: list[AttackClip]) -> float:
    """The least cosine between the gradients of two views."""
    waves, lengths = padded([clip.samples for clip in clips])
    batch = AttackBatch(lengths, [plain.spell(clip.text) for clip in clips], "en")
    ours, theirs = (one.gradient(waves, batch)[1].float() for one in (view, plain))
    return float(torch.cosine_similarity(ours, theirs).min())


def test_mixed_precision_keeps_the_direction_and_the_bound(tmp_path, clips) -> None:
    spec = f"hf:{short_ctc_folder(tmp_path, 'Wav2Vec2', **LAYER)}?device=cpu"
    mixed = open_view(open_model(spec), precision=torch.bfloat16)
    assert 0.9 < slopes_agree(mixed, open_view(open_model(spec)), clips[1:]) < 1 - 1e-6  # near, but not the same sums
    bound = Bound(snr_db=20)
    for one in Pgd(bound, 3, steps=5, transcribe_every=0).run(mixed, clips[1:]):
        assert one.facts["loss_after"] > one.facts["loss_before"]
        assert bound.holds(one.clip.samples, one.pcm)


def test_a_compiled_model_has_the_gradients_of_the_plain_one(tmp_path, clips, monkeypatch) -> None:
    # traced and differentiated as always, but not handed to the C++ compiler, which takes minutes
    monkeypatch.setattr(torch, "compile", functools.partial(torch.compile, backend="aot_eager"))
    spec = f"hf:{short_ctc_folder(tmp_path, 'Wav2Vec2', **LAYER)}?device=cpu"
    compiled = open_view(open_model(spec))
    compiled.compile()
    assert slopes_agree(compiled, open_view(open_model(spec)), clips[1:]) > 1 - 1e-5


@pytest.fixture(scope="module")
def small_whisper(tmp_path_factory) -> Path:
    return whisper_folder(tmp_path_factory.mktemp("whisper"))


def test_whisper_has_the_same_features_and_right_gradients(small_whisper, clips) -> None:
    view = whisper_view(small_whisper, None)
    assert view.difference(clips) < 1e-4
    exact = whisper_view(small_whisper, None, torch.float64)
    waves, lengths = padded([clip.samples for clip in clips[1:3]])
    waves, batch = waves.double(), AttackBatch(lengths, ["the fox", "a dog"], "en")
    _, slope = exact.gradient(waves, batch)
    torch.manual_seed(0)
    way, h = torch.randn_like(waves), 1e-7
    rise = (exact.values(waves + h * way, batch) - exact.values(waves - h * way, batch)) / (2 * h)
    assert torch.allclose(rise, (slope * way).sum(1), rtol=1e-3, atol=1e-6)
    assert torch.all(slope[0, lengths[0] :] == 0)


def test_language_confusion_lowers_the_loss_of_the_language(small_whisper, clips) -> None:
    view = whisper_view(small_whisper, "auto")
    first = LanguageView.of_whisper(view, "sr").detect([clip.samples for clip in clips])
    target = next(code for code in ("en", "es", "sr") if code not in first[1:])
    found = Language(Bound(snr_db=0), target, steps=6).run(view, clips[1:])
    assert all(one.facts["loss_after"] < one.facts["loss_before"] for one in found)
    assert [one.facts["success"] for one in found] == [float(one.facts["language_after"] == target) for one in found]
    assert {one.facts["language_before"] for one in found} == set(first[1:])
    fit = LanguageFit(10, target, epochs=4, learning_rate=0.2)(view, clips[1:3])
    (held_out,) = LanguageUniversal(Bound(snr_db=0), fit).run(view, clips[3:])
    waves, lengths = padded([clips[3].samples])
    before = LanguageView.of_whisper(view, target).values(waves, AttackBatch(lengths, [""]))
    moved = torch.from_numpy(held_out.pcm.astype(np.float32) / 32768)[None]
    assert LanguageView.of_whisper(view, target).values(moved, AttackBatch(lengths, [""])) < before
    with pytest.raises(UserError, match="language=auto"):
        LanguageView.of_whisper(whisper_view(small_whisper, None), "sr")
    with pytest.raises(UserError, match="knows no language 'xx'"):
        LanguageView.of_whisper(view, "xx")


HERTZ = {"en": 600, "es": 1500, "sr": 3000}


def spoken(language: str, seed: int) -> AttackClip:
    """Half a second or more in a language of which only the pitch is known."""
    rng = np.random.default_rng(seed)
    t = np.arange(int(RATE * rng.uniform(0.5, 0.9))) / RATE
    wave = 0.2 * np.sin(2 * np.pi * HERTZ[language] * rng.uniform(0.9, 1.1) * t) * np.abs(np.sin(12 * t))
    return AttackClip(
        f"{language}{seed}", (wave + 0.02 * rng.standard_normal(len(t))).astype(np.float32), "a", None, "x"
    )


@pytest.fixture(scope="module")
def polyglot(small_whisper) -> View:
    """The small Whisper, after it has learnt to tell its three languages apart."""
    view = whisper_view(small_whisper, "auto")
    view.model.requires_grad_(True)
    optimiser = torch.optim.Adam(view.model.parameters(), 0.005)
    learner, codes = LanguageView.of_whisper(view, "en"), torch.arange(3).repeat(4)
    for step in range(30):
        waves, lengths = padded(
            [spoken(list(HERTZ)[code], 100 + 12 * step + i).samples for i, code in enumerate(codes)]
        )
        optimiser.zero_grad()
        torch.nn.functional.cross_entropy(learner._scores(waves, AttackBatch(lengths, [""] * 12)), codes).backward()
        optimiser.step()
    view.model.requires_grad_(False)
    return view


def test_language_confusion_makes_english_serbian(polyglot) -> None:
    clips = [spoken("en", seed) for seed in range(6)]
    attack = Language(Bound(snr_db=25), "sr")
    found = attack.run(polyglot, clips)
    assert [one.facts["language_before"] for one in found] == ["en"] * 6
    assert sum(one.facts["language_after"] == "sr" for one in found) >= 5
    noise = [clip.samples + attack.bound.draw(clip.samples, np.random.default_rng(1)) for clip in clips]
    assert LanguageView.of_whisper(polyglot, "sr").detect(noise) == ["en"] * 6


def test_one_perturbation_makes_held_out_english_serbian(polyglot, tmp_path) -> None:
    dev, test = [spoken("en", seed) for seed in range(10, 14)], [spoken("en", seed) for seed in range(6)]
    settings = {"epochs": 6, "learning_rate": 0.1, "seconds": 1.0}
    seen: list[float] = []
    fit = LanguageFit(10, "sr", **settings)(polyglot, dev, seen.append, tmp_path / "fit.npz")
    assert seen[-1] < seen[0]
    noise = Perturbation(np.random.default_rng(0).permutation(fit.samples), fit.about)
    found, random = (LanguageUniversal(Bound(snr_db=6), one).run(polyglot, test) for one in (fit, noise))
    assert [one.facts["language_before"] for one in found] == ["en"] * 6
    assert sum(one.facts["language_after"] == "sr" for one in found) >= 5
    assert [one.facts["language_after"] for one in random] == ["en"] * 6
    LanguageFit(10, "sr", **settings)(polyglot, dev, seen.append, tmp_path / "fit.npz")
    assert len(seen) == 6  # it was done already


@pytest.fixture(scope="module")
def tiny_en() -> View:
    if not (default_folder() / "config.json").is_file():
        pytest.skip("python -m tests.support.whisper_weights")
    return open_view(open_model(f"hf:{default_folder()}?device=cpu"))


def test_the_view_of_whisper_tiny_en_agrees_and_falls_to_pgd(tiny_en, speech) -> None:
    clip = AttackClip("speech", speech[: 3 * RATE], "", "en", "human")
    assert tiny_en.difference([clip]) < 1e-4
    (heard,) = tiny_en.transcribe([clip.samples], "en")
    assert len(heard.split()) > 3
    waves, lengths = padded([clip.samples])
    assert tiny_en.read(waves, AttackBatch(lengths, [heard], "en")) == [heard]
    clip = AttackClip("speech", clip.samples, heard, "en", "human")
    (found,) = Pgd(Bound(snr_db=20), 3, steps=4, transcribe_every=4).run(tiny_en, [clip])
    assert found.facts["loss_after"] > found.facts["loss_before"] + 1
    assert found.facts["wer_after"] >= 0.5
