"""Vosk (Kaldi) with a model folder from https://alphacephei.com/vosk/models: `vosk:<folder>`.

A batch is spread over threads; every clip has a recogniser of its own, fed in quarter seconds so that Vosk finds the
ends of sentences in long clips as it does on a stream.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from speech_robust_bench.core.audio import to_pcm16
from speech_robust_bench.core.engines import cores
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.options import Settings
from speech_robust_bench.models.interface import (
    Clip,
    Described,
    Event,
    Recogniser,
    Word,
    folder_revision,
    need,
    with_alternatives,
    with_confidences,
)
from speech_robust_bench.models.prompts import fingerprint, read_terms

UNKNOWN = "[unk]"  # of a grammar: what is none of its words


@dataclass
class Vosk(Described):
    """One model, shared by the threads."""

    vosk: Any = None
    model: Any = None
    pool: Any = None
    nbest: int = 0
    terms: tuple[str, ...] = ()

    def transcribe(self, clips: list[Clip], rate: int, language: str | None) -> list[str]:
        return list(self.pool.map(lambda clip: self._one(clip, rate), clips))

    def _one(self, clip: Clip, rate: int) -> str:
        recogniser = self._recogniser(rate)
        pcm, step = to_pcm16(clip.clip(-1, 1)), rate // 4
        parts = []
        for start in range(0, len(pcm), step):
            if recogniser.AcceptWaveform(pcm[start : start + step].tobytes()):
                parts.append(json.loads(recogniser.Result()))
        parts.append(json.loads(recogniser.FinalResult()))
        if not self.nbest:
            return _joined(parts)
        return with_alternatives(
            [_joined(choice) for choice in best_joint([p["alternatives"] for p in parts], self.nbest)]
        )

    def _recogniser(self, rate: int) -> Any:
        recogniser = self._told_the_terms(rate)
        recogniser.SetWords(True)
        if self.nbest:
            recogniser.SetMaxAlternatives(self.nbest)
        return recogniser

    def stream(self, rate: int, language: str | None) -> VoskSession:
        return VoskSession(self._told_the_terms(rate))

    def _told_the_terms(self, rate: int) -> Any:
        grammar = [json.dumps([*map(str.lower, self.terms), UNKNOWN])] if self.terms else []
        return self.vosk.KaldiRecognizer(self.model, rate, *grammar)

    def close(self) -> None:
        self.pool.shutdown(wait=False, cancel_futures=True)


def _joined(parts: Sequence[Settings]) -> str:
    """The parts of a clip as one text, with the times of its words, and their confidences where Vosk tells them."""
    words = (word for part in parts for word in part.get("result", ()) if word["word"] != UNKNOWN)
    text = " ".join(part["text"] for part in parts if part["text"])
    return with_confidences(
        _known(text),
        ((word["word"], word.get("conf"), word["start"], word["end"]) for word in words),
    )


def _known(text: str) -> str:
    """A text without the words that a grammar does not have."""
    return " ".join(text.replace(UNKNOWN, " ").split())


def best_joint(parts: Sequence[Sequence[Settings]], count: int) -> list[list[Settings]]:
    """The best ways to choose one alternative of each part; log-likelihoods (Vosk's `confidence`) of parts add up.

    >>> first, second = [{"confidence": 5.0}, {"confidence": 1.0}], [{"confidence": 3.0}, {"confidence": 2.0}]
    >>> [[part["confidence"] for part in choice] for choice in best_joint([first, second], 2)]
    [[5.0, 3.0], [5.0, 2.0]]
    """
    best: list[tuple[float, list[Settings]]] = [(0.0, [])]
    for alternatives in parts:
        longer = [(score + each["confidence"], [*chosen, each]) for score, chosen in best for each in alternatives]
        best = heapq.nlargest(count, longer, key=lambda pair: pair[0])
    return [chosen for _, chosen in best]


class VoskSession:
    """Vosk live: partial results as they change, a final one at each end of sentence that it finds."""

    def __init__(self, recogniser: Any) -> None:
        self._recogniser = recogniser
        self._recogniser.SetWords(True)
        self._shown = ""

    def accept(self, chunk: Clip) -> list[Event]:
        if self._recogniser.AcceptWaveform(to_pcm16(chunk.clip(-1, 1)).tobytes()):
            return self._final(self._recogniser.Result(), endpoint=True)
        text = _known(json.loads(self._recogniser.PartialResult())["partial"])
        if text == self._shown:
            return []
        self._shown = text
        return [Event(text)]

    def finish(self) -> list[Event]:
        return self._final(self._recogniser.FinalResult(), endpoint=False)

    def _final(self, answer: str, *, endpoint: bool) -> list[Event]:
        result = json.loads(answer)
        shown, self._shown = self._shown, ""
        text = _known(result["text"])
        if not text and not shown:
            return []
        known = (word for word in result.get("result", ()) if word["word"] != UNKNOWN)
        words = tuple(Word(word["word"], word["start"], word["end"]) for word in known)
        return [Event(text, final=True, words=words, endpoint=endpoint)]


def load(target: str, *, threads: int = 0, nbest: int = 0, terms: str = "") -> Recogniser:
    """`vosk:<folder>`; `threads` 0 is one per core.

    `nbest` stores that many transcripts of each clip. `terms` is a file of terms: they become a grammar, and Vosk then
    writes nothing else.
    """
    vosk = need("vosk", "vosk", "pip install vosk")
    folder = Path(target)
    if not target or not folder.is_dir():
        raise UserError(f"vosk:{target}: no such folder; unpack a model from https://alphacephei.com/vosk/models")
    vosk.SetLogLevel(-1)
    threads = threads or cores()
    expected = read_terms(terms) if terms else []
    return Vosk(
        name=folder.resolve().name,
        revision=folder_revision(folder, ("am/*.mdl", "conf/*", "graph/*.fst", "*.mdl", "*.fst")),
        options={
            "threads": threads,
            **({"nbest": nbest} if nbest else {}),
            **({"terms": fingerprint(expected)} if expected else {}),
        },
        batch_size=4 * threads,
        vosk=vosk,
        model=vosk.Model(str(folder)),
        pool=ThreadPoolExecutor(threads, thread_name_prefix="vosk"),
        nbest=nbest,
        terms=tuple(expected),
    )
