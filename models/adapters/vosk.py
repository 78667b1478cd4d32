"""Vosk (Kaldi) with a model folder from https://alphacephei.com/vosk/models: `vosk:<folder>`.

A batch is spread over threads; every clip has a recogniser of its own, fed in quarter seconds so that Vosk finds the
ends of sentences in long clips as it does on a stream.
"""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from speech_robust_bench.core.audio import to_pcm16
from speech_robust_bench.core.engines import cores
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.models.interface import (
    Clip,
    Described,
    Event,
    Recogniser,
    Word,
    folder_revision,
    need,
    with_confidences,
)


@dataclass
class Vosk(Described):
    """One model, shared by the threads."""

    vosk: Any = None
    model: Any = None
    pool: Any = None

    def transcribe(self, clips: list[Clip], rate: int, language: str | None) -> list[str]:
        return list(self.pool.map(lambda clip: self._one(clip, rate), clips))

    def _one(self, clip: Clip, rate: int) -> str:
        recogniser = self.vosk.KaldiRecognizer(self.model, rate)
        recogniser.SetWords(True)
        pcm, step = to_pcm16(clip.clip(-1, 1)), rate // 4
        parts = []
        for start in range(0, len(pcm), step):
            if recogniser.AcceptWaveform(pcm[start : start + step].tobytes()):
                parts.append(json.loads(recogniser.Result()))
        parts.append(json.loads(recogniser.FinalResult()))
        return with_confidences(
            " ".join(part["text"] for part in parts if part["text"]),
            (
                (word["word"], word["conf"], word["start"], word["end"])
                for part in parts
                for word in part.get("result", ())
            ),
        )

    def stream(self, rate: int, language: str | None) -> VoskSession:
        return VoskSession(self.vosk.KaldiRecognizer(self.model, rate))

    def close(self) -> None:
        self.pool.shutdown(wait=False, cancel_futures=True)


class VoskSession:
    """Vosk live: partial results as they change, a final one at each end of sentence that it finds."""

    def __init__(self, recogniser: Any) -> None:
        self._recogniser = recogniser
        self._recogniser.SetWords(True)
        self._shown = ""

    def accept(self, chunk: Clip) -> list[Event]:
        if self._recogniser.AcceptWaveform(to_pcm16(chunk.clip(-1, 1)).tobytes()):
            return self._final(self._recogniser.Result(), endpoint=True)
        text = json.loads(self._recogniser.PartialResult())["partial"]
        if text == self._shown:
            return []
        self._shown = text
        return [Event(text)]

    def finish(self) -> list[Event]:
        return self._final(self._recogniser.FinalResult(), endpoint=False)

    def _final(self, answer: str, *, endpoint: bool) -> list[Event]:
        result = json.loads(answer)
        shown, self._shown = self._shown, ""
        if not result["text"] and not shown:
            return []
        words = tuple(Word(word["word"], word["start"], word["end"]) for word in result.get("result", ()))
        return [Event(result["text"], final=True, words=words, endpoint=endpoint)]


def load(target: str, *, threads: int = 0) -> Recogniser:
    """`vosk:<folder>`; `threads` 0 is one per core."""
    vosk = need("vosk", "vosk", "pip install vosk")
    folder = Path(target)
    if not target or not folder.is_dir():
        raise UserError(f"vosk:{target}: no such folder; unpack a model from https://alphacephei.com/vosk/models")
    vosk.SetLogLevel(-1)
    threads = threads or cores()
    return Vosk(
        name=folder.resolve().name,
        revision=folder_revision(folder, ("am/*.mdl", "conf/*", "graph/*.fst", "*.mdl", "*.fst")),
        options={"threads": threads},
        batch_size=4 * threads,
        vosk=vosk,
        model=vosk.Model(str(folder)),
        pool=ThreadPoolExecutor(threads, thread_name_prefix="vosk"),
    )
