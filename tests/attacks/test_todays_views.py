"""Views of the models of today on tiny ones: Parakeet's three heads, Canary, Moonshine Streaming, and language models.

The input and the loss are the model's own, and the gradients are right.
"""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
from support import tiny_recognisers
from support.tone_configs import one_thread  # noqa: F401

from speech_robust_bench.attacks.clips import AttackBatch, AttackClip, Bound, padded
from speech_robust_bench.attacks.pgd import Pgd
from speech_robust_bench.attacks.views.open_view import open_view
from speech_robust_bench.attacks.views.transformers_models import (
    AudioLanguageModelView,
    Seq2SeqView,
    TransducerView,
)
from speech_robust_bench.models.interface import open_model

RATE = 16_000


HEADS = ["parakeet_ctc", "parakeet_rnnt", "parakeet_tdt"]
WITH_DECODER = ["canary", "moonshine_streaming"]
LANGUAGE_MODELS = ["granite_speech", "qwen3_asr", "voxtral"]


@pytest.fixture(scope="module", params=HEADS + WITH_DECODER + LANGUAGE_MODELS)
def view(request, tmp_path_factory):
    folder = tiny_recognisers.save(request.param, tmp_path_factory.mktemp("model"))
    with pytest.MonkeyPatch.context() as patch:
        if request.param in tiny_recognisers.WITHOUT_FILES:
            processor = tiny_recognisers.MAKERS[request.param]()[1]
            patch.setattr(transformers.AutoProcessor, "from_pretrained", lambda *_, **__: processor)
        return open_view(open_model(f"hf:{folder}?device=cpu"))


@pytest.fixture(scope="module")
def clips() -> list[AttackClip]:
    rng = np.random.default_rng(0)
    sizes = [int(RATE * seconds) for seconds in (0.05, 0.8, 1.1)]
    signals = [(0.1 * rng.standard_normal(n) * np.abs(np.sin(np.arange(n) / 900))).astype(np.float32) for n in sizes]
    return [AttackClip(f"c{i}", signal, "the fox", "en", "noise") for i, signal in enumerate(signals)]


def test_the_model_is_given_what_transcribing_gives_it(view, clips) -> None:
    view.check(clips[1:] if view.pads_safely else clips[1:2])
    assert all(view.difference([clip]) < 1e-3 for clip in clips)


def batch_of(view, clips):
    waves, lengths = padded([clip.samples for clip in clips])
    return waves, AttackBatch(lengths, [view.spell(clip.text) for clip in clips], "en")


def test_the_loss_is_that_of_transformers(view, clips) -> None:
    """transformers' own CTC and TDT losses; its RNN-T loss needs torchaudio, and the recursion is tested by itself."""
    if type(view.model).__name__ == "ParakeetForRNNT":
        pytest.skip("transformers' RNN-T loss needs torchaudio")
    waves, batch = batch_of(view, clips[1:2])
    tokens = torch.tensor([view.tokens(batch.texts[0])])
    given = view.inputs(waves, batch.lengths)
    if isinstance(view, AudioLanguageModelView):
        request = view.recogniser._request([clips[1].samples], "en")
        prompt, told = request["input_ids"], torch.tensor([[*tokens[0].tolist(), view.end]])
        request["input_ids"] = torch.cat([prompt, told], 1)
        request["attention_mask"] = torch.ones_like(request["input_ids"])
        labels = torch.cat([torch.full_like(prompt, -100), told], 1)
        theirs = view.model(**request, labels=labels).loss
    elif isinstance(view, Seq2SeqView):  # told the prompt and the tokens before, it is asked for each next one
        prompt, tokens = view.prompt("en"), torch.tensor([[*view.tokens(batch.texts[0]), view.end]])
        told = torch.tensor([[*prompt, *tokens[0, :-1].tolist()]])
        labels = torch.full_like(told, -100)
        labels[:, len(prompt) - 1 :] = tokens
        theirs = view.model(**given, decoder_input_ids=told, labels=labels).loss
    elif type(view.model).__name__ == "ParakeetForCTC":
        theirs = view.model(**given, labels=tokens).loss
    else:
        blank = torch.full((1, 1), view.model.config.blank_token_id)
        theirs = view.model(
            **given, decoder_input_ids=torch.cat([blank, tokens], 1), labels=tokens, output_attention_mask=True
        ).loss
    assert float(view.values(waves, batch)[0]) == pytest.approx(float(theirs), rel=1e-4)


def test_gradients_agree_with_finite_differences(view, clips) -> None:
    waves, batch = batch_of(view, clips[1:] if view.pads_safely else clips[1:2])
    view.model.double()
    try:
        losses, slope = view.gradient(waves.double(), batch)
        assert torch.isfinite(losses).all()
        size = slope.norm(dim=1)
        # Along the gradient itself, so far that the loss changes by more than the single precision of some layers.
        step = (5e-5 / size)[:, None]
        up, down = (view.values(waves.double() + sign * step * slope / size[:, None], batch) for sign in (1, -1))
        assert (up - down).tolist() == pytest.approx([1e-4] * len(size), rel=0.02)
        for row, length in zip(slope, batch.lengths.tolist(), strict=True):
            assert not row[length:].any()
            assert row[:length].abs().sum() > 0
    finally:
        view.model.float()


def test_margins_are_of_the_scores_that_are_chosen_from(view, clips) -> None:
    waves, batch = batch_of(view, clips[1:2])
    right = view.right_tokens(waves, batch)
    chosen = view.token_scores(waves, batch, right)[0, : len(right[0])].log_softmax(-1).gather(1, right[0][:, None])
    if isinstance(view, TransducerView):  # the best alignment has a part of the probability of all
        counts = len(view.tokens(batch.texts[0]))
        assert float(chosen.sum()) <= -float(view.values(waves, batch)[0]) * counts + 1e-4
    elif isinstance(view, Seq2SeqView | AudioLanguageModelView):
        assert -float(chosen.mean()) == pytest.approx(float(view.values(waves, batch)[0]), rel=1e-4)
    else:
        assert len(right[0]) == int(view.logits(waves, batch)[1][0])


def test_pgd_raises_the_loss_inside_its_bound(view, clips) -> None:
    bound = Bound("l2", 20)
    attacked = Pgd(bound, 3, steps=12, transcribe_every=0).run(view, clips[1:2])
    assert attacked[0].facts["loss_after"] > attacked[0].facts["loss_before"]
    assert bound.holds(clips[1].samples, attacked[0].pcm)
