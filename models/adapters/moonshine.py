"""Moonshine Tiny (English), the model that `moonshine-voice==0.1.0` carries, on plain onnxruntime.

The files are an encoder, a decoder with and without a key-value cache in one graph, and a vocabulary. Facts from the
files themselves and from Moonshine's authors (Jeffries et al. 2024): no more than 6.5 tokens a second of audio, which
is the rule that stops a decoder that loops; token 1 starts, token 2 ends.

The graphs are dynamically quantised with one scale per tensor, and the first layer is normalised over the whole clip,
so both a neighbour in the batch and padding would change what a clip gives (hidden states move by a tenth of their
range). Hence a batch is spread over threads, each clip alone in its tensors: the same text in any company.
"""

from __future__ import annotations

import importlib.util
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from speech_robust_bench.core.audio import RATE, resample
from speech_robust_bench.core.engines import cores
from speech_robust_bench.core.errors import UserError, install_hint
from speech_robust_bench.models.interface import Clip, Described, Recogniser, folder_revision, need, split_at_pauses

INSTALL = f"{install_hint('demo')} (or pip install --no-deps moonshine-voice==0.1.0)"
TOKENS_PER_S = 6.5
START, END = 1, 2
SHORTEST_S = 0.1  # the encoder's convolutions need 895 samples for one frame; a shorter clip is padded with silence
LONGEST_S = 30.0  # trained on clips of 4 to 30 s; longer ones are cut at a pause


@dataclass
class Moonshine(Described):
    """Greedy decoding, one clip per thread."""

    encoder: Any = None
    decoder: Any = None
    vocabulary: tuple[bytes, ...] = ()
    pool: Any = None

    def transcribe(self, clips: list[Clip], rate: int, language: str | None) -> list[str]:
        return list(self.pool.map(lambda clip: self._one(resample(clip, rate, RATE)), clips))

    def _one(self, clip: Clip) -> str:
        pieces = split_at_pauses(clip, RATE, LONGEST_S)
        return " ".join(filter(None, (self._text(self._tokens(piece)) for piece in pieces)))

    def _tokens(self, clip: Clip) -> list[int]:
        shortfall = int(SHORTEST_S * RATE) - len(clip)
        samples = np.pad(clip, (0, max(0, shortfall)))[None].astype(np.float32)
        mask = np.ones(samples.shape, np.int64)  # the decoder too takes it at the audio's rate
        hidden = _run(self.encoder, {"input_values": samples, "attention_mask": mask})[0]
        puts = [put for put in self.decoder.get_inputs() if put.name.startswith("past_key_values")]
        cache = {put.name: np.zeros((1, put.shape[1], 0, put.shape[3]), np.float32) for put in puts}
        tokens = [START]
        for step in range(max(1, int(len(clip) / RATE * TOKENS_PER_S))):
            logits, *present = _run(
                self.decoder,
                {
                    "input_ids": np.array([[tokens[-1]]], np.int64),
                    "encoder_hidden_states": hidden,
                    "encoder_attention_mask": mask,
                    "use_cache_branch": np.array([step > 0]),
                    **cache,
                },
            )
            for name, value in zip(list(cache), present, strict=True):
                if step == 0 or ".decoder." in name:  # the encoder's part is only computed in the first step
                    cache[name] = value
            token = int(logits[0, -1].argmax())
            if token == END:
                break
            tokens.append(token)
        return tokens[1:]

    def _text(self, tokens: list[int]) -> str:
        joined = b"".join(self.vocabulary[token] for token in tokens if token > END)
        return joined.decode("utf-8", "replace").replace("▁", " ").strip()

    def close(self) -> None:
        self.pool.shutdown(wait=False, cancel_futures=True)


def _run(session: Any, values: dict[str, np.ndarray]) -> list[np.ndarray]:
    """The outputs of a graph, given those of the values that it takes: older graphs (base-en) have no masks."""
    return session.run(None, {put.name: values[put.name] for put in session.get_inputs()})


def load(target: str, *, threads: int = 0) -> Recogniser:
    """`moonshine`, or `moonshine:<folder>` with the three files; `threads` 0 is one per core.

    The graphs may be .onnx instead of .ort: the weights of base-en are then unpacked once, not for every token.
    """
    onnxruntime = need("onnxruntime", "moonshine", INSTALL)
    folder = Path(target) if target else assets() / "tiny-en"
    kind = "onnx" if (folder / "encoder_model.onnx").is_file() else "ort"
    for name in (f"encoder_model.{kind}", f"decoder_model_merged.{kind}", "tokenizer.bin"):
        if not (folder / name).is_file():
            raise UserError(f"moonshine: {folder / name} is missing; {INSTALL}")
    threads = threads or cores()
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = 1  # the threads are ours: one clip each
    settings.inter_op_num_threads = 1

    def session(name: str) -> Any:
        path = str(folder / f"{name}.{kind}")
        return onnxruntime.InferenceSession(path, settings, providers=["CPUExecutionProvider"])

    return Moonshine(
        name=folder.resolve().name if target else "moonshine-tiny",
        revision=folder_revision(folder, (f"*.{kind}", "*.bin")),
        options={"tokens_per_s": TOKENS_PER_S, "longest_s": LONGEST_S, "threads": threads},
        batch_size=4 * threads,
        encoder=session("encoder_model"),
        decoder=session("decoder_model_merged"),
        vocabulary=read_vocabulary((folder / "tokenizer.bin").read_bytes()),
        pool=ThreadPoolExecutor(threads, thread_name_prefix="moonshine"),
    )


def assets() -> Path:
    """Where moonshine-voice keeps its files. It is not imported: that would load its own native library."""
    package = importlib.util.find_spec("moonshine_voice")
    if not package or not package.origin:
        raise UserError(f"moonshine: the model files are not installed: {INSTALL}")
    return Path(package.origin).parent / "assets"


def read_vocabulary(data: bytes) -> tuple[bytes, ...]:
    """`tokenizer.bin`: one entry per token, its length (two bytes, low seven bits first, from 128 on) and its bytes."""
    tokens, at = [], 0
    while at < len(data):
        length, at = data[at], at + 1
        if length >= 128:
            length, at = length - 128 + 128 * data[at], at + 1
        tokens.append(data[at : at + length])
        at += length
    return tuple(tokens)
