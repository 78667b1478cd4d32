"""Folders of small transformers models with random weights, as `save_pretrained` leaves them."""

from __future__ import annotations

import json
import string
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
from speech_robust_bench.attacks.views.base import View
from speech_robust_bench.attacks.views.open_view import open_view
from speech_robust_bench.models.adapters import hf

CTC_LETTERS = ["<pad>", "<s>", "</s>", "<unk>", "|", *string.ascii_lowercase, "'"]
LAYER = {"feat_extract_norm": "layer", "do_stable_layer_norm": True}
CONV = {"conv_dim": (16, 16), "conv_kernel": (400, 3), "conv_stride": (320, 1)}  # as coarse in time, with fewer layers


def letters_tokenizer(*more: str):
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    known = ["<unk>", "<s>", "</s>", *more, *sorted(pre_tokenizers.ByteLevel.alphabet())]
    backend = Tokenizer(models.BPE({letter: index for index, letter in enumerate(known)}, [], unk_token="<unk>"))
    backend.pre_tokenizer, backend.decoder = pre_tokenizers.ByteLevel(False), decoders.ByteLevel()
    return backend


def moonshine_folder(place: Path, initializer_range: float = 0.3) -> Path:
    torch.manual_seed(2)
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=letters_tokenizer(), unk_token="<unk>", bos_token="<s>", eos_token="</s>", pad_token="</s>"
    )
    extractor = transformers.Wav2Vec2FeatureExtractor(return_attention_mask=True, do_normalize=False)
    transformers.Wav2Vec2Processor(extractor, tokenizer).save_pretrained(place)
    config = transformers.MoonshineConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=64,
        encoder_num_hidden_layers=1,
        decoder_num_hidden_layers=1,
        encoder_num_attention_heads=2,
        decoder_num_attention_heads=2,
        initializer_range=initializer_range,
    )
    transformers.MoonshineForConditionalGeneration(config).save_pretrained(place)
    return place


def speecht5_folder(place: Path, initializer_range: float = 0.3) -> Path:
    sentencepiece = pytest.importorskip("sentencepiece")
    torch.manual_seed(3)
    (place / "text.txt").write_text("\n".join(["the quick brown fox jumps over the lazy dog"] * 20))
    sentencepiece.SentencePieceTrainer.train(
        input=str(place / "text.txt"), model_prefix=str(place / "spm"), model_type="char", vocab_size=31, pad_id=1,
        unk_id=3, bos_id=0, eos_id=2, minloglevel=2,
    )  # fmt: skip
    tokenizer = transformers.SpeechT5Tokenizer(str(place / "spm.model"))
    extractor = transformers.SpeechT5FeatureExtractor(return_attention_mask=True)
    transformers.SpeechT5Processor(extractor, tokenizer).save_pretrained(place)
    config = transformers.SpeechT5Config(
        vocab_size=len(tokenizer),
        hidden_size=32,
        encoder_layers=1,
        decoder_layers=1,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=64,
        decoder_ffn_dim=64,
        num_feat_extract_layers=2,
        num_conv_pos_embeddings=16,
        num_conv_pos_embedding_groups=4,
        initializer_range=initializer_range,
        pad_token_id=1,
        **CONV,
    )
    transformers.SpeechT5ForSpeechToText(config).save_pretrained(place)
    return place


def short_ctc_folder(place: Path, kind: str, **config: Any) -> Path:
    """A CTC model as coarse in time as the real ones, with two layers of convolutions."""
    return _ctc_folder(
        place, kind, [*CTC_LETTERS[:5], *string.ascii_uppercase, "'"], **CONV, initializer_range=0.5, **config
    )


def ctc_folder(place: Path, kind: str, **config: Any) -> Path:
    """A CTC model of two small layers with the alphabet and the convolutions of wav2vec2-base-960h."""
    return _ctc_folder(place, kind, CTC_LETTERS, conv_dim=(16,) * 7, initializer_range=1.0, **config)


