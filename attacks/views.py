"""A recogniser as an attacker sees it: waveforms in, one loss per clip out, and gradients back to the waveforms.

The way to the loss repeats, in torch, the preprocessing that the recogniser uses when it transcribes; `check` proves on
the clips at hand that both give the model the same input. Samples behind a clip's end are never seen, so they have no
gradient, and nothing is averaged across clips.

A `python:` recogniser joins with one more method, `losses(waves, lengths, texts)`: a tensor (clip, sample), the true
lengths, the transcripts; one loss per clip back.
"""

from __future__ import annotations

import contextlib
import math
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional
from torch.nn.utils.rnn import pad_sequence

from srb.attacks import losses
from srb.attacks.clips import Batch, Clip, mask_of, padded
from srb.builders.audio import RATE
from srb.builders.errors import UserError
from srb.metrics.scoring import normalise
from srb.models.adapters import hf, python
from srb.models.interface import Recogniser

TOLERANCE = 1e-3  # of the features' spread: rounding, against another preprocessing
WITH_GRADIENTS = "hf: (transformers), python: (an object with a `losses` method) and smooth: over either"


@dataclass
class View:
    """What every attack needs of a recogniser."""

    recogniser: Recogniser
    precision: torch.dtype | None = None  # of autocast, for mixed precision
    pads_safely: bool = field(default=True, init=False)
    longest_s: float = field(default=float("inf"), init=False)

    @property
    def device(self) -> str:
        return "cpu"

    def losses(self, waves: Tensor, batch: Batch) -> Tensor:
        """One loss per clip."""
        raise NotImplementedError

    def gradient(self, waves: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
        """The losses, and the gradient of each clip's own loss."""
        waves = waves.detach().requires_grad_()
        with self._mixed():
            found = self.losses(waves, batch)
        for text, size, loss in zip(batch.texts, batch.lengths.tolist(), found.tolist(), strict=True):
            if not math.isfinite(loss):
                raise UserError(f"'{text}' is too much text for a clip of {size / RATE:.2f} s: its loss is {loss}")
        (slope,) = torch.autograd.grad(found.sum(), waves)
        return found.detach(), slope * mask_of(batch.lengths, waves.shape[1])

    def values(self, waves: Tensor, batch: Batch) -> Tensor:
        """The losses alone."""
        with torch.no_grad(), self._mixed():
            return self.losses(waves, batch)

    def transcribe(self, signals: Sequence[np.ndarray], language: str | None) -> list[str]:
        """What the recogniser itself hears."""
        return [text.strip() for text in self.recogniser.transcribe(list(signals), RATE, language)]

    def fit(self, text: str) -> str:
        """A transcript as the model would write it; an error where it cannot."""
        if not normalise(text):
            raise UserError("its transcript is empty: there is no loss to raise or lower")
        return text

    def check(self, clips: Sequence[Clip]) -> None:
        """Refuse to go on where the way to the loss does not give the model what transcribing gives it."""

    def compile(self) -> None:
        """Compile the model with torch.compile, where there is one to compile."""

    def _mixed(self) -> Any:
        if self.precision is None:
            return contextlib.nullcontext()
        return torch.autocast(torch.device(self.device).type, self.precision)


def open_view(recogniser: Recogniser, *, eot: int | None = None, precision: torch.dtype | None = None) -> View:
    """The differentiable view of an opened recogniser; `eot` is the number of draws for one with a random defence."""
    from srb.attacks.defences import Defended
    from srb.models.adapters.smooth import Smooth

    if isinstance(recogniser, Smooth):
        return Defended.of(recogniser, open_view(recogniser.inner, precision=precision), eot)
    for kind, view in ((hf.Whisper, WhisperView), (hf.Ctc, CtcView), (hf.Seq2Seq, Seq2SeqView)):
        if isinstance(recogniser, kind):
            return view(recogniser, precision)
    if isinstance(recogniser, python.Function) and hasattr(recogniser.owner, "losses"):
        return ModuleView(recogniser, precision)
    raise UserError(
        f"{recogniser.name} has no gradients; the adapters that have are {WITH_GRADIENTS}. "
        "genetic needs none, kenansville not even a model"
    )


@dataclass
class ModuleView(View):
    """A `python:` object that has its own `losses`; it may also have `fit`, `device`, `pads_safely`, `longest_s`."""

    def __post_init__(self) -> None:
        self.module = self.recogniser.owner  # type: ignore[attr-defined]
        self.pads_safely = getattr(self.module, "pads_safely", True)
        self.longest_s = getattr(self.module, "longest_s", float("inf"))

    @property
    def device(self) -> str:
        return str(getattr(self.module, "device", "cpu"))

    def losses(self, waves: Tensor, batch: Batch) -> Tensor:
        return self.module.losses(waves * mask_of(batch.lengths, waves.shape[1]), batch.lengths, batch.texts)

    def fit(self, text: str) -> str:
        text = super().fit(text)
        return self.module.fit(text) if hasattr(self.module, "fit") else text


@dataclass
class TransformersView(View):
    """What the views of transformers models share: the waveform as their feature extractors hand it on."""

    def __post_init__(self) -> None:
        self.model = self.recogniser.model  # type: ignore[attr-defined]
        self.processor = self.recogniser.processor  # type: ignore[attr-defined]
        self.model.requires_grad_(False)  # the attack moves the sound, not the weights: a third of the work saved
        self.pads_safely = self.recogniser.pads_safely  # type: ignore[attr-defined]
        self.longest_s = self.recogniser.chunk_s  # type: ignore[attr-defined]
        self.extractor = getattr(self.processor, "feature_extractor", self.processor)
        self.tokenizer = self.processor.tokenizer
        if type(self.extractor).__name__ not in self.extractors or self.extractor.sampling_rate != RATE:
            raise UserError(
                f"{self.recogniser.name}: there is no differentiable form of {type(self.extractor).__name__} at "
                f"{self.extractor.sampling_rate} Hz; those of {', '.join(self.extractors)} at {RATE} Hz exist"
            )

    extractors: ClassVar[tuple[str, ...]] = ("Wav2Vec2FeatureExtractor", "SpeechT5FeatureExtractor")

    @property
    def device(self) -> str:
        return str(self.model.device)

    def compile(self) -> None:
        self.model.compile()

    def inputs(self, waves: Tensor, lengths: Tensor) -> dict[str, Tensor]:
        """What the model is given, made from the waveforms differentiably."""
        waves, lengths = self._long_enough(waves, lengths)
        mask = mask_of(lengths, waves.shape[1])
        waves = waves * mask
        if getattr(self.extractor, "do_normalize", False):
            count = lengths[:, None].to(waves.dtype)
            centred = (waves - waves.sum(1, keepdim=True) / count) * mask
            waves = centred / (centred.square().sum(1, keepdim=True) / count + 1e-7).sqrt()
        made = {"input_values": waves.to(self.model.dtype)}
        if self.extractor.return_attention_mask:
            made["attention_mask"] = mask.long()
        return made

    def _long_enough(self, waves: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        shortest = int(hf.SHORTEST_S * RATE)
        waves = functional.pad(waves, (0, max(0, shortest - waves.shape[1])))
        return waves.to(torch.promote_types(self.model.dtype, torch.float32)), lengths.clamp_min(shortest)

    def their_inputs(self, clips: Sequence[Clip]) -> dict[str, Tensor]:
        """What the model is given when it transcribes."""
        return self.recogniser._inputs([self._heard(clip) for clip in clips])  # type: ignore[attr-defined]

    def _heard(self, clip: Clip) -> np.ndarray:
        return np.pad(clip.samples, (0, max(0, int(hf.SHORTEST_S * RATE) - len(clip.samples))))

    def difference(self, clips: Sequence[Clip]) -> float:
        """The largest difference between the two inputs, in units of their spread."""
        with torch.no_grad():
            ours = self.inputs(*padded([clip.samples for clip in clips], self.device))
        theirs = self.their_inputs(clips)
        name = self.model.main_input_name
        if ours[name].shape != theirs[name].shape:
            return float("inf")
        return float((ours[name] - theirs[name]).abs().max() / theirs[name].float().std())

    def check(self, clips: Sequence[Clip]) -> None:
        if (found := self.difference(clips)) > max(TOLERANCE, 4 * torch.finfo(self.model.dtype).eps):
            raise UserError(
                f"{self.recogniser.name}: the differentiable preprocessing differs from the recogniser's own by "
                f"{found:.3g} of its spread, so an attack on it would prove nothing"
            )

    def tokens(self, text: str) -> list[int]:
        return self.tokenizer(text, add_special_tokens=False).input_ids

    def fit(self, text: str) -> str:
        text = super().fit(text)
        plain = "".join(char for char in text if unicodedata.category(char)[0] != "P")
        ways = [way(one) for one in (text, plain) for way in (str, str.lower, str.upper)]
        written = next((one for one in ways if self._writable(one)), None)
        if written is None:
            odd = [c for c in dict.fromkeys(plain) if not (self._writable(c.lower()) or self._writable(c.upper()))]
            raise UserError(f"its transcript has characters that {self.recogniser.name} cannot write: {' '.join(odd)}")
        return written

    def _writable(self, text: str) -> bool:
        return text.isspace() or self.tokenizer.unk_token_id not in self.tokens(text)


@dataclass
class CtcView(TransformersView):
    """wav2vec 2.0, HuBERT, WavLM, Data2Vec, MMS."""

    def losses(self, waves: Tensor, batch: Batch) -> Tensor:
        logits, frames = self.logits(waves, batch)
        tokens = [torch.tensor(self.tokens(text)) for text in batch.texts]
        return losses.ctc(logits, frames, tokens, self.model.config.pad_token_id)

    def logits(self, waves: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
        """(clip, frame, letter), and how many frames each clip has."""
        self.recogniser._speak(batch.language)  # type: ignore[attr-defined]
        logits = self.model(**self.inputs(waves, batch.lengths)).logits
        _, lengths = self._long_enough(waves[:0], batch.lengths)
        return logits.to(torch.promote_types(logits.dtype, torch.float32)), (
            self.model._get_feat_extract_output_lengths(lengths)
        )

    def read(self, waves: Tensor, batch: Batch) -> list[str]:
        """The transcripts by way of the differentiable path."""
        with torch.no_grad():
            logits, frames = self.logits(waves, batch)
        best = logits.argmax(-1)
        return [self.processor.decode(row[:count].tolist()) for row, count in zip(best, frames, strict=True)]


@dataclass
class Seq2SeqView(TransformersView):
    """Moonshine, SpeechT5 and other encoders with a decoder; the loss tells the decoder the right tokens before."""

    first_weight: float = 0.0  # see losses.cross_entropy

    def losses(self, waves: Tensor, batch: Batch) -> Tensor:
        tokens = [torch.tensor([*self.tokens(text), self.end]) for text in batch.texts]
        return losses.cross_entropy(self.logits(waves, batch, tokens), tokens, self.first_weight)

    def logits(self, waves: Tensor, batch: Batch, tokens: list[Tensor]) -> Tensor:
        """(clip, position, token), where position i has been told the tokens before i."""
        prompt = torch.tensor(self.prompt(batch.language))
        told = pad_sequence([torch.cat([prompt, one[:-1]]) for one in tokens], True, self.end).to(self.device)
        if told.shape[1] > (room := hf._positions(self.model.config) + 4):
            raise UserError(f"{self.recogniser.name}: a transcript of {told.shape[1]} tokens; it has room for {room}")
        made = self.model(**self.inputs(waves, batch.lengths), decoder_input_ids=told, use_cache=False).logits
        return made[:, len(prompt) - 1 :].to(torch.promote_types(made.dtype, torch.float32))

    def read(self, waves: Tensor, batch: Batch) -> list[str]:
        """The transcripts that the decoder would write at each position, told `batch.texts` before it."""
        tokens = [torch.tensor([*self.tokens(text), self.end]) for text in batch.texts]
        with torch.no_grad():
            best = self.logits(waves, batch, tokens).argmax(-1)
        return [
            self.tokenizer.decode(row[: len(one)].tolist(), skip_special_tokens=True).strip()
            for row, one in zip(best, tokens, strict=True)
        ]

    def fit(self, text: str) -> str:
        # Corpora such as LibriSpeech write capitals only; a model that writes sentences would find those unlikely
        # before any attack.
        return super().fit(text.capitalize() if text.isupper() else text)

    @cached_property
    def end(self) -> int:
        """The token that ends a transcript."""
        end = self.model.generation_config.eos_token_id
        return end[0] if isinstance(end, list) else end

    def prompt(self, language: str | None) -> list[int]:
        """What the decoder is given before the first word."""
        settings = self.model.generation_config
        start = (
            settings.decoder_start_token_id if settings.decoder_start_token_id is not None else settings.bos_token_id
        )
        return [start]


@dataclass
class WhisperView(Seq2SeqView):
    """Whisper: 30 s of log-mel spectrogram, whatever the clip's length (Radford et al. 2023, 2.2)."""

    extractors: ClassVar[tuple[str, ...]] = ("WhisperFeatureExtractor",)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.longest_s = hf.WHISPER_S

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

    def their_inputs(self, clips: Sequence[Clip]) -> dict[str, Tensor]:
        made = self.processor([self._heard(clip) for clip in clips], sampling_rate=RATE, return_tensors="pt")
        return self.recogniser._placed(made)  # type: ignore[attr-defined]

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


@dataclass
class Ensemble(View):
    """Several recognisers as one: the sum of their losses (Olivier, 6.3.1). What is heard is what the first hears."""

    views: list[View] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.pads_safely = all(view.pads_safely for view in self.views)
        self.longest_s = min(view.longest_s for view in self.views)

    @property
    def device(self) -> str:
        return self.views[0].device

    def gradient(self, waves: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
        return self._sum(lambda view, own: view.gradient(waves.to(view.device), own), batch)

    def values(self, waves: Tensor, batch: Batch) -> Tensor:
        return self._sum(lambda view, own: (view.values(waves.to(view.device), own),), batch)[0]

    def fit(self, text: str) -> str:
        for view in self.views:
            view.fit(text)
        return text

    def check(self, clips: Sequence[Clip]) -> None:
        for view in self.views:
            view.check(clips)

    def _sum(self, of: Callable[[View, Batch], tuple[Tensor, ...]], batch: Batch) -> Any:
        parts = []
        for view in self.views:
            own = Batch(batch.lengths, [view.fit(text) for text in batch.texts], batch.language, batch.rngs)
            parts.append([part.to(self.device) for part in of(view, own)])
        return tuple(torch.stack(same).sum(0) for same in zip(*parts, strict=True))
