"""Whisper on CTranslate2: `faster-whisper:tiny.en`, an id of the Hub, or a converted folder.

Its own long-form decoding, with the temperature held at 0: by default it falls back to sampling, and runs would differ.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from srb.core.audio import RATE, resample
from srb.core.errors import UserError
from srb.models.interface import Clip, Described, Recogniser, folder_revision, need, with_confidences


@dataclass
class FasterWhisper(Described):
    """One clip per worker at a time."""

    model: Any = None
    beams: int = 5
    forced_language: str | None = None
    confidence: bool = False
    pool: Any = None

    def transcribe(self, clips: list[Clip], rate: int, language: str | None) -> list[str]:
        return list(self.pool.map(lambda clip: self._one(resample(clip, rate, RATE), language), clips))

    def _one(self, clip: Clip, language: str | None) -> str:
        if not len(clip):
            return ""
        segments, _ = self.model.transcribe(
            clip,
            language=self.forced_language or language,
            task="transcribe",
            beam_size=self.beams,
            temperature=0.0,
            word_timestamps=self.confidence,
        )
        spoken = list(segments)
        text = " ".join(segment.text.strip() for segment in spoken)
        if not self.confidence:
            return text
        words = (word for segment in spoken for word in segment.words or ())
        return with_confidences(text, ((word.word.strip(), word.probability, word.start, word.end) for word in words))

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
) -> Recogniser:
    """`faster-whisper:<size, id or folder>`; `dtype` is CTranslate2's compute type: float16, int8, ...

    `confidence` adds how sure it is of each word; it then looks for their places, which can move the window of a long
    clip.
    """
    package = need("faster_whisper", "faster-whisper", "pip install faster-whisper")
    if not target:
        raise UserError("'faster-whisper' needs a model: faster-whisper:tiny.en, or faster-whisper:<folder>")
    folder = Path(target)
    return FasterWhisper(
        name=folder.resolve().name if folder.is_dir() else target,
        revision=folder_revision(folder, ("*.bin", "*.json")) if folder.is_dir() else None,
        options={
            **{"device": device, "dtype": dtype, "beams": beams, "language": language or None, "workers": workers},
            **({"confidence": True} if confidence else {}),
        },
        batch_size=4 * workers,
        model=package.WhisperModel(target, device=device, compute_type=dtype, num_workers=workers),
        beams=beams,
        forced_language=language or None,
        confidence=confidence,
        pool=ThreadPoolExecutor(workers, thread_name_prefix="faster-whisper"),
    )
