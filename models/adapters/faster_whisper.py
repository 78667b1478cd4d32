"""Whisper on CTranslate2: `faster-whisper:tiny.en`, an id of the Hub, or a converted folder.

Its own long-form decoding, with the temperature held at 0: by default it falls back to sampling, and runs would differ.
With `window_s`, a clip that fits is padded to that window instead of 30 s (whisper.cpp's audio context) and decoded
without timestamps. The encoder's work grows faster than the window: 15 s take a third of the time of 30.
"""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from speech_robust_bench.core.audio import RATE, resample
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.models.interface import (
    Clip,
    Described,
    Recogniser,
    folder_revision,
    need,
    with_alternatives,
    with_confidences,
)
from speech_robust_bench.models.prompts import fingerprint, read_terms

FRAMES_PER_S = 100
LONGEST_WINDOW_S = 30
LONGEST = 448  # tokens, Whisper's own bound
TOKENS_PER_S = 10  # of English, and a second's more: fast speech has six, and short windows make Whisper repeat itself
NO_SPEECH, LOW_LOGPROB = 0.6, -1.0  # Whisper's own rule for silence: both must hold


@dataclass
class FasterWhisper(Described):
    """One clip per worker at a time."""

    model: Any = None
    beams: int = 5
    forced_language: str | None = None
    confidence: bool = False
    window_s: float = 0.0  # 0: 30 s, for all clips
    nbest: int = 0
    hotwords: str | None = None
    pool: Any = None

    def transcribe(self, clips: list[Clip], rate: int, language: str | None) -> list[str]:
        return list(self.pool.map(lambda clip: self._one(resample(clip, rate, RATE), language), clips))

    def _one(self, clip: Clip, language: str | None) -> str:
        if not len(clip):
            return ""
        language = self.forced_language or language
        if language and len(clip) <= self.window_s * RATE:
            return self._in_one_window(clip, language)
        segments, _ = self.model.transcribe(
            clip,
            language=language,
            task="transcribe",
            beam_size=self.beams,
            temperature=0.0,
            word_timestamps=self.confidence,
            hotwords=self.hotwords,
        )
        spoken = list(segments)
        text = " ".join(segment.text.strip() for segment in spoken)
        if not self.confidence:
            return text
        words = (word for segment in spoken for word in segment.words or ())
        return with_confidences(text, ((word.word.strip(), word.probability, word.start, word.end) for word in words))

    def _in_one_window(self, clip: Clip, language: str) -> str:
        from faster_whisper.audio import pad_or_trim
        from faster_whisper.tokenizer import Tokenizer

        model, frames = self.model, round(self.window_s * FRAMES_PER_S)
        features = pad_or_trim(model.feature_extractor(clip)[:, :frames], frames)
        tokenizer = Tokenizer(model.hf_tokenizer, model.model.is_multilingual, "transcribe", language)
        prompt = model.get_prompt(tokenizer, [], without_timestamps=True, hotwords=self.hotwords)
        [result] = model.model.generate(
            model.encode(features),
            [prompt],
            beam_size=self.beams,
            max_length=len(prompt) + math.ceil((1 + len(clip) / RATE) * TOKENS_PER_S) if language == "en" else LONGEST,
            num_hypotheses=self.nbest or 1,
            return_scores=True,
            return_no_speech_prob=True,
        )
        silent = result.no_speech_prob > NO_SPEECH and result.scores[0] < LOW_LOGPROB
        texts = ["" if silent else tokenizer.decode(ids).strip() for ids in result.sequences_ids]
        return with_alternatives(texts) if self.nbest else texts[0]

    def close(self) -> None:
        self.pool.shutdown(wait=False, cancel_futures=True)


def load(
    target: str,
    *,
    device: str = "auto",
    dtype: str = "default",
    beams: int = 5,
    language: str = "",
    workers: int = 1,
    confidence: bool = False,
    window_s: float = 0.0,
    nbest: int = 0,
    terms: str = "",
) -> Recogniser:
    """`faster-whisper:<size, id or folder>`; `dtype` is CTranslate2's compute type: float16, int8, ...

    `confidence` adds how sure it is of each word; it then looks for their places, which can move the window of a long
    clip. `window_s` is the window of clips that fit into it; `nbest` stores that many transcripts of these clips.
    `terms` is a file of terms, which go into the prompt as hotwords.
    """
    if not 0 <= window_s <= LONGEST_WINDOW_S:
        raise UserError(f"faster-whisper: window_s is at most {LONGEST_WINDOW_S} s, not {window_s:g}")
    if window_s and confidence:
        raise UserError("faster-whisper: confidence needs timestamps, which window_s leaves out; give one of the two")
    if nbest and not (window_s and beams >= nbest):
        raise UserError(
            f"faster-whisper: nbest={nbest} needs window_s (its way with long clips keeps one transcript) and at least "
            f"as many beams: window_s={LONGEST_WINDOW_S}&beams={max(nbest, beams)}"
        )
    package = need("faster_whisper", "faster-whisper", "pip install faster-whisper")
    if not target:
        raise UserError("'faster-whisper' needs a model: faster-whisper:tiny.en, or faster-whisper:<folder>")
    folder = Path(target)
    expected = read_terms(terms) if terms else []
    model = package.WhisperModel(target, device=device, compute_type=dtype, num_workers=workers)
    return FasterWhisper(
        name=folder.resolve().name if folder.is_dir() else target,
        revision=folder_revision(folder, ("*.bin", "*.json")) if folder.is_dir() else None,
        options={
            **{"device": device, "dtype": dtype, "beams": beams, "language": language or None, "workers": workers},
            **({"confidence": True} if confidence else {}),
            **({"window_s": window_s} if window_s else {}),
            **({"nbest": nbest} if nbest else {}),
            **({"terms": fingerprint(expected)} if expected else {}),
        },
        batch_size=4 * workers,
        model=model,
        beams=beams,
        forced_language=language or None,
        confidence=confidence,
        window_s=window_s,
        nbest=nbest,
        hotwords=hotwords(model, expected) if expected else None,
        pool=ThreadPoolExecutor(workers, thread_name_prefix="faster-whisper"),
    )


def hotwords(model: Any, terms: list[str]) -> str:
    """The terms as faster-whisper takes them; it would cut off what does not fit into the prompt."""
    text = ", ".join(terms)
    tokens = len(model.hf_tokenizer.encode(f" {text}", add_special_tokens=False).ids)
    if tokens >= LONGEST // 2:
        raise UserError(f"{len(terms)} terms are {tokens} tokens; Whisper's prompt has room for {LONGEST // 2 - 1}")
    return text
