"""`hf:` against transformers called by hand: Whisper with real weights, the other architectures with random ones."""

from __future__ import annotations

import json
import string
import types
from pathlib import Path

import jiwer
import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from support.small_models import CTC_LETTERS, ctc_folder, moonshine_folder, speecht5_folder
from support.whisper_weights import byte_letters, default_folder, halves

from speech_robust_bench.core.errors import UserError
from speech_robust_bench.models.hf.base import TransformersRecogniser
from speech_robust_bench.models.interface import open_model

RATE = 16_000


@pytest.fixture(scope="module", autouse=True)
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)  # beside other test processes, two threads wait for each other most of the time
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def whisper_folder() -> Path:
    folder = default_folder()
    if not (folder / "config.json").is_file():
        pytest.skip("python -m tests.support.whisper_weights")
    return folder


@pytest.fixture(scope="module")
def three_lengths(human_speech) -> list[np.ndarray]:
    """0.2 s, 10 s and 45 s (44.4 s of reading and a pause)."""
    return [
        human_speech[8000:11_200],
        human_speech[: 10 * RATE],
        np.pad(human_speech, (0, 45 * RATE - len(human_speech))),
    ]


@pytest.fixture(scope="module")
def by_hand(whisper_folder, three_lengths) -> list[str]:
    """What transformers' documentation says to do, one clip at a time."""
    processor = transformers.WhisperProcessor.from_pretrained(whisper_folder)
    model = transformers.WhisperForConditionalGeneration.from_pretrained(whisper_folder)
    texts = []
    for clip in three_lengths:
        if len(clip) <= 30 * RATE:
            inputs = processor(clip, sampling_rate=RATE, return_tensors="pt", return_attention_mask=True)
            tokens = model.generate(**inputs)
        else:
            inputs = processor(
                clip,
                sampling_rate=RATE,
                return_tensors="pt",
                return_attention_mask=True,
                truncation=False,
                padding="longest",
            )
            tokens = model.generate(**inputs, return_timestamps=True)
        texts += processor.batch_decode(tokens, skip_special_tokens=True)
    return [text.strip() for text in texts]


def test_whisper_gives_what_transformers_gives(whisper_folder, three_lengths, by_hand) -> None:
    recogniser = open_model(f"hf:{whisper_folder}?batch_size=2&device=cpu")
    company = three_lengths[2][: 31 * RATE]  # a second long clip, of another length
    hypotheses = recogniser.transcribe([three_lengths[2], three_lengths[0], company, three_lengths[1]], RATE, "en")
    assert [hypotheses[1], hypotheses[3], hypotheses[0]] == by_hand
    for alone in (0, 1):
        assert recogniser.transcribe([three_lengths[alone]], RATE, "en") == [by_hand[alone]]
    five = recogniser.transcribe([three_lengths[alone] for alone in (1, 0, 0, 1, 1)], RATE, "en")
    assert five == [by_hand[alone] for alone in (1, 0, 0, 1, 1)]


def test_whisper_transcribes_the_end_of_a_long_clip(by_hand) -> None:
    assert by_hand[1].startswith("It was the best of times, it was the worst of times")
    assert by_hand[2].endswith("in the superlative degree of comparison only.")


def test_converted_whisper_transcribes_telephone_prompts(whisper_folder, prompts) -> None:
    recogniser = open_model(f"hf:{whisper_folder}?batch_size=8&device=cpu")
    clips, texts = zip(*prompts[:8], strict=True)
    plain = str.maketrans("", "", string.punctuation)
    hypotheses = [
        " ".join(text.lower().translate(plain).split()) for text in recogniser.transcribe(list(clips), RATE, "en")
    ]
    assert jiwer.wer([" ".join(text.lower().translate(plain).split()) for text in texts], hypotheses) < 0.12


def test_converted_tokenizer_is_gpt2s(whisper_folder) -> None:
    tokenizer = transformers.AutoTokenizer.from_pretrained(whisper_folder)
    # ids from OpenAI's published encodings of GPT-2
    assert tokenizer.encode("Hello world", add_special_tokens=False) == [15496, 995]
    assert tokenizer.convert_tokens_to_ids(["<|endoftext|>", "<|startoftranscript|>", "<|notimestamps|>"]) == [
        50256,
        50257,
        50362,
    ]
    assert len(tokenizer) == 51_864


