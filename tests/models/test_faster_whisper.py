"""faster-whisper itself, with OpenAI's tiny.en converted for CTranslate2: short windows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import soundfile

pytest.importorskip("faster_whisper", reason="needs faster-whisper")
pytest.importorskip("transformers", reason="needs transformers, for the conversion")

from support.whisper_weights import default_folder

from speech_robust_bench.builders.corpora.folder import DEMO_FOLDER as DEMO
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.models.interface import open_model
from speech_robust_bench.scoring.scoring import normalise

SHORT = ("en-reader-01", "en-reader-04", "en-reader-07")
RATE = 16_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    if not (default_folder() / "config.json").is_file():
        pytest.skip("python -m tests.support.whisper_weights")
    from ctranslate2.converters import TransformersConverter

    out = tmp_path_factory.mktemp("converted") / "tiny.en"
    TransformersConverter(str(default_folder()), copy_files=["tokenizer.json"]).convert(str(out), quantization="int8")
    return out


def clip(name: str) -> np.ndarray:
    return soundfile.read(DEMO / f"{name}.flac", dtype="float32")[0]


def test_a_short_window_encodes_no_more_and_writes_the_same(folder, monkeypatch):
    whole = open_model(f"faster-whisper:{folder}?dtype=int8&beams=1", device="cpu")
    short = open_model(f"faster-whisper:{folder}?dtype=int8&beams=1&window_s=15", device="cpu")
    frames, encode = [], short.model.encode
    monkeypatch.setattr(short.model, "encode", lambda features: frames.append(features.shape[-1]) or encode(features))
    clips = [clip(name) for name in SHORT]
    texts = short.transcribe(clips, RATE, "en")
    assert frames == [1_500] * len(SHORT)
    assert [normalise(text) for text in texts] == [normalise(text) for text in whole.transcribe(clips, RATE, "en")]
    assert short.options["window_s"] == 15


def test_a_clip_that_does_not_fit_is_heard_to_its_end(folder):
    long = np.concatenate([clip(name) for name in SHORT])
    recogniser = open_model(f"faster-whisper:{folder}?dtype=int8&beams=1&window_s=5", device="cpu")
    (text,) = recogniser.transcribe([long], RATE, "en")
    assert "best of times" in normalise(text)
    assert "present period" in normalise(text)


def test_what_repeats_itself_is_bounded_by_the_length_of_the_clip(folder):
    """Noise under a short window makes tiny.en repeat itself for as long as it may: ten tokens a second."""
    noise = np.random.default_rng(0).normal(0, 0.3, RATE).astype(np.float32)
    recogniser = open_model(f"faster-whisper:{folder}?dtype=int8&beams=1&window_s=3", device="cpu")
    texts = recogniser.transcribe([noise, clip("en-reader-07")[: 2 * RATE]], RATE, "en")
    assert all(len(text.split()) <= 30 for text in texts)


@pytest.mark.parametrize("options", ["window_s=31", "window_s=10&confidence=true"])
def test_options_that_cannot_be_are_one_line(options):
    with pytest.raises(UserError, match="window_s") as said:
        open_model(f"faster-whisper:tiny.en?{options}")
    assert "\n" not in str(said.value)
