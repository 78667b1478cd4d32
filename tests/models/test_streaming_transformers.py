"""transformers' own streaming models, tiny and random, fed live: what `generate` gives when it is called by hand."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers", minversion="5.20")

import tiny_recognisers  # noqa: E402

from srb.core.errors import UserError  # noqa: E402
from srb.models.interface import open_model  # noqa: E402
from srb.models.streaming.replay import Pace, replay  # noqa: E402
from srb.models.streaming.streamed import streamed  # noqa: E402

RATE = 16_000


@pytest.fixture(scope="module")
def nemotron(tmp_path_factory):
    folder = tiny_recognisers.save("nemotron_asr_streaming", tmp_path_factory.mktemp("nemotron"))
    return open_model(f"hf:{folder}?device=cpu&threads=1")


def by_hand(recogniser, clip):
    """The loop of transformers' documentation, over audio that is all there, with silence up to a whole chunk."""
    model, processor = recogniser.model, recogniser.processor
    extractor = processor.feature_extractor

    def chunks():
        frames = processor.num_mel_frames_first_audio_chunk
        first = processor.num_samples_first_audio_chunk
        audio = np.concatenate((clip, np.zeros(2 * processor.num_samples_per_audio_chunk, np.float32)))
        more = {"sampling_rate": RATE, "is_streaming": True, "return_tensors": "pt"}
        yield processor(audio[:first], is_first_audio_chunk=True, **more)["input_features"][:, :frames]
        start = frames * extractor.hop_length - extractor.win_length // 2
        while start + extractor.win_length // 2 < len(clip):
            part = audio[start : start + processor.num_samples_per_audio_chunk]
            mel = processor(part, is_first_audio_chunk=False, **more)["input_features"]
            yield mel[:, : processor.num_mel_frames_per_audio_chunk]
            frames += processor.num_mel_frames_per_audio_chunk
            start = frames * extractor.hop_length - extractor.win_length // 2

    with torch.inference_mode():
        tokens = model.generate(input_features=chunks(), num_lookahead_tokens=processor.default_num_lookahead_tokens)
    kept = [token for token in tokens.sequences[0].tolist() if token != processor.blank_token_id]
    return processor.decode(kept, skip_special_tokens=True).strip()


def clip_of(seconds, seed=3):
    rng = np.random.Generator(np.random.PCG64(seed))
    rhythm = np.sin(np.arange(int(seconds * RATE)) / 2000)
    return (rng.normal(0, 0.1, int(seconds * RATE)) * rhythm).astype(np.float32)


def test_a_stream_gives_what_generate_gives_over_the_whole_clip_whatever_the_chunks(nemotron):
    clip = clip_of(2.7)
    wanted = by_hand(nemotron, clip)
    assert len(set(wanted)) > 1, "the model writes one letter: the test would show nothing"
    for chunk_ms in (60, 500):
        timeline = replay(nemotron.stream(RATE, "en"), clip, RATE, Pace(chunk_ms))
        assert timeline.text == wanted
        texts = [timed.event.text for timed in timeline.events]
        assert len(set(texts)) > 1  # it writes while it listens
        assert all(later.startswith(earlier) for earlier, later in pairwise(texts))


@pytest.mark.parametrize("seconds", [0.0, 0.05])
def test_short_and_empty_streams_end(nemotron, seconds):
    timeline = replay(nemotron.stream(RATE, "en"), clip_of(seconds), RATE)
    assert timeline.events[-1].event.final


def test_an_error_of_the_model_is_that_of_the_clip(nemotron, monkeypatch):
    monkeypatch.setattr(nemotron.model, "generate", lambda **_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        replay(nemotron.stream(RATE, "en"), clip_of(1.0), RATE)


def test_a_model_that_transformers_cannot_feed_says_what_to_put_in_front(tmp_path):
    folder = tiny_recognisers.save("moonshine_streaming", tmp_path / "moonshine")
    with pytest.raises(UserError, match="live:"):
        streamed(open_model(f"hf:{folder}?device=cpu"), Pace())
