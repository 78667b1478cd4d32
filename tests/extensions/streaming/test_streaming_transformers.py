"""transformers' own streaming models, tiny and random, fed live: what `generate` gives when it is called by hand."""

from __future__ import annotations

from itertools import islice, pairwise
from types import SimpleNamespace

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers", minversion="5.20")

from support import tiny_recognisers

from speech_robust_bench.core.errors import UserError
from speech_robust_bench.extensions.streaming.replay import StreamOptions, replay, streamed
from speech_robust_bench.models.adapters import hf
from speech_robust_bench.models.interface import open_model

RATE = 16_000
STREAMING = ("nemotron_asr_streaming", "nemotron3_5_asr", "voxtral_realtime")


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """A tiny model by its type, opened once; a processor that has no files is handed over in memory."""
    opened = {}

    def get(name):
        if name not in opened:
            folder = tiny_recognisers.save(name, tmp_path_factory.mktemp(name))
            with pytest.MonkeyPatch.context() as patch:
                if name in tiny_recognisers.WITHOUT_FILES:
                    torch.manual_seed(5)
                    processor = tiny_recognisers.MAKERS[name]()[1]
                    patch.setattr(transformers.AutoProcessor, "from_pretrained", lambda *_, **__: processor)
                opened[name] = open_model(f"hf:{folder}?device=cpu&threads=1")
        return opened[name]

    return get


@pytest.fixture(scope="module")
def nemotron(tiny):
    return tiny("nemotron_asr_streaming")


def voxtral_by_hand(recogniser, clip):
    """The loop of transformers' documentation, over the audio and the silence after it."""
    model, processor = recogniser.model, recogniser.processor
    extractor, more = processor.feature_extractor, {"sampling_rate": RATE, "is_streaming": True, "return_tensors": "pt"}
    after = processor.num_right_pad_tokens * processor.raw_audio_length_per_tok
    audio = np.concatenate((clip, np.zeros(after, np.float32)))
    first = processor(audio[: processor.num_samples_first_audio_chunk], is_first_audio_chunk=True, **more)

    def chunks():
        yield first["input_features"]
        frames = processor.num_mel_frames_first_audio_chunk
        start = frames * extractor.hop_length - extractor.win_length // 2
        while (end := start + processor.num_samples_per_audio_chunk) <= len(audio):
            yield processor(audio[start:end], is_first_audio_chunk=False, **more)["input_features"]
            frames += processor.audio_length_per_tok
            start = frames * extractor.hop_length - extractor.win_length // 2

    with torch.inference_mode():
        tokens = model.generate(
            input_ids=first["input_ids"], input_features=chunks(), num_delay_tokens=first["num_delay_tokens"]
        )
    return processor.decode(tokens[0, first["input_ids"].shape[1] :], skip_special_tokens=True).strip()


def by_hand(recogniser, clip, **told):
    """The loop of transformers' documentation, over audio that is all there, with silence up to a whole chunk."""
    model, processor = recogniser.model, recogniser.processor
    if model.config.model_type == "voxtral_realtime":
        return voxtral_by_hand(recogniser, clip)
    extractor = processor.feature_extractor

    more = {"sampling_rate": RATE, "is_streaming": True, "return_tensors": "pt", **told}

    def chunks():
        frames = processor.num_mel_frames_first_audio_chunk
        first = processor.num_samples_first_audio_chunk
        audio = np.concatenate((clip, np.zeros(2 * processor.num_samples_per_audio_chunk, np.float32)))
        yield processor(audio[:first], is_first_audio_chunk=True, **more)["input_features"][:, :frames]
        start = frames * extractor.hop_length - extractor.win_length // 2
        while start + extractor.win_length // 2 < len(clip):
            part = audio[start : start + processor.num_samples_per_audio_chunk]
            mel = processor(part, is_first_audio_chunk=False, **more)["input_features"]
            yield mel[:, : processor.num_mel_frames_per_audio_chunk]
            frames += processor.num_mel_frames_per_audio_chunk
            start = frames * extractor.hop_length - extractor.win_length // 2

    prompt = {"prompt_ids": processor(clip, **more)["prompt_ids"]} if told else {}
    with torch.inference_mode():
        tokens = model.generate(
            input_features=chunks(), num_lookahead_tokens=processor.default_num_lookahead_tokens, **prompt
        )
    kept = [token for token in tokens.sequences[0].tolist() if token != processor.blank_token_id]
    return processor.decode(kept, skip_special_tokens=True).strip()