def _ctc_folder(place: Path, kind: str, letters: list[str], **config: Any) -> Path:
    torch.manual_seed(1)
    (place / "vocab.json").write_text(json.dumps({letter: index for index, letter in enumerate(letters)}))
    tokenizer = transformers.Wav2Vec2CTCTokenizer(str(place / "vocab.json"))
    masked = config.get("feat_extract_norm") != "group"
    extractor = transformers.Wav2Vec2FeatureExtractor(return_attention_mask=masked, do_normalize=True)
    transformers.Wav2Vec2Processor(extractor, tokenizer).save_pretrained(place)
    settings = getattr(transformers, f"{kind}Config")(
        vocab_size=len(letters),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        num_conv_pos_embeddings=16,
        num_conv_pos_embedding_groups=4,
        pad_token_id=0,
        **config,
    )
    getattr(transformers, f"{kind}ForCTC")(settings).save_pretrained(place)
    return place


def whisper_folder(place: Path) -> Path:
    """A multilingual Whisper of three languages, which hears 2 s at a time."""
    torch.manual_seed(4)
    words = ("startoftranscript", "en", "es", "sr", "transcribe", "translate", "notimestamps")
    special = [f"<|{word}|>" for word in words]
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=letters_tokenizer(*special), unk_token="<unk>", eos_token="</s>", pad_token="</s>"
    )
    tokenizer.add_special_tokens({"additional_special_tokens": special})
    number = tokenizer.convert_tokens_to_ids
    transformers.WhisperFeatureExtractor(feature_size=20, chunk_length=2).save_pretrained(place)
    tokenizer.save_pretrained(place)
    config = transformers.WhisperConfig(
        vocab_size=len(tokenizer),
        num_mel_bins=20,
        max_source_positions=100,
        d_model=16,
        encoder_layers=1,
        decoder_layers=1,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=32,
        decoder_ffn_dim=32,
        init_std=0.5,
        pad_token_id=number("</s>"),
        bos_token_id=number("</s>"),
        eos_token_id=number("</s>"),
        decoder_start_token_id=number("<|startoftranscript|>"),
    )
    transformers.WhisperForConditionalGeneration(config).save_pretrained(place)
    return place


class ByHand:
    """The processor of the small Whisper: its tokenizer is no WhisperTokenizer, so AutoProcessor would not have it."""

    def __init__(self, folder: Path) -> None:
        self.feature_extractor = transformers.WhisperFeatureExtractor.from_pretrained(folder)
        self.tokenizer = transformers.PreTrainedTokenizerFast.from_pretrained(folder)
        self.batch_decode = self.tokenizer.batch_decode

    def __call__(self, clips, **more):
        return self.feature_extractor(clips, **more)


def whisper_view(folder: Path, language: str | None, dtype=torch.float32) -> View:
    model = transformers.WhisperForConditionalGeneration.from_pretrained(folder, torch_dtype=dtype).eval()
    processor = ByHand(folder)
    number = processor.tokenizer.convert_tokens_to_ids
    settings = model.generation_config
    settings.is_multilingual = True
    settings.lang_to_id = {f"<|{code}|>": number(f"<|{code}|>") for code in ("en", "es", "sr")}
    settings.task_to_id = {"transcribe": number("<|transcribe|>"), "translate": number("<|translate|>")}
    settings.no_timestamps_token_id = number("<|notimestamps|>")
    settings.max_length = 12
    recogniser = hf.Whisper("small", "1", {}, 4, model=model, processor=processor, forced_language=language)
    return open_view(recogniser)


ATTACKED_MODELS = {
    "wav2vec2 with group norm": lambda place: short_ctc_folder(place, "Wav2Vec2", feat_extract_norm="group"),
    "wav2vec2": lambda place: short_ctc_folder(place, "Wav2Vec2", **LAYER),
    "hubert": lambda place: short_ctc_folder(place, "Hubert", **LAYER),
    "wavlm": lambda place: short_ctc_folder(place, "WavLM", **LAYER),
    "data2vec": lambda place: short_ctc_folder(place, "Data2VecAudio"),
    "moonshine": moonshine_folder,
    "speecht5": speecht5_folder,
}
