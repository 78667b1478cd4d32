"""Whisper as 8-bit ONNX graphs, in the layout of transformers.js: `python:benchmarks.whisper_onnx:WhisperSmall`.

Greedy, without timestamps, all 30 s of window, as `hf:` decodes Whisper. From the folder that holds models/.

    python benchmarks/whisper_onnx.py CLIP ...     # seconds of processor time and the text of each clip
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import soundfile

from speech_robust_bench.core.audio import RATE
from speech_robust_bench.models.interface import Clip, folder_revision

START, END, TRANSCRIBE, NO_TIMESTAMPS = "<|startoftranscript|>", "<|endoftext|>", "<|transcribe|>", "<|notimestamps|>"
LONGEST = 448  # tokens, Whisper's own bound


class WhisperSmall:
    """Whisper small, multilingual."""

    folder = "models/whisper-small-onnx"

    def __init__(self) -> None:
        import onnxruntime
        from transformers import WhisperFeatureExtractor, WhisperTokenizerFast

        folder = Path(self.folder)
        settings = onnxruntime.SessionOptions()
        settings.intra_op_num_threads = settings.inter_op_num_threads = 1
        self.encoder, self.decoder = (
            onnxruntime.InferenceSession(str(folder / "onnx" / f"{name}_quantized.onnx"), settings)
            for name in ("encoder_model", "decoder_model_merged")
        )
        self.kept = [entry.name for entry in self.decoder.get_outputs() if entry.name.startswith("present")]
        self.features = WhisperFeatureExtractor.from_pretrained(folder)
        self.tokenizer = WhisperTokenizerFast.from_pretrained(folder)
        self.generation = json.loads((folder / "generation_config.json").read_text(encoding="utf-8"))
        self.revision = folder_revision(folder, ("onnx/*.onnx", "*.json"))

    def transcribe(self, clips: list[Clip], rate: int, language: str | None) -> list[str]:
        if rate != RATE:
            raise ValueError(f"clips at {rate} Hz, not {RATE}")
        return [self._one(clip, language or "en") for clip in clips]

    def _one(self, clip: Clip, language: str) -> str:
        features = self.features(clip, sampling_rate=RATE, return_tensors="np").input_features.astype(np.float32)
        [states] = self.encoder.run(["last_hidden_state"], {"input_features": features})
        prompt = self.tokenizer.convert_tokens_to_ids([START, f"<|{language}|>", TRANSCRIBE, NO_TIMESTAMPS])
        end = self.tokenizer.convert_tokens_to_ids(END)
        written: list[int] = []
        inputs = self._first_inputs(prompt, states)
        while len(prompt) + len(written) < LONGEST:
            logits, *present = self.decoder.run(["logits", *self.kept], inputs)
            scores = logits[0, -1]
            scores[self._suppressed(first=not written)] = -np.inf
            token = int(scores.argmax())
            if token == end:
                break
            written.append(token)
            self._advance(inputs, token, present)
        return self.tokenizer.decode(written, skip_special_tokens=True).strip()

    def _first_inputs(self, prompt: list[int], states: np.ndarray) -> dict[str, Any]:
        """The whole prompt and an empty cache."""
        inputs: dict[str, Any] = {"input_ids": np.array([prompt], np.int64), "encoder_hidden_states": states}
        for entry in self.decoder.get_inputs():
            if entry.name.startswith("past_key_values"):
                inputs[entry.name] = np.zeros((1, entry.shape[1], 0, entry.shape[3]), np.float32)
        return inputs | {"use_cache_branch": np.array([False])}

    def _advance(self, inputs: dict[str, Any], token: int, present: list[np.ndarray]) -> None:
        """The next token, with what the decoder has kept; the encoder's part stays as the first call made it."""
        first = not inputs["use_cache_branch"][0]
        for name, value in zip(self.kept, present, strict=True):
            if first or ".decoder." in name:
                inputs[name.replace("present", "past_key_values")] = value
        inputs["input_ids"], inputs["use_cache_branch"] = np.array([[token]], np.int64), np.array([True])

    def _suppressed(self, first: bool) -> list[int]:
        """The tokens that may not be written, and at the beginning not even the end."""
        return [*self.generation["suppress_tokens"], *(self.generation["begin_suppress_tokens"] if first else ())]


def main() -> None:
    recogniser = WhisperSmall()
    for path in sys.argv[1:]:
        samples, rate = soundfile.read(path, dtype="float32")
        start = time.process_time()
        [text] = recogniser.transcribe([samples], rate, "en")
        print(f"{time.process_time() - start:.1f} s  {text}")


if __name__ == "__main__":
    main()