def test_merges_are_found_from_ranks() -> None:
    ranks = {b"a": 0, b"b": 1, b"c": 2, b"ab": 3, b"bc": 4, b"abc": 5}
    assert halves(b"abc", ranks) == [b"ab", b"c"]
    assert byte_letters()[ord(" ")] == "Ġ"


# --------------------------------------------------------- the other architectures, small and with random weights


@pytest.fixture(scope="module")
def utterances(human_speech) -> list[np.ndarray]:
    cuts = [(0.0, 1.0), (1.0, 3.5), (4.0, 4.2), (5.0, 6.0), (7.0, 9.0)]
    return [human_speech[int(start * RATE) : int(end * RATE)] for start, end in cuts]


SEW_STEPS = {"conv_kernel": (10, 3, 3, 3, 3, 2, 2), "conv_stride": (5, 2, 2, 2, 2, 2, 2)}
CTC = [
    ("Wav2Vec2", {"feat_extract_norm": "group"}, False),  # as wav2vec2-base
    ("Wav2Vec2", {"feat_extract_norm": "layer", "do_stable_layer_norm": True}, True),  # as wav2vec2-large-lv60
    ("Hubert", {"feat_extract_norm": "layer", "do_stable_layer_norm": True}, True),
    ("WavLM", {"feat_extract_norm": "layer", "do_stable_layer_norm": True}, True),
    ("UniSpeech", {"feat_extract_norm": "layer", "do_stable_layer_norm": True}, True),
    ("UniSpeechSat", {"feat_extract_norm": "layer", "do_stable_layer_norm": True}, True),
    ("Wav2Vec2Conformer", {"feat_extract_norm": "layer"}, False),  # its convolutions see the padding
    ("Data2VecAudio", {}, False),  # its stack of positional convolutions lets padding in
    ("SEW", {"feat_extract_norm": "layer", "squeeze_factor": 2, **SEW_STEPS}, False),  # it averages pairs of frames
    ("SEWD", {"feat_extract_norm": "layer", "squeeze_factor": 2, **SEW_STEPS}, False),
]


@pytest.mark.parametrize(("kind", "config", "pads"), CTC)
def test_ctc_in_any_batch_is_transformers_by_hand(tmp_path, utterances, kind: str, config: dict, pads: bool) -> None:
    folder = ctc_folder(tmp_path, kind, **config)
    processor = transformers.Wav2Vec2Processor.from_pretrained(folder)
    model = transformers.AutoModelForCTC.from_pretrained(folder).eval()
    by_hand = []
    for clip in utterances:
        inputs = processor(clip, sampling_rate=RATE, return_tensors="pt")
        with torch.no_grad():
            by_hand += processor.batch_decode(model(**inputs).logits.argmax(-1))
    assert any(len(text) > 3 for text in by_hand)
    for batch_size in (1, 2, 5):
        recogniser = open_model(f"hf:{folder}?batch_size={batch_size}&device=cpu")
        assert recogniser.options["pads_safely"] is pads
        assert recogniser.transcribe(utterances, RATE, "en") == [text.strip() for text in by_hand]


def test_ctc_confidences_are_mean_letter_probabilities(tmp_path, utterances) -> None:
    folder = ctc_folder(tmp_path, "Wav2Vec2", feat_extract_norm="layer", do_stable_layer_norm=True)
    plain = open_model(f"hf:{folder}?device=cpu").transcribe(utterances, RATE, "en")
    recogniser = open_model(f"hf:{folder}?device=cpu&confidence=true&batch_size=2")
    texts = recogniser.transcribe(utterances, RATE, "en")
    assert texts == plain
    assert recogniser.options["confidence"] is True
    clip, words = utterances[1], texts[1].details["word_confidences"]
    assert [word for word, *_ in words] == texts[1].split()
    times = [at for _, _, start, end in words for at in (start, end)]
    assert times == sorted(times)
    assert 0 <= times[0] < times[-1] <= len(clip) / RATE + 0.02
    processor = transformers.Wav2Vec2Processor.from_pretrained(folder)
    model = transformers.AutoModelForCTC.from_pretrained(folder).eval()
    with torch.no_grad():
        shares = model(**processor(clip, sampling_rate=RATE, return_tensors="pt")).logits[0].softmax(-1)
    _, confidence, start, end = words[0]
    frames = [shares[place] for place in range(round(start * RATE / 320), round(end * RATE / 320))]
    spelled = [float(frame.max()) for frame in frames if int(frame.argmax()) != 0]  # 0 is the blank
    assert confidence == pytest.approx(np.mean(spelled), abs=2e-4)
    with pytest.raises(UserError, match="only CTC models tell their confidences"):
        open_model(f"hf:{moonshine_folder(tmp_path / 'other')}?confidence=true")


