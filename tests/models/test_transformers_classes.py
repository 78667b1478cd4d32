"""`hf:` on every class of transformers that transcribes, each as a tiny model with random weights.

Every clip must give what transformers gives when it is called by hand as its documentation says, in any batch.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers", minversion="5.20")

from support import tiny_recognisers

from speech_robust_bench.core.errors import UserError
from speech_robust_bench.models.adapters import hf
from speech_robust_bench.models.interface import open_model, split_at_pauses
from speech_robust_bench.models.prompts import raw_text, unwrap, with_raw
from speech_robust_bench.models.transcriber import transcription_of

RATE = 16_000
TOKENS_PER_S = 10.0
CTC = ("parakeet_ctc", "lasr_ctc", "granite_speech5_ctc")
TRANSDUCERS = ("parakeet_rnnt", "parakeet_tdt", "nemotron_asr_streaming", "nemotron3_5_asr")
WITH_DECODER = ("canary", "cohere_asr", "moonshine_streaming", "seamless_m4t", "seamless_m4t_v2", "speech_to_text")
IN_STEP = ("kyutai_speech_to_text", "voxtral_realtime")
ALL = sorted(tiny_recognisers.MAKERS)
TOLD_THE_LANGUAGE = ("canary", "cohere_asr", "nemotron3_5_asr", "qwen3_asr", "seamless_m4t", "voxtral")


def noise(seconds: float, seed: int) -> np.ndarray:
    rng = np.random.Generator(np.random.PCG64(seed))
    rhythm = np.sin(np.arange(int(seconds * RATE)) / 2000)
    return (rng.normal(0, 0.1, int(seconds * RATE)) * rhythm).astype(np.float32)


CLIPS = [noise(seconds, seed) for seed, seconds in enumerate((0.8, 0.5, 0.8, 1.3, 0.5))]


@dataclass
class Tiny:
    name: str
    folder: Path
    processor: Any
    recogniser: Any


@pytest.fixture(scope="module", autouse=True)
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """A tiny model by its type, saved and opened once; processors that have no files are handed over in memory."""
    opened: dict[str, Tiny] = {}

    def get(name: str) -> Tiny:
        if name not in opened:
            folder = tiny_recognisers.save(name, tmp_path_factory.mktemp(name))
            processor = None
            with pytest.MonkeyPatch.context() as patch:
                if name in tiny_recognisers.WITHOUT_FILES:
                    torch.manual_seed(5)
                    processor = tiny_recognisers.MAKERS[name]()[1]
                    patch.setattr(transformers.AutoProcessor, "from_pretrained", lambda *_, **__: processor)
                spec = f"hf:{folder}?device=cpu&tokens_per_s={TOKENS_PER_S}"
                recogniser = open_model(spec)
            opened[name] = Tiny(name, folder, processor or recogniser.processor, recogniser)
        return opened[name]

    return get


# ---------------------------------------------------------------------------------------------------------- by hand


def conversation(clip: np.ndarray, text: str) -> list[dict[str, Any]]:
    return [{"role": "user", "content": [{"type": "audio", "audio": clip}, {"type": "text", "text": text}]}]


def chat(processor: Any, clip: np.ndarray, text: str) -> Any:
    return processor.apply_chat_template(
        conversation(clip, text), tokenize=True, add_generation_prompt=True, return_dict=True, return_tensors="pt"
    )


def marked_text(processor: Any, clip: np.ndarray, text: str) -> Any:
    turn = [{"role": "user", "content": f"<|audio|>{text}"}]
    prompt = processor.tokenizer.apply_chat_template(turn, tokenize=False, add_generation_prompt=True)
    return processor(text=prompt, audio=clip, return_tensors="pt")


GRANITE = "can you transcribe the speech into a written format?"
OMNI = "Transcribe the speech word for word, and write nothing else."
# the inputs of one clip, as the documentation of each model makes them
BY_HAND: dict[str, Any] = {
    "canary": lambda p, clip: p.apply_transcription_request(clip, source_language="en"),
    "cohere_asr": lambda p, clip: p(clip, language="en", sampling_rate=RATE, return_tensors="pt"),
    "nemotron3_5_asr": lambda p, clip: p(clip, language="en", sampling_rate=RATE, return_tensors="pt"),
    "qwen3_asr": lambda p, clip: p.apply_transcription_request(clip, language="en"),
    "glmasr": lambda p, clip: p.apply_transcription_request(clip),
    "vibevoice_asr": lambda p, clip: p.apply_transcription_request(clip),
    "fun_asr_nano": lambda p, clip: p.apply_transcription_request(clip, language="en"),
    "moss_transcribe_diarize": lambda p, clip: p.apply_transcription_request(clip, return_tensors="pt"),
    "audioflamingo3": lambda p, clip: p.apply_transcription_request(clip),
    "nemo_speechlm": lambda p, clip: p.apply_transcription_request(clip),
    "voxtral": lambda p, clip: p.apply_transcription_request(
        [clip], model_id="m", language="en", sampling_rate=RATE, format=["wav"]
    ),
    "granite_speech": lambda p, clip: marked_text(p, clip, GRANITE),
    "granite_speech_plus": lambda p, clip: marked_text(p, clip, GRANITE),
    "phi4_multimodal": lambda p, clip: marked_text(p, clip, "Transcribe the audio clip into text."),
    "qwen2_audio": lambda p, clip: chat(p, clip, "Transcribe the audio clip into text."),
    "qwen2_5_omni": lambda p, clip: chat(p, clip, OMNI),
    "qwen3_omni_moe": lambda p, clip: chat(p, clip, OMNI),
}


def by_hand(tiny: Tiny, clip: np.ndarray) -> str:
    """One clip through transformers alone."""
    model, processor = tiny.recogniser.model, tiny.processor
    if processor.feature_extractor.sampling_rate != RATE if hasattr(processor, "feature_extractor") else False:
        from speech_robust_bench.core.audio import resample

        clip = resample(clip, RATE, processor.feature_extractor.sampling_rate)
    rate = getattr(getattr(processor, "feature_extractor", None), "sampling_rate", RATE)
    plain = lambda p, clip: p(audio=clip, sampling_rate=rate, return_tensors="pt")  # noqa: E731
    with torch.no_grad():
        inputs = BY_HAND.get(tiny.name, plain)(processor, clip)
        if tiny.name in CTC:
            return processor.batch_decode(model.generate(**inputs), skip_special_tokens=True)[0].strip()
        if tiny.name in TRANSDUCERS:
            tokens = model.generate(**inputs).sequences
        elif tiny.name in IN_STEP:
            tokens = model.generate(**inputs)
            tokens = tokens[:, inputs["input_ids"].shape[1] if tiny.name == "voxtral_realtime" else 0 :]
        else:
            most = max(2, int(len(clip) / rate * TOKENS_PER_S))
            told = {"tgt_lang": "eng"} if tiny.name.startswith("seamless") else {"do_sample": False}
            tokens = model.generate(**inputs, max_new_tokens=most, **told)
            if tiny.name not in WITH_DECODER:
                tokens = tokens[:, inputs["input_ids"].shape[1] :]
            elif "decoder_input_ids" in inputs:
                tokens = tokens[:, inputs["decoder_input_ids"].shape[1] :]
    return processor.batch_decode(tokens.tolist(), skip_special_tokens=True)[0].strip()


@pytest.mark.parametrize("name", ALL)
def test_every_class_in_any_batch_is_transformers_by_hand(tiny, name: str) -> None:
    model = tiny(name)
    wanted = [by_hand(model, clip) for clip in CLIPS]
    assert len(set(wanted)) > 1, "the model gives every clip the same text: the test would show nothing"
    for batch_size in (1, 8):
        model.recogniser.batch_size = batch_size
        assert [raw_text(text) for text in model.recogniser.transcribe(CLIPS, RATE, "en")] == wanted


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        *((name, hf.Ctc) for name in CTC),
        *((name, hf.Transducer) for name in TRANSDUCERS),
        *((name, hf.Seq2Seq) for name in WITH_DECODER),
        *((name, hf.AudioLanguageModel) for name in ("voxtral", "qwen3_omni_moe", "granite_speech")),
    ],
)
def test_the_kind_follows_from_the_config(tiny, name: str, kind: type) -> None:
    assert isinstance(tiny(name).recogniser, kind)


@pytest.mark.parametrize("name", TOLD_THE_LANGUAGE)
def test_models_that_take_a_language_are_told_it(tiny, name: str) -> None:
    recogniser = tiny(name).recogniser
    assert recogniser.transcribe(CLIPS[:3], RATE, "en") != recogniser.transcribe(CLIPS[:3], RATE, "de")


@pytest.mark.parametrize("name", ALL)
def test_long_clips_are_cut_at_pauses(tiny, name: str, monkeypatch) -> None:
    recogniser = tiny(name).recogniser
    monkeypatch.setattr(recogniser, "chunk_s", 7.0)
    monkeypatch.setattr(recogniser, "tokens_per_s", 1.0)
    long = noise(8.5, 9)
    pieces = split_at_pauses(long, RATE, 7.0)
    assert len(pieces) > 1
    assert sum(map(len, pieces)) == len(long)
    parts = recogniser.transcribe(pieces, RATE, "en")
    if name in CTC:  # its frames are joined before they are decoded, so a letter at a cut may merge
        assert len(recogniser.transcribe([long], RATE, "en")[0]) >= len("".join(parts)) - len(parts)
    else:
        assert recogniser.transcribe([long], RATE, "en") == [" ".join(filter(None, parts))]


def test_the_prompt_of_a_spec_is_what_the_model_is_asked(tiny) -> None:
    folder = tiny("qwen2_audio").folder
    asked = open_model(f"hf:{folder}?device=cpu&tokens_per_s={TOKENS_PER_S}&prompt=Write%20it%20down.")
    assert asked.options["prompt"] == "Write it down."
    assert tiny("qwen2_audio").recogniser.options["prompt"] == "Transcribe the audio clip into text."
    assert asked.transcribe(CLIPS[:2], RATE, "en") != tiny("qwen2_audio").recogniser.transcribe(CLIPS[:2], RATE, "en")


@pytest.mark.parametrize("name", ["kyutai_speech_to_text", "nemo_speechlm", "parakeet_tdt"])
def test_half_precision_where_a_part_stays_in_single(tiny, name: str) -> None:
    recogniser = open_model(f"hf:{tiny(name).folder}?device=cpu&dtype=bfloat16&tokens_per_s=2")
    assert len(recogniser.transcribe(CLIPS[:2], RATE, "en")) == 2


def test_code_of_the_hub_runs_only_when_asked_and_pinned(tiny, tmp_path) -> None:
    with pytest.raises(UserError, match="needs the commit"):
        open_model("hf:someone/model?trust_remote_code=true")
    with pytest.raises(UserError, match="needs the commit"):
        open_model("hf:someone/model?trust_remote_code=true&revision=main")
    (tmp_path / "config.json").write_text('{"model_type": "mine", "auto_map": {"AutoConfig": "evil.MyConfig"}}')
    (tmp_path / "evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    with pytest.raises(UserError):
        open_model(f"hf:{tmp_path}")
    assert not (tmp_path / "ran").exists()


# -------------------------------------------------------------------------------------------------------- unwrapping


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ("The speech says: hello there", "hello there"),
        ('The original content of this audio is: "Hello there."', "Hello there."),
        ("Sure! Here is the transcription of the audio:\n\nhello there", "hello there"),
        ("Transcript: hello", "hello"),
        ('"hello there"', "hello there"),
        ("“hello there”", "hello there"),
        ("```\nhello\n```", "hello"),
        ("hello there", "hello there"),
        ("he said: hello there", "he said: hello there"),
        ('"yes" and "no"', '"yes" and "no"'),
        ("the audio was bad he said and then went on for a long time about what it meant: nothing",) * 2,
        ("", ""),
        ('"', '"'),
    ],
)
def test_answers_are_unwrapped_by_rule(answer: str, text: str) -> None:
    assert unwrap(answer) == text


def test_the_answer_as_it_came_is_kept() -> None:
    outcome = transcription_of(with_raw("hello", 'It says: "hello"'), 0.1)
    assert outcome.text == "hello"
    assert outcome.details == {"raw_text": 'It says: "hello"'}
    assert not transcription_of(with_raw("hello", "hello"), 0.1).details
