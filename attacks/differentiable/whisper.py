"""The view of Whisper, whose decoder begins with the language and the task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from speech_robust_bench.attacks.clips import AttackClip
from speech_robust_bench.attacks.differentiable.encoder_decoder import Seq2SeqView
from speech_robust_bench.core.audio import RATE
from speech_robust_bench.models.hf.whisper import WHISPER_S


@dataclass
class WhisperView(Seq2SeqView):
    """Whisper: 30 s of log-mel spectrogram, whatever the clip's length (Radford et al. 2023, 2.2)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.longest_s = WHISPER_S

    def their_inputs(self, clips: Sequence[AttackClip]) -> dict[str, Tensor]:
        features = self.processor([self._padded(clip) for clip in clips], sampling_rate=RATE, return_tensors="pt")
        return self.recogniser._placed(features)  # type: ignore[attr-defined]

    def tokens(self, text: str) -> list[int]:
        return super().tokens(f" {text}")  # as it writes: every sentence begins with a space

    def prompt(self, language: str | None) -> list[int]:
        words = ["<|startoftranscript|>"]
        if self.multilingual:
            words += [f"<|{self.recogniser._spoken(language) or language or 'en'}|>", "<|transcribe|>"]  # type: ignore[attr-defined]
        return self.tokenizer.convert_tokens_to_ids([*words, "<|notimestamps|>"])

    @property
    def multilingual(self) -> bool:
        return bool(getattr(self.model.generation_config, "is_multilingual", False))