def test_ctc_windows_join_to_what_the_whole_clip_gives(tmp_path, human_speech) -> None:
    """With attention switched off in effect (no layers), a frame sees only its surroundings: windows must not show."""
    folder = ctc_folder(tmp_path, "Wav2Vec2", feat_extract_norm="layer", do_stable_layer_norm=True)
    extractor = transformers.Wav2Vec2FeatureExtractor(return_attention_mask=True, do_normalize=False)
    extractor.save_pretrained(folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "num_hidden_layers": 0}))
    for stale in ("processor_config.json",):
        (folder / stale).unlink(missing_ok=True)
    clip = human_speech[: 20 * RATE + 77]
    whole = open_model(f"hf:{folder}?chunk_s=60&device=cpu").transcribe([clip], RATE, "en")
    cut = open_model(f"hf:{folder}?chunk_s=6&device=cpu").transcribe([clip], RATE, "en")
    assert cut == whole
    assert len(whole[0]) > 50


def test_ctc_on_spectrograms_in_any_batch_is_transformers_by_hand(tmp_path, utterances) -> None:
    torch.manual_seed(4)
    (tmp_path / "vocab.json").write_text(json.dumps({letter: index for index, letter in enumerate(CTC_LETTERS)}))
    tokenizer = transformers.Wav2Vec2CTCTokenizer(str(tmp_path / "vocab.json"))
    transformers.Wav2Vec2BertProcessor(transformers.SeamlessM4TFeatureExtractor(), tokenizer).save_pretrained(tmp_path)
    config = transformers.Wav2Vec2BertConfig(
        vocab_size=len(CTC_LETTERS), hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=64,
        pad_token_id=0, initializer_range=1.0,
    )  # fmt: skip
    transformers.Wav2Vec2BertForCTC(config).save_pretrained(tmp_path)
    processor = transformers.AutoProcessor.from_pretrained(tmp_path)
    model = transformers.AutoModelForCTC.from_pretrained(tmp_path).eval()
    by_hand = []
    for clip in utterances:
        with torch.no_grad():
            logits = model(**processor(clip, sampling_rate=RATE, return_tensors="pt")).logits
        by_hand.append(processor.decode(logits[0].argmax(-1)).strip())
    assert any(len(text) > 3 for text in by_hand)
    assert open_model(f"hf:{tmp_path}?device=cpu").transcribe(utterances, RATE, "en") == by_hand


def test_mms_speaks_the_language_of_the_data(tmp_path, utterances) -> None:
    safetensors = pytest.importorskip("safetensors.torch")
    folder = ctc_folder(tmp_path, "Wav2Vec2", feat_extract_norm="layer", do_stable_layer_norm=True, adapter_attn_dim=4)
    alphabets = {"eng": CTC_LETTERS, "spa": [*CTC_LETTERS[:5], *"zyxwvutsrqponmlkjihgfedcba'"]}
    vocabulary = {code: {letter: i for i, letter in enumerate(letters)} for code, letters in alphabets.items()}
    (tmp_path / "vocab.json").write_text(json.dumps(vocabulary))
    tokenizer = transformers.Wav2Vec2CTCTokenizer(str(tmp_path / "vocab.json"), target_lang="eng")
    extractor = transformers.Wav2Vec2FeatureExtractor(return_attention_mask=True)
    transformers.Wav2Vec2Processor(extractor, tokenizer).save_pretrained(folder)
    model = transformers.Wav2Vec2ForCTC.from_pretrained(folder)
    adapters = {name: tensor.clone() for name, tensor in model._get_adapters().items()}
    for code, sign in (("eng", 1), ("spa", -1)):
        weights = {name: (sign * tensor).contiguous() for name, tensor in adapters.items()}
        safetensors.save_file(weights, folder / f"adapter.{code}.safetensors", {"format": "pt"})
    recogniser = open_model(f"hf:{folder}?device=cpu")
    english, spanish, again = (recogniser.transcribe(utterances[:2], RATE, code) for code in ("en", "es", "en"))
    assert english == again
    assert english != spanish


