"""Tiny models with random weights for the classes of transformers that `hf:` runs, saved as `save_pretrained` does.

Each has one layer or two and a tokenizer of letters. What it writes is noise, but it is the same noise for the same
audio, so it shows whether `hf:` prepares, batches, generates and decodes as transformers does when called by hand.
"""

from __future__ import annotations

import base64
import importlib
import importlib.util
import io
import json
import tempfile
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import soundfile
import torch
import transformers
from support.small_models import letters_tokenizer
from transformers.audio_utils import mel_filter_bank

SIZE = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2}
SIZE |= {"num_key_value_heads": 2}
LOUD = {"initializer_range": 0.4}  # large weights: otherwise every clip gives the same letter
CONFORMER = {**SIZE, **LOUD, "num_mel_bins": 80, "subsampling_conv_channels": 8, "conv_kernel_size": 5}
TEXT = {**SIZE, **LOUD, "head_dim": 16, "max_position_embeddings": 4096, "eos_token_id": 2, "bos_token_id": 1}
TEXT |= {"pad_token_id": 0}
CHAT = (
    "{% for message in messages %}{{ message.role }}: {% for part in message.content %}"
    "{% if part.type == 'audio' %}AUDIO{% elif part.type == 'text' %}{{ part.text }}{% endif %}{% endfor %}"
    "\n{% endfor %}"
    "{% if add_generation_prompt %}assistant: {% endif %}"
)
CHAT_OF_TEXTS = (
    "{% for message in messages %}{{ message.role }}: {{ message.content }}\n{% endfor %}"
    "{% if add_generation_prompt %}assistant: {% endif %}"
)

# Parts of their processors need torchvision, torchaudio or mistral-common: these are made in memory, with stand-ins.
WITHOUT_FILES = {
    "granite_speech",
    "granite_speech_plus",
    "granite_speech5_ctc",
    "fun_asr_nano",
    "phi4_multimodal",
    "qwen2_5_omni",
}
WITHOUT_FILES |= {"qwen3_omni_moe"}
MISTRAL = importlib.util.find_spec("mistral_common") is not None
if not MISTRAL:
    WITHOUT_FILES |= {"voxtral", "voxtral_realtime"}


Maker = Callable[[], tuple[Any, Any]]  # a model and its processor
MAKERS: dict[str, Maker] = {}


def tiny(model_type: str) -> Callable[[Maker], Maker]:
    def register(make: Maker) -> Maker:
        MAKERS[model_type] = make
        return make

    return register


def save(model_type: str, place: Path) -> Path:
    """The model's folder, as the Hub would give it."""
    torch.manual_seed(5)
    model, processor = MAKERS[model_type]()
    model.save_pretrained(place)
    model.generation_config.save_pretrained(place)
    if model_type == "qwen2_5_omni":
        torch.save({}, place / "spk_dict.pt")  # the voices of the part that speaks
    if model_type not in WITHOUT_FILES:
        processor.save_pretrained(place)
    return place


def tokenizer(*special: str, kind: Any = None, **named: str) -> Any:
    """Letters and special tokens; `named` ones are attributes too, such as `audio_token`."""
    known = ("<pad>", *special, *named.values())
    kind = kind or transformers.PreTrainedTokenizerFast
    return kind(
        tokenizer_object=letters_tokenizer(*known), unk_token="<unk>", bos_token="<s>", eos_token="</s>",
        pad_token="<pad>", extra_special_tokens=list(special), model_specific_special_tokens=named,
    )  # fmt: skip


# ------------------------------------------------------------------------------------------ torchaudio, as far as used


