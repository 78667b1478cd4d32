"""The view of Whisper: 30 s of log-mel spectrogram, computed in torch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional

from srb.attacks.clips import AttackClip, mask_of
from srb.attacks.differentiable.encoder_decoder import Seq2SeqView
from srb.core.audio import RATE
from srb.models.hf.whisper import WHISPER_S


@dataclass
class WhisperView(Seq2SeqView):
    """Whisper: 30 s of log-mel spectrogram, whatever the clip's length (Radford et al. 2023, 2.2)."""

    extractors: ClassVar[tuple[str, ...]] = ("WhisperFeatureExtractor",)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.longest_s = WHISPER_S

    def inputs(self, waves: Tensor, lengths: Tensor) -> dict[str, Tensor]:
        waves, lengths = self._long_enough(waves, lengths)
        waves = waves * mask_of(lengths, waves.shape[1])
        waves = functional.pad(waves, (0, self.extractor.n_samples - waves.shape[1]))
        window = torch.hann_window(self.extractor.n_fft, device=waves.device, dtype=waves.dtype)
        spectrum = torch.stft(
            waves, self.extractor.n_fft, self.extractor.hop_length, window=window, return_complex=True
        )[..., :-1]
        power = (spectrum.real.square() + spectrum.imag.square()).contiguous()
        filters = torch.from_numpy(self.extractor.mel_filters).to(waves)
        logs = (filters.T @ power).clamp_min(1e-10).log10()
        logs = logs.maximum(logs.amax((1, 2), keepdim=True) - 8.0)
        return {"input_features": ((logs + 4.0) / 4.0).to(self.model.dtype)}

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