def test_a_multilingual_whisper_is_told_the_language(whisper_folder, monkeypatch) -> None:
    recogniser = open_model(f"hf:{whisper_folder}?device=cpu")
    asked = []

    def generate(input_features, **settings):
        asked.append({key: settings.get(key) for key in ("language", "task")})
        return torch.full((len(input_features), 1), 345)

    monkeypatch.setattr(recogniser.model, "generate", generate)
    recogniser.transcribe([np.zeros(1600, np.float32)], RATE, "es")
    monkeypatch.setattr(recogniser.model.generation_config, "is_multilingual", True)
    recogniser.transcribe([np.zeros(1600, np.float32)], RATE, "es")
    assert asked == [{"language": None, "task": None}, {"language": "es", "task": "transcribe"}]


def test_shortest_clips_do_not_crash(tmp_path) -> None:
    recogniser = open_model(f"hf:{ctc_folder(tmp_path, 'Wav2Vec2', feat_extract_norm='group')}?device=cpu")
    assert len(recogniser.transcribe([np.zeros(0, np.float32), np.zeros(10, np.float32)], RATE, "en")) == 2


@pytest.mark.parametrize("make", [moonshine_folder, speecht5_folder])
def test_seq2seq_in_any_batch_is_transformers_by_hand(tmp_path, utterances, make) -> None:
    folder = make(tmp_path, initializer_range=0.5)
    processor = transformers.AutoProcessor.from_pretrained(folder)
    model = transformers.AutoModelForSpeechSeq2Seq.from_pretrained(folder).eval()
    per_s = 6.5 if make is moonshine_folder else 25
    by_hand = []
    for clip in utterances:
        inputs = processor(audio=clip, sampling_rate=RATE, return_tensors="pt")
        with torch.no_grad():
            tokens = model.generate(**inputs, max_new_tokens=max(2, int(len(clip) / RATE * per_s)))
        by_hand += processor.batch_decode(tokens, skip_special_tokens=True)
    assert len({text for text in by_hand if text}) > 1
    for batch_size in (1, 5):
        recogniser = open_model(f"hf:{folder}?batch_size={batch_size}&device=cpu")
        assert recogniser.transcribe(utterances, RATE, "en") == [text.strip() for text in by_hand]


def test_a_model_that_is_no_recogniser_is_refused(tmp_path) -> None:
    transformers.BertConfig(hidden_size=8, num_hidden_layers=1, num_attention_heads=1).save_pretrained(tmp_path)
    with pytest.raises(UserError, match="not a speech recogniser"):
        open_model(f"hf:{tmp_path}")
    with pytest.raises(UserError, match="no dtype"):
        open_model(f"hf:{tmp_path}?dtype=float23")
    with pytest.raises(UserError, match="hf:/nowhere"):
        open_model("hf:/nowhere")


@pytest.mark.parametrize("gap", ["vocab.json", "torn", "size"])
def test_a_folder_with_a_gap_is_one_line(tmp_path, gap: str) -> None:
    ctc_folder(tmp_path, "Wav2Vec2")
    if gap == "torn":
        (tmp_path / "model.safetensors").write_bytes((tmp_path / "model.safetensors").read_bytes()[:1000])
    elif gap == "size":
        config = json.loads((tmp_path / "config.json").read_text())
        (tmp_path / "config.json").write_text(json.dumps({**config, "vocab_size": 99}))
    else:
        (tmp_path / gap).unlink()
    with pytest.raises(UserError, match="a whole folder has") as said:
        open_model(f"hf:{tmp_path}")
    assert "\n" not in str(said.value)
    with pytest.raises(UserError, match="no such folder"):
        open_model(f"hf:{tmp_path}/none")


def test_inputs_go_to_a_gpu_from_pinned_memory() -> None:
    told = []

    class Features:
        device, dtype = torch.device("cpu"), torch.float32

        def is_floating_point(self) -> bool:
            return True

        def pin_memory(self) -> Features:
            told.append("pinned")
            return self

        def to(self, device, dtype, non_blocking: bool) -> str:
            told.append((device.type, dtype, non_blocking))
            return "there"

    model = types.SimpleNamespace(device=torch.device("cuda"), dtype=torch.float16)
    recogniser = types.SimpleNamespace(model=model, _audio_dtype=torch.float16)
    placed = TransformersRecogniser._placed(recogniser, {"input_features": Features(), "num_delay_tokens": 6})
    assert placed == {"input_features": "there", "num_delay_tokens": 6}
    assert told == ["pinned", ("cuda", torch.float16, True)]