def clip_of(seconds, seed=3):
    rng = np.random.Generator(np.random.PCG64(seed))
    rhythm = np.sin(np.arange(int(seconds * RATE)) / 2000)
    return (rng.normal(0, 0.1, int(seconds * RATE)) * rhythm).astype(np.float32)


@pytest.mark.parametrize("name", STREAMING)
def test_a_stream_gives_what_generate_gives_in_any_chunks(tiny, name):
    recogniser, clip = tiny(name), clip_of(2.7)
    wanted = by_hand(recogniser, clip, **({"language": "en"} if name == "nemotron3_5_asr" else {}))
    assert len(set(wanted)) > 1, "the model writes one letter: the test would show nothing"
    for chunk_ms in (60, 500):
        timeline = replay(recogniser.stream(RATE, "en"), clip, RATE, StreamOptions(chunk_ms))
        assert timeline.text == wanted
        texts = [timed.event.text for timed in timeline.events]
        assert len(set(texts)) > 1  # it writes while it listens
        assert all(later.startswith(earlier) for earlier, later in pairwise(texts))


@pytest.mark.parametrize("seconds", [0.0, 0.05])
@pytest.mark.parametrize("name", STREAMING)
def test_short_and_empty_streams_end(tiny, name, seconds):
    timeline = replay(tiny(name).stream(RATE, "en"), clip_of(seconds), RATE)
    assert timeline.events[-1].event.final


def test_a_long_stream_is_cut_into_segments_that_are_final(monkeypatch):
    """Between words: " re" and "cog" and "nise" are one."""
    pieces = [" it", " was", " re", "cog", "nise", "d", " and", " re", "pea", "ted", " al", "most", " at", " once"]

    def decode(tokens, **_):
        return "".join(pieces[token % len(pieces)] for token in tokens)

    written = iter(range(100))
    monkeypatch.setattr(hf, "LONGEST_TOKENS", 8)
    session = hf.TransducerSession(
        SimpleNamespace(model=None, rate=RATE, processor=SimpleNamespace(decode=decode)), RATE
    )
    monkeypatch.setattr(session, "_feed", lambda samples: session.tokens.extend(islice(written, len(samples) // 800)))
    timeline = replay(session, clip_of(3.0), RATE)
    finals = [timed.event.text for timed in timeline.events if timed.event.final]
    assert len(finals) > 5
    assert timeline.text.split() == decode(range(60)).split()
    assert max(len(timed.event.text) for timed in timeline.events) < 60


def test_a_model_that_ends_early_does_not_hold_the_stream(nemotron, monkeypatch):
    monkeypatch.setattr(nemotron.model, "generate", lambda **_: None)
    assert replay(nemotron.stream(RATE, "en"), clip_of(1.0), RATE).text == ""


def test_a_stream_that_is_given_up_lets_its_thread_go(nemotron):
    session = nemotron.stream(RATE, "en")
    session.accept(clip_of(0.1))
    session.close()
    session._thread.join(60)
    assert not session._thread.is_alive()


def test_an_error_of_the_model_is_that_of_the_clip(nemotron, monkeypatch):
    monkeypatch.setattr(nemotron.model, "generate", lambda **_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        replay(nemotron.stream(RATE, "en"), clip_of(1.0), RATE)


def test_a_model_that_cannot_stream_names_the_way_out(tmp_path):
    folder = tiny_recognisers.save("moonshine_streaming", tmp_path / "moonshine")
    with pytest.raises(UserError, match="live:"):
        streamed(open_model(f"hf:{folder}?device=cpu"), StreamOptions())
