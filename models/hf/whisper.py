"""Whisper: 30 s of input at a time; longer clips through its own long-form decoding (Radford et al. 2023, 3.8)."""

from __future__ import annotations

from typing import Any

from speech_robust_bench.models.hf.base import TransformersRecogniser
from speech_robust_bench.models.interface import Clip

WHISPER_S = 30.0


class Whisper(TransformersRecogniser):
    """Always 30 s of input; longer clips with timestamps, one window after the other."""

    def _padding_changes_nothing(self) -> bool:
        return True

    def _texts(self, clips: list[Clip], language: str | None) -> list[str]:
        texts = [""] * len(clips)
        limit = int(WHISPER_S * self.rate)
        for long in (False, True):
            kind = [index for index, clip in enumerate(clips) if (len(clip) > limit) is long]
            for start in range(0, len(kind), self.batch_size):
                indices = kind[start : start + self.batch_size]
                answers = self._generate([clips[i] for i in indices], long, language)
                for index, text in zip(indices, answers, strict=True):
                    texts[index] = text.strip()
        return texts

    def _generate(self, clips: list[Clip], long: bool, language: str | None) -> list[str]:
        how: dict[str, Any] = {"truncation": False, "padding": "longest"} if long else {}
        inputs = self.processor(clips, sampling_rate=self.rate, return_tensors="pt", return_attention_mask=True, **how)
        settings: dict[str, Any] = {"num_beams": self.beams}
        if long:
            settings["return_timestamps"] = True
        if getattr(self.model.generation_config, "is_multilingual", False):
            settings.update(task="transcribe", language=language)
        tokens = self.model.generate(**self._placed(inputs), **settings)
        return self.processor.batch_decode(tokens, skip_special_tokens=True)
