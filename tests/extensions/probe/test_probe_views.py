"""Probes under attack: the model gets the recogniser's own input, gradients are right, and PGD beats white noise."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
from support.small_models import CONV
from support.tone_configs import one_thread  # noqa: F401
from support.tones import clip_of, text_of, tones

from speech_robust_bench.attacks.clips import AttackBatch, padded
from speech_robust_bench.attacks.views.open_view import open_view
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.extensions.probe.head import Letters, Probe, ProbeModel
from speech_robust_bench.extensions.probe.training import HeadSettings, ctc_loss, new_head
from speech_robust_bench.extensions.probe.upstream import open_upstream

RATE = 16_000


def encoder_folder(place, kind):
    torch.manual_seed(3)
    if kind == "whisper":
        transformers.WhisperFeatureExtractor(feature_size=20, chunk_length=2).save_pretrained(place)
        config = transformers.WhisperConfig(
            num_mel_bins=20, max_source_positions=100, d_model=16, encoder_layers=1, decoder_layers=1,
            encoder_attention_heads=2, decoder_attention_heads=2, encoder_ffn_dim=32, decoder_ffn_dim=32,
        )  # fmt: skip
        transformers.WhisperModel(config).save_pretrained(place)
    else:
        transformers.Wav2Vec2FeatureExtractor(return_attention_mask=True, do_normalize=True).save_pretrained(place)
        config = transformers.Wav2Vec2Config(
            hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=64, num_feat_extract_layers=2,
            num_conv_pos_embeddings=16, num_conv_pos_embedding_groups=4, feat_extract_norm="layer",
            do_stable_layer_norm=True, **CONV,
        )  # fmt: skip
        transformers.Wav2Vec2Model(config).save_pretrained(place)
    return f"hf:{place}"


@pytest.fixture(params=["fbank", "whisper", "wav2vec2"])
def probe(request, tmp_path):
    upstream = open_upstream("fbank" if request.param == "fbank" else encoder_folder(tmp_path, request.param))
    letters = Letters(" abcd")
    torch.manual_seed(0)
    head = new_head(HeadSettings("small", units=8), upstream, letters).eval()
    return Probe("probe", None, model=ProbeModel(upstream, head), processor=upstream.extractor, letters=letters)


def test_the_model_gets_what_it_gets_when_it_transcribes(probe):
    view = open_view(probe)
    clips = [clip_of(1), clip_of(2)] if view.pads_safely else [clip_of(1)]
    view.check(clips)
    waves, lengths = padded([clip.samples for clip in clips])
    texts = view.read(waves, AttackBatch(lengths, [clip.text for clip in clips], "en", []))
    assert texts == view.transcribe([clip.samples for clip in clips], "en")


def test_gradients_are_those_of_finite_differences(probe):
    view = open_view(probe)
    view.model.double()
    for name, buffer in view.model.encoder.named_buffers():
        assert buffer.dtype in (torch.float64, torch.int64, torch.bool), name
    waves, lengths = padded([tones("abc", seed=1)])
    waves = waves.double()
    batch = AttackBatch(lengths, ["abc"], "en", [])
    _, slope = view.gradient(waves, batch)
    direction = torch.randn(waves.shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    with torch.no_grad():
        ends = [view.losses(waves + sign * 1e-6 * direction, batch)[0] for sign in (1, -1)]
    assert float((slope * direction).sum()) == pytest.approx(float(ends[0] - ends[1]) / 2e-6, rel=1e-2)


def test_gradient_steps_do_more_than_noise_of_the_same_size():
    """On a probe that has learnt the tones; a step of the sign, as large as white noise at 25 dB."""
    upstream = open_upstream("fbank")
    letters = Letters(" abcd")
    torch.manual_seed(0)
    head = new_head(HeadSettings("small", units=16), upstream, letters)
    optimiser = torch.optim.Adam(head.parameters(), 0.02)
    for step in range(90):
        texts = [text_of(1000 + 8 * step + i) for i in range(8)]
        states = [upstream.states([tones(text, i, 0.03)])[0] for i, text in enumerate(texts)]
        loss = ctc_loss(*head(states), [letters.encode(text) for text in texts])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    recogniser = Probe(
        "probe", None, model=ProbeModel(upstream, head).eval(), processor=upstream.extractor, letters=letters
    )
    view = open_view(recogniser)
    clip = clip_of(3)
    waves, lengths = padded([clip.samples])
    batch = AttackBatch(lengths, [clip.text], "en", [])
    size = float(waves.square().mean().sqrt()) * 10 ** (-25 / 20)
    before, slope = view.gradient(waves, batch)
    assert float(before) < 0.5  # it has learnt them
    attacked = view.values(waves + size * slope.sign(), batch)
    noise = torch.from_numpy(np.random.default_rng(0).standard_normal(waves.shape).astype(np.float32))
    noisy = view.values(waves + size * noise, batch)
    assert float(attacked - before) > 3 * max(0.0, float(noisy - before)) + 0.1


def test_a_transcript_that_it_cannot_write_is_refused(probe):
    view = open_view(probe)
    assert view.spell("Abc, d.") == "abc d"
    with pytest.raises(UserError, match="cannot write: x"):
        view.spell("axb")
    with pytest.raises(UserError, match="empty"):
        view.spell("...")