class MelSpectrogram(torch.nn.Module):
    """`torchaudio.transforms.MelSpectrogram` with its defaults: power, a Hann window, the HTK scale."""

    def __init__(self, sample_rate: int, n_fft: int, win_length: int, hop_length: int, n_mels: int) -> None:
        super().__init__()
        self.n_fft, self.win_length, self.hop_length = n_fft, win_length, hop_length
        bank = mel_filter_bank(1 + n_fft // 2, n_mels, 0.0, sample_rate / 2, sample_rate, mel_scale="htk")
        self.bank = torch.tensor(bank, dtype=torch.float32)

    def forward(self, audio: Any) -> Any:
        window = torch.hann_window(self.win_length)
        spectrum = torch.stft(audio, self.n_fft, self.hop_length, self.win_length, window, return_complex=True)
        return (spectrum.abs().square().transpose(-1, -2) @ self.bank).transpose(-1, -2)


def fbank(waveform: Any, num_mel_bins: int, sample_frequency: int, **_: Any) -> Any:
    """In the place of `torchaudio.compliance.kaldi.fbank`: log mel energies, 25 ms every 10."""
    mel = MelSpectrogram(sample_frequency, 512, 400, 160, num_mel_bins)(waveform)
    return (mel[0].T + 1e-6).log()


def with_torchaudio(family: str, name: str) -> Any:
    """A feature extractor that uses torchaudio, with the stand-ins above in its place."""
    standin = types.SimpleNamespace(
        transforms=types.SimpleNamespace(MelSpectrogram=MelSpectrogram),
        functional=types.SimpleNamespace(compute_deltas=lambda mel, win_length: torch.diff(mel, prepend=mel[..., :1])),
        compliance=types.SimpleNamespace(kaldi=types.SimpleNamespace(fbank=fbank)),
    )
    module = importlib.import_module(f"transformers.models.{family}.feature_extraction_{family}")
    module.torchaudio = standin
    module.requires_backends = lambda *_: None
    return getattr(module, name)


# ----------------------------------------------------------------------------------------------- CTC and transducers


def parakeet_letters(*special: str) -> Any:
    return tokenizer(*special, kind=transformers.ParakeetTokenizer)


def parakeet_processor(letters: Any, decoder_type: str) -> Any:
    extractor = transformers.ParakeetFeatureExtractor(feature_size=80)
    return transformers.ParakeetProcessor(extractor, letters, decoder_type=decoder_type)


@tiny("parakeet_ctc")
def parakeet_ctc() -> tuple[Any, Any]:
    letters = parakeet_letters()
    config = transformers.ParakeetCTCConfig(
        encoder_config=CONFORMER, vocab_size=len(letters), pad_token_id=letters.pad_token_id, **LOUD
    )
    return transformers.ParakeetForCTC(config), parakeet_processor(letters, "ctc")


@tiny("lasr_ctc")
def lasr_ctc() -> tuple[Any, Any]:
    letters = parakeet_letters()
    encoder = {**CONFORMER, "num_mel_bins": 128}
    config = transformers.LasrCTCConfig(
        encoder_config=encoder, vocab_size=len(letters), pad_token_id=letters.pad_token_id, **LOUD
    )
    return transformers.LasrForCTC(config), transformers.LasrProcessor(transformers.LasrFeatureExtractor(), letters)


@tiny("granite_speech5_ctc")
def granite_speech5_ctc() -> tuple[Any, Any]:
    letters = parakeet_letters()
    encoder = {**SIZE, **LOUD, "head_dim": 16, "conv_kernel_size": 5, "subsample_layers": [0], "context_size": 32}
    encoder |= {"vocab_size": len(letters), "num_hidden_layers": 2}
    config = transformers.GraniteSpeech5CTCConfig(
        encoder_config=encoder, vocab_size=len(letters), pad_token_id=letters.pad_token_id, **LOUD
    )
    extractor = with_torchaudio("granite_speech5", "GraniteSpeech5FeatureExtractor")()
    processor = transformers.GraniteSpeech5Processor(extractor, letters)
    return transformers.GraniteSpeech5ForCTC(config), processor


def transducer(config_class: Any, model_class: Any, letters: Any, blank: float, **more: Any) -> Any:
    config = config_class(
        encoder_config=CONFORMER, vocab_size=len(letters), decoder_hidden_size=32, num_decoder_layers=1,
        blank_token_id=letters.convert_tokens_to_ids("<blank>"), pad_token_id=letters.pad_token_id, **more,
    )  # fmt: skip
    model = model_class(config)
    model.generation_config.decoder_start_token_id = config.blank_token_id
    with torch.no_grad():  # blanks are likely, and frames are passed: otherwise it would write for ever in the first
        model.joint.head.bias[config.blank_token_id] += blank
        model.joint.head.bias[len(letters) :][:1] -= 100  # of TDT: no step stays where it is
    return model


@tiny("parakeet_rnnt")
def parakeet_rnnt() -> tuple[Any, Any]:
    letters = parakeet_letters("<blank>")
    model = transducer(transformers.ParakeetRNNTConfig, transformers.ParakeetForRNNT, letters, 12.0, **LOUD)
    return model, parakeet_processor(letters, "rnnt")


@tiny("parakeet_tdt")
def parakeet_tdt() -> tuple[Any, Any]:
    letters = parakeet_letters("<blank>")
    model = transducer(transformers.ParakeetTDTConfig, transformers.ParakeetForTDT, letters, 0.0, **LOUD)
    return model, parakeet_processor(letters, "tdt")


@tiny("nemotron_asr_streaming")
def nemotron_asr_streaming() -> tuple[Any, Any]:
    letters = parakeet_letters("<blank>")
    model = transducer(
        transformers.NemotronAsrStreamingConfig, transformers.NemotronAsrStreamingForRNNT, letters, 2.0, **LOUD
    )
    extractor = transformers.NemotronAsrStreamingFeatureExtractor(feature_size=80)
    return model, transformers.NemotronAsrStreamingProcessor(extractor, letters)


@tiny("nemotron3_5_asr")
def nemotron3_5_asr() -> tuple[Any, Any]:
    letters = parakeet_letters("<blank>")
    model = transducer(
        transformers.Nemotron3_5AsrConfig, transformers.Nemotron3_5AsrForRNNT, letters, 0.0, prompt_intermediate_size=32
    )
    extractor = transformers.NemotronAsrStreamingFeatureExtractor(feature_size=80)
    return model, transformers.Nemotron3_5AsrProcessor(extractor, letters)


# ------------------------------------------------------------------------------------------------- encoder-decoders


@tiny("canary")
def canary() -> tuple[Any, Any]:
    letters = tokenizer("<|startoftranscript|>", "<|en|>", "<|de|>", "<|pnc|>")
    template = (
        "{% for part in messages[0].content if part.type == 'text' %}<|startoftranscript|>"
        "<|{{ part.source_language }}|><|{{ part.target_language }}|><|pnc|>{% endfor %}"
    )
    decoder = {**TEXT, "vocab_size": len(letters)}
    config = transformers.CanaryConfig(
        encoder_config=CONFORMER, decoder_config=decoder, vocab_size=len(letters), bos_token_id=1, eos_token_id=2,
        pad_token_id=3, decoder_start_token_id=letters.convert_tokens_to_ids("<|startoftranscript|>"),
    )  # fmt: skip
    extractor = transformers.ParakeetFeatureExtractor(feature_size=80)
    processor = transformers.CanaryProcessor(extractor, letters, chat_template=template)
    return transformers.CanaryForConditionalGeneration(config), processor


@tiny("cohere_asr")
def cohere_asr() -> tuple[Any, Any]:
    marks = ["▁", "<|startofcontext|>", "<|startoftranscript|>", "<|emo:undefined|>", "<|en|>", "<|de|>", "<|pnc|>"]
    letters = tokenizer(*marks, "<|noitn|>", "<|notimestamp|>", "<|nodiarize|>")
    config = transformers.CohereAsrConfig(
        encoder_config=CONFORMER, vocab_size=len(letters), **{**TEXT, "pad_token_id": 3, "decoder_start_token_id": 1}
    )
    extractor = transformers.CohereAsrFeatureExtractor(feature_size=80)
    return transformers.CohereAsrForConditionalGeneration(config), transformers.CohereAsrProcessor(extractor, letters)


@tiny("moonshine_streaming")
def moonshine_streaming() -> tuple[Any, Any]:
    letters = tokenizer()
    encoder = {**SIZE, **LOUD, "head_dim": 16, "sliding_windows": [[16, 4]]}
    config = transformers.MoonshineStreamingConfig(
        encoder_config=encoder, vocab_size=len(letters), **{**TEXT, "pad_token_id": 3, "decoder_start_token_id": 1}
    )
    extractor = transformers.Wav2Vec2FeatureExtractor(return_attention_mask=True, do_normalize=False)
    processor = transformers.MoonshineStreamingProcessor(extractor, letters)
    return transformers.MoonshineStreamingForConditionalGeneration(config), processor


def seamless(config_class: Any, model_class: Any) -> tuple[Any, Any]:
    letters = tokenizer("__eng__", "__deu__")
    config = config_class(
        vocab_size=len(letters), hidden_size=32, encoder_layers=1, decoder_layers=1, speech_encoder_layers=1,
        encoder_attention_heads=2, decoder_attention_heads=2, speech_encoder_attention_heads=2, encoder_ffn_dim=64,
        decoder_ffn_dim=64, speech_encoder_intermediate_size=64, t2u_encoder_layers=1, t2u_decoder_layers=1,
        t2u_encoder_attention_heads=2, t2u_decoder_attention_heads=2, t2u_encoder_ffn_dim=64, t2u_decoder_ffn_dim=64,
        pad_token_id=3, bos_token_id=1, eos_token_id=2, decoder_start_token_id=2, initializer_range=0.4,
    )  # fmt: skip
    model = model_class(config)
    codes = {name: letters.convert_tokens_to_ids(f"__{name}__") for name in ("eng", "deu")}
    model.generation_config.text_decoder_lang_to_code_id = codes
    model.generation_config._from_model_config = False  # so that it is read again
    return model, transformers.SeamlessM4TProcessor(transformers.SeamlessM4TFeatureExtractor(), letters)


@tiny("seamless_m4t")
def seamless_m4t() -> tuple[Any, Any]:
    return seamless(transformers.SeamlessM4TConfig, transformers.SeamlessM4TForSpeechToText)


@tiny("seamless_m4t_v2")
def seamless_m4t_v2() -> tuple[Any, Any]:
    return seamless(transformers.SeamlessM4Tv2Config, transformers.SeamlessM4Tv2ForSpeechToText)


# ----------------------------------------------------------------------------------- language models that take audio


def text_config(letters: Any, **more: Any) -> dict[str, Any]:
    return {**TEXT, "vocab_size": len(letters), "pad_token_id": letters.pad_token_id, **more}


@tiny("granite_speech")
def granite_speech() -> tuple[Any, Any]:
    return granite(transformers.GraniteSpeechConfig, transformers.GraniteSpeechForConditionalGeneration)


@tiny("granite_speech_plus")
def granite_speech_plus() -> tuple[Any, Any]:
    return granite(transformers.GraniteSpeechPlusConfig, transformers.GraniteSpeechPlusForConditionalGeneration)


def granite(config_class: Any, model_class: Any) -> tuple[Any, Any]:
    letters = tokenizer("<|audio|>")
    letters.chat_template = CHAT_OF_TEXTS
    encoder = {"hidden_dim": 32, "num_layers": 1, "num_heads": 2, "dim_head": 16, "context_size": 32, "output_dim": 8}
    projector = {
        **SIZE,
        **LOUD,
        "encoder_hidden_size": 32,
        "model_type": "blip_2_qformer",
        "cross_attention_frequency": 1,
    }
    config = config_class(
        encoder_config=encoder, projector_config=projector, has_lora_adapter=False,
        text_config={**text_config(letters), "model_type": "granite"},
        audio_token_index=letters.convert_tokens_to_ids("<|audio|>"), initializer_range=0.4,
    )  # fmt: skip
    extractor = with_torchaudio("granite_speech", "GraniteSpeechFeatureExtractor")()
    processor = transformers.GraniteSpeechProcessor(extractor, letters)
    return model_class(config), processor


@tiny("kyutai_speech_to_text")
def kyutai_speech_to_text() -> tuple[Any, Any]:
    letters = tokenizer()
    codec = {**SIZE, "head_dim": 16, "num_filters": 4, "codebook_dim": 8, "codebook_size": 32, "num_quantizers": 4}
    codec |= {"vector_quantization_hidden_dimension": 8, "upsample_groups": 32, "hidden_size": 32, "audio_channels": 1}
    config = transformers.KyutaiSpeechToTextConfig(
        codec_config=codec, vocab_size=len(letters), codebook_vocab_size=33, num_codebooks=4, hidden_size=32,
        num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=2, head_dim=16, ffn_dim=64, pad_token_id=3,
        bos_token_id=1, eos_token_id=2, audio_bos_token_id=32, audio_pad_token_id=33 * 4 + len(letters),
        max_position_embeddings=750, initializer_range=0.4,
    )  # fmt: skip
    extractor = transformers.KyutaiSpeechToTextFeatureExtractor(
        audio_delay_seconds=0.5, audio_silence_prefix_seconds=0.0
    )
    processor = transformers.KyutaiSpeechToTextProcessor(extractor, letters)
    return transformers.KyutaiSpeechToTextForConditionalGeneration(config), processor


def whisper_like(**more: Any) -> Any:
    return transformers.WhisperFeatureExtractor(feature_size=80, **more)


QWEN_ENCODER = {"d_model": 32, "encoder_layers": 1, "encoder_attention_heads": 2, "encoder_ffn_dim": 64}
AUDIO = {"num_mel_bins": 80, "max_source_positions": 1500}


@tiny("qwen3_asr")
def qwen3_asr() -> tuple[Any, Any]:
    letters = tokenizer(
        "<asr_text>", audio_token="<|audio_pad|>", audio_bos_token="<|audio_start|>", audio_eos_token="<|audio_end|>"
    )
    encoder = {
        "d_model": 32,
        "encoder_layers": 1,
        "encoder_attention_heads": 2,
        "encoder_ffn_dim": 64,
        "output_dim": 32,
    }
    encoder |= {"downsample_hidden_size": 8, "num_mel_bins": 80, **LOUD}
    config = transformers.Qwen3ASRConfig(
        audio_config=encoder, text_config={**text_config(letters), "model_type": "qwen3"}, pad_token_id=3,
        audio_token_id=letters.convert_tokens_to_ids("<|audio_pad|>"), eos_token_id=2,
    )  # fmt: skip
    template = CHAT.replace("AUDIO", "<|audio_start|><|audio_pad|><|audio_end|>")
    extractor = transformers.Qwen3ASRFeatureExtractor(feature_size=80)
    processor = transformers.Qwen3ASRProcessor(extractor, letters, chat_template=template)
    return transformers.Qwen3ASRForConditionalGeneration(config), processor


@tiny("glmasr")
def glmasr() -> tuple[Any, Any]:
    letters = tokenizer("<|pad|>")
    config = transformers.GlmAsrConfig(
        audio_config={**SIZE, **LOUD, "num_mel_bins": 80, "head_dim": 16, "max_position_embeddings": 1500},
        text_config={**text_config(letters), "model_type": "llama"},
        audio_token_id=letters.convert_tokens_to_ids("<|pad|>"),
    )
    processor = transformers.GlmAsrProcessor(whisper_like(), letters, chat_template=CHAT.replace("AUDIO", "<|pad|>"))
    return transformers.GlmAsrForConditionalGeneration(config), processor


@tiny("fun_asr_nano")
def fun_asr_nano() -> tuple[Any, Any]:
    letters = tokenizer("<|object_ref_start|>")
    encoder = {**SIZE, **LOUD, "num_timestamp_prediction_layers": 1, "num_mel_bins": 80, "num_stacked_frames": 7}
    config = transformers.FunAsrNanoConfig(
        audio_config=encoder, text_config={**text_config(letters), "model_type": "qwen3"},
        adaptor_config={**SIZE, "intermediate_size": 8, "projector_hidden_size": 32},
        audio_token_id=letters.convert_tokens_to_ids("<|object_ref_start|>"), initializer_range=0.4,
    )  # fmt: skip
    processor = transformers.FunAsrNanoProcessor(
        with_torchaudio("fun_asr_nano", "FunAsrNanoFeatureExtractor")(),
        letters,
        chat_template=CHAT.replace("AUDIO", "<|object_ref_start|>"),
    )
    return transformers.FunAsrNanoForConditionalGeneration(config), processor


@tiny("moss_transcribe_diarize")
def moss_transcribe_diarize() -> tuple[Any, Any]:
    letters = tokenizer("<|audio_pad|>", "<|audio_start|>", "<|audio_end|>")
    config = transformers.MossTranscribeDiarizeConfig(
        audio_config={**SIZE, **LOUD, **AUDIO}, text_config={**text_config(letters), "model_type": "qwen3"},
        audio_token_id=letters.convert_tokens_to_ids("<|audio_pad|>"),
    )  # fmt: skip
    processor = transformers.MossTranscribeDiarizeProcessor(
        transformers.MossTranscribeDiarizeFeatureExtractor(feature_size=80), letters,
        chat_template=CHAT.replace("AUDIO", "<|audio_start|><|audio_pad|><|audio_end|>"),
    )  # fmt: skip
    return transformers.MossTranscribeDiarizeForConditionalGeneration(config), processor


@tiny("vibevoice_asr")
def vibevoice_asr() -> tuple[Any, Any]:
    letters = tokenizer("<|box_start|>", "<|object_ref_start|>", "<|object_ref_end|>", "<|AUDIO_DURATION|>")
    codec = {"num_filters": 4, "depths": [1] * 7, "hidden_size": 8, "initializer_range": 0.4}
    config = transformers.VibeVoiceAsrConfig(
        acoustic_tokenizer_encoder_config=codec, semantic_tokenizer_encoder_config={**codec, "hidden_size": 16},
        text_config={**text_config(letters), "model_type": "qwen2"},
        audio_token_id=letters.convert_tokens_to_ids("<|box_start|>"),
        audio_bos_token_id=letters.convert_tokens_to_ids("<|object_ref_start|>"),
        audio_eos_token_id=letters.convert_tokens_to_ids("<|object_ref_end|>"),
    )  # fmt: skip
    template = CHAT.replace("AUDIO", "<|object_ref_start|><|box_start|><|object_ref_end|>")
    extractor = transformers.VibeVoiceAcousticTokenizerFeatureExtractor()
    processor = transformers.VibeVoiceAsrProcessor(extractor, letters, chat_template=template)
    return transformers.VibeVoiceAsrForConditionalGeneration(config), processor


@tiny("qwen2_audio")
def qwen2_audio() -> tuple[Any, Any]:
    letters = tokenizer("<|AUDIO|>", "<|audio_bos|>", "<|audio_eos|>", "<|im_start|>", "<|im_end|>")
    config = transformers.Qwen2AudioConfig(
        audio_config={**QWEN_ENCODER, **LOUD, **AUDIO}, text_config={**text_config(letters), "model_type": "qwen2"},
        audio_token_index=letters.convert_tokens_to_ids("<|AUDIO|>"),
    )  # fmt: skip
    processor = transformers.Qwen2AudioProcessor(whisper_like(), letters)
    return transformers.Qwen2AudioForConditionalGeneration(config), processor


VISION = {"depth": 1, "hidden_size": 32, "num_heads": 2, "intermediate_size": 64, "out_hidden_size": 32}
OMNI = {
    "image_token": "<|IMAGE|>", "audio_token": "<|AUDIO|>", "video_token": "<|VIDEO|>",
    "vision_bos_token": "<|vision_bos|>", "vision_eos_token": "<|vision_eos|>", "audio_bos_token": "<|audio_bos|>",
    "audio_eos_token": "<|audio_eos|>",
}  # fmt: skip
ROPE = {"rope_type": "default", "mrope_section": [2, 3, 3], "rope_theta": 10000.0}


class NoPictures(transformers.BaseImageProcessor):
    """Stands where a part for images belongs, which would need torchvision."""


def omni_processor(kind: Any, letters: Any) -> Any:
    template = CHAT.replace("AUDIO", "<|audio_bos|><|AUDIO|><|audio_eos|>")
    kind.check_argument_for_proper_class = lambda self, name, argument: type(argument)
    return kind(NoPictures(), NoPictures(), whisper_like(), letters, chat_template=template)


@tiny("qwen2_5_omni")
def qwen2_5_omni() -> tuple[Any, Any]:
    letters = tokenizer(**OMNI)
    ids = {name: letters.convert_tokens_to_ids(token) for name, token in OMNI.items()}
    thinker = {
        "audio_config": {**QWEN_ENCODER, **LOUD, **AUDIO, "output_dim": 32}, "vision_config": VISION,
        "text_config": {**text_config(letters), "rope_parameters": ROPE}, "audio_token_index": ids["audio_token"],
        "image_token_index": ids["image_token"], "video_token_index": ids["video_token"],
        "audio_start_token_id": ids["audio_bos_token"], "audio_end_token_id": ids["audio_eos_token"],
        "vision_start_token_id": ids["vision_bos_token"], "vision_end_token_id": ids["vision_eos_token"],
    }  # fmt: skip
    config = transformers.Qwen2_5OmniConfig(thinker_config=thinker, enable_audio_output=False)
    model = transformers.Qwen2_5OmniForConditionalGeneration(config)
    return model, omni_processor(transformers.Qwen2_5OmniProcessor, letters)


@tiny("qwen3_omni_moe")
def qwen3_omni_moe() -> tuple[Any, Any]:
    letters = tokenizer(**OMNI)
    ids = {name: letters.convert_tokens_to_ids(token) for name, token in OMNI.items()}
    experts = {"num_experts": 2, "num_experts_per_tok": 1, "moe_intermediate_size": 32, "rope_parameters": ROPE}
    encoder = {**QWEN_ENCODER, **LOUD, **AUDIO, "output_dim": 32, "downsample_hidden_size": 8}
    thinker = {
        "audio_config": encoder, "vision_config": {**VISION, "deepstack_visual_indexes": [0]},
        "text_config": {**text_config(letters), **experts}, "audio_token_id": ids["audio_token"],
        "image_token_id": ids["image_token"], "video_token_id": ids["video_token"],
        "audio_start_token_id": ids["audio_bos_token"], "vision_start_token_id": ids["vision_bos_token"],
    }  # fmt: skip
    config = transformers.Qwen3OmniMoeConfig(thinker_config=thinker, enable_audio_output=False)
    model = transformers.Qwen3OmniMoeForConditionalGeneration(config)
    return model, omni_processor(transformers.Qwen3OmniMoeProcessor, letters)


@tiny("phi4_multimodal")
def phi4_multimodal() -> tuple[Any, Any]:
    letters = tokenizer(image_token="<|image|>", audio_token="<|audio|>")
    letters.chat_template = CHAT_OF_TEXTS
    audio = {**SIZE, **LOUD, "num_blocks": 1, "nemo_conv_channels": 8, "audio_token_id": letters.audio_token_id}
    audio |= {"ext_pw_out_channel": 32, "depthwise_separable_out_channel": 32}
    rope = {"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 1.0}
    config = transformers.Phi4MultimodalConfig(
        audio_config=audio, vision_config={**SIZE, "num_hidden_layers": 2, "image_token_id": letters.image_token_id},
        **{**text_config(letters), "rope_parameters": rope},
    )  # fmt: skip
    extractor = transformers.Phi4MultimodalFeatureExtractor()
    processor = transformers.Phi4MultimodalProcessor(NoPictures(), extractor, letters)
    return transformers.Phi4MultimodalForCausalLM(config), processor


def tekken(**audio: Any) -> Any:
    """A tokenizer of mistral-common with the ASCII characters, and what it says of the audio."""
    from mistral_common.tokens.tokenizers.base import SpecialTokens

    special = [{"rank": at, "token_str": token.value, "is_control": True} for at, token in enumerate(SpecialTokens)]
    vocab = [
        {"rank": byte, "token_bytes": base64.b64encode(bytes([byte])).decode(), "token_str": None}
        for byte in range(128)
    ]
    config = {"pattern": r"[^\s]+|\s+", "num_vocab_tokens": 128, "default_vocab_size": 128 + len(special)}
    config |= {"default_num_special_tokens": len(special), "version": "v13"}
    about = {"sampling_rate": 16_000, "frame_rate": 12.5, **audio}
    about["audio_encoding_config"] = {"num_mel_bins": 80, "hop_length": 160, "window_size": 400}
    content = {"config": config, "vocab": vocab, "special_tokens": special, "audio": about}
    path = Path(tempfile.mkdtemp()) / "tekken.json"
    path.write_text(json.dumps(content))
    return transformers.MistralCommonBackend(tokenizer_path=path)


class VoxtralStandIn:
    """The interface of VoxtralProcessor, which needs mistral-common: a prompt, 30 s of audio at a time."""

    FRAMES = 375

    def __init__(self, letters: Any) -> None:
        self.feature_extractor, self.tokenizer = whisper_like(), letters

    def apply_transcription_request(
        self, audio: Any, model_id: str, language: Any = None, sampling_rate: Any = None, format: Any = None, **_: Any
    ) -> Any:
        assert format == ["wav"] * len(audio)
        features = self.feature_extractor(audio, sampling_rate=sampling_rate, return_tensors="pt")
        prompt = self.tokenizer.encode(f"lang:{language}", add_special_tokens=False)
        mark = self.tokenizer.convert_tokens_to_ids("[AUDIO]")
        ids = torch.tensor([[1, *[mark] * self.FRAMES, *prompt]] * len(audio))
        return {"input_ids": ids, "attention_mask": torch.ones_like(ids), "input_features": features.input_features}

    def decode(self, tokens: Any, **how: Any) -> Any:
        return self.tokenizer.decode(tokens, **how)

    def batch_decode(self, tokens: Any, **how: Any) -> list[str]:
        return self.tokenizer.batch_decode(tokens, **how)


@tiny("voxtral")
def voxtral() -> tuple[Any, Any]:
    letters = tekken(chunk_length_s=30.0) if MISTRAL else tokenizer("[AUDIO]")
    processor = transformers.VoxtralProcessor(whisper_like(), letters) if MISTRAL else VoxtralStandIn(letters)
    config = transformers.VoxtralConfig(
        audio_config={**SIZE, **LOUD, **AUDIO, "intermediate_size": 128},
        audio_token_id=letters.convert_tokens_to_ids("[AUDIO]"),
        text_config={**text_config(letters), "model_type": "llama"},
    )
    return transformers.VoxtralForConditionalGeneration(config), processor


class VoxtralRealtimeStandIn(VoxtralStandIn):
    """The interface of VoxtralRealtimeProcessor: silence before and after the audio, a token for every 80 ms."""

    LEFT, DELAY, BUFFER = 4, 6, 10
    num_delay_tokens, num_right_pad_tokens = DELAY, DELAY + 1 + BUFFER
    audio_length_per_tok, raw_audio_length_per_tok = 8, 1280
    num_mel_frames_first_audio_chunk = (DELAY + 1) * 8
    num_samples_first_audio_chunk = (num_mel_frames_first_audio_chunk - 1) * 160 + 200
    num_samples_per_audio_chunk = 8 * 160 + 400
    apply_transcription_request: Any = property()  # it has none

    def __init__(self, letters: Any) -> None:
        self.feature_extractor, self.tokenizer = transformers.VoxtralRealtimeFeatureExtractor(feature_size=80), letters

    def __call__(
        self, audio: Any, is_streaming: bool = False, is_first_audio_chunk: bool = True, sampling_rate: Any = None,
        **_: Any,
    ) -> Any:  # fmt: skip
        clips = audio if isinstance(audio, list) else [audio]
        left = np.zeros(self.LEFT * 1280, np.float32)
        if is_streaming:
            clips = [np.concatenate((left, clip)) if is_first_audio_chunk else clip for clip in clips]
        else:
            after = self.num_right_pad_tokens * 1280
            clips = [np.concatenate((left, pcm16(clip), np.zeros(after + -len(clip) % 1280))) for clip in clips]
        features = self.feature_extractor(
            [clip.astype(np.float32) for clip in clips],
            sampling_rate=sampling_rate,
            center=is_first_audio_chunk,
            return_tensors="pt",
        )
        more: dict[str, Any] = {"num_delay_tokens": self.DELAY}
        if is_first_audio_chunk:
            pad = self.tokenizer.convert_tokens_to_ids("[STREAMING_PAD]")
            more["input_ids"] = torch.tensor([[1, *[pad] * (self.LEFT + self.DELAY)]] * len(clips))
            more["attention_mask"] = torch.ones_like(more["input_ids"])
        return {**more, "input_features": features["input_features"]}


def pcm16(clip: Any) -> Any:
    """A clip as a WAV file keeps it."""
    file = io.BytesIO()
    soundfile.write(file, clip, 16_000, format="WAV")
    return soundfile.read(io.BytesIO(file.getvalue()), dtype="float32")[0]


@tiny("voxtral_realtime")
def voxtral_realtime() -> tuple[Any, Any]:
    if MISTRAL:
        live = {"transcription_format": "streaming", "transcription_delay_ms": 480.0, "streaming_n_left_pad_tokens": 4}
        letters = tekken(**live, streaming_look_ahead_ms=2.5, streaming_look_back_ms=52.5)
        extractor = transformers.VoxtralRealtimeFeatureExtractor(feature_size=80)
        processor = transformers.VoxtralRealtimeProcessor(extractor, letters)
    else:
        letters = tokenizer("[STREAMING_PAD]")
        processor = VoxtralRealtimeStandIn(letters)
    encoder = {**SIZE, **LOUD, "head_dim": 16, "num_mel_bins": 80}
    del encoder["num_key_value_heads"]
    config = transformers.VoxtralRealtimeConfig(
        audio_config=encoder, text_config={**text_config(letters), "eos_token_id": None, "tie_word_embeddings": False}
    )
    return transformers.VoxtralRealtimeForConditionalGeneration(config), processor


@tiny("nemo_speechlm")
def nemo_speechlm() -> tuple[Any, Any]:
    letters = tokenizer("<|audio|>")
    encoder = {**SIZE, **LOUD, "num_mel_bins": 80}
    speakers = {"num_speakers": 2}
    diarization = {
        "audio_config": encoder,
        "head_config": {"hidden_size": 16, "audio_hidden_size": 32, **speakers},
        "streaming_config": speakers,
    }
    mixture = {"layers_block_type": ["linear_attention", "moe", "full_attention"], "ssm_state_size": 8}
    mixture |= {"mamba_num_heads": 4, "mamba_head_dim": 16, "n_groups": 2, "chunk_size": 16, "n_routed_experts": 2}
    mixture |= {"num_experts_per_tok": 1, "moe_intermediate_size": 32, "moe_shared_expert_intermediate_size": 32}
    text = {key: value for key, value in text_config(letters).items() if key != "num_hidden_layers"}
    config = transformers.Nemotron3_5TranscribeConfig(
        audio_config={"asr_config": encoder, "diarization_config": diarization},
        text_config={**text, **mixture, "model_type": "nemotron_h", "use_mamba_kernels": False},
        word_timestamp_config={**SIZE, "vocab_size": 8, "blank_token_id": 7},
        audio_token_id=letters.convert_tokens_to_ids("<|audio|>"),
    )
    template = CHAT.replace("AUDIO", "<|audio|>")
    extractor = transformers.NemotronAsrStreamingFeatureExtractor(feature_size=80)
    processor = transformers.Nemotron3_5TranscribeProcessor(extractor, letters, tokenizer(), chat_template=template)
    return transformers.Nemotron3_5TranscribeForConditionalGeneration(config), processor


@tiny("audioflamingo3")
def audioflamingo3() -> tuple[Any, Any]:
    letters = tokenizer("<sound>")
    config = transformers.AudioFlamingo3Config(
        audio_config={**SIZE, **LOUD, **AUDIO}, text_config={**text_config(letters), "model_type": "qwen2"},
        audio_token_id=letters.convert_tokens_to_ids("<sound>"),
    )  # fmt: skip
    processor = transformers.AudioFlamingo3Processor(
        whisper_like(), letters, chat_template=CHAT.replace("AUDIO", "<sound>")
    )
    return transformers.AudioFlamingo3ForConditionalGeneration(config), processor


@tiny("speech_to_text")
def speech_to_text() -> tuple[Any, Any]:
    letters = tokenizer()
    config = transformers.Speech2TextConfig(
        vocab_size=len(letters), d_model=32, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
        decoder_attention_heads=2, encoder_ffn_dim=64, decoder_ffn_dim=64, conv_channels=32, init_std=0.4,
        pad_token_id=3, bos_token_id=1, eos_token_id=2, decoder_start_token_id=2,
    )  # fmt: skip
    model = transformers.Speech2TextForConditionalGeneration(config)
    return model, transformers.Speech2TextProcessor(transformers.Speech2TextFeatureExtractor(), letters)
