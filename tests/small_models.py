"""Folders of small transformers models with random weights, as `save_pretrained` leaves them."""

from __future__ import annotations

from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

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
