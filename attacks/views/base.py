"""A recogniser as an attacker sees it: waveforms in, one loss per clip out, and gradients back to the waveforms.

The way to the loss repeats, in torch, the preprocessing that the recogniser uses when it transcribes; `check` proves on
the clips at hand that both give the model the same input. Samples behind a clip's end are never seen, so they have no
gradient, and nothing is averaged across clips.

A `python:` recogniser joins with one more method, `losses(waves, lengths, texts)`: a tensor (clip, sample), the true
lengths, the transcripts; it returns one loss per clip.

The training losses of recognisers, one value per clip, so that no clip's gradient depends on the clips beside it.

Each is the mean over the clip's own tokens: CTC (Graves et al. 2006), cross-entropy of a decoder that is told the
right tokens before, and the transducer's (Graves 2012).

How a model writes a transcript: with capitals or without, with punctuation or without, as its tokens allow.
"""

from __future__ import annotations

import contextlib
import math
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional
from torch.nn.utils.rnn import pad_sequence

from speech_robust_bench.attacks.clips import AttackBatch, AttackClip, mask_of
from speech_robust_bench.core.audio import RATE
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.models.interface import Recogniser
from speech_robust_bench.scoring.scoring import normalise


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

    def losses(self, waves: Tensor, batch: AttackBatch) -> Tensor:
        """One loss per clip."""
        raise NotImplementedError

    @property
    def has_margins(self) -> bool:
        """Whether the scores of single tokens are known, so that their margins can be attacked."""
        return False

    def right_tokens(self, waves: Tensor, batch: AttackBatch) -> list[Tensor]:
        """Per clip, the right token at each position of `token_scores`."""
        raise NotImplementedError

    def token_scores(self, waves: Tensor, batch: AttackBatch, right: list[Tensor]) -> Tensor:
        """(clip, position, token): the logits from which the model chooses its tokens."""
        raise NotImplementedError

    def gradient(self, waves: Tensor, batch: AttackBatch) -> tuple[Tensor, Tensor]:
        """The losses, and the gradient of each clip's own loss."""
        waves = waves.detach().requires_grad_()
        with self._mixed():
            clip_losses = self.losses(waves, batch)
        for clip, loss in enumerate(clip_losses.tolist()):
            if not math.isfinite(loss):
                where = f"{batch.ids[clip]}: " if batch.ids else ""
                seconds = float(batch.lengths[clip]) / RATE
                told = f"'{batch.texts[clip]}' is too much text for a clip of {seconds:.2f} s: its loss is {loss}"
                raise UserError(where + told)
        (slope,) = torch.autograd.grad(clip_losses.sum(), waves)
        return clip_losses.detach(), slope * mask_of(batch.lengths, waves.shape[1])

    def values(self, waves: Tensor, batch: AttackBatch) -> Tensor:
        """The loss of each clip, without gradients."""
        with torch.no_grad(), self._mixed():
            return self.losses(waves, batch)

    def transcribe(self, signals: Sequence[np.ndarray], language: str | None) -> list[str]:
        """The transcripts of the recogniser itself."""
        return [text.strip() for text in self.recogniser.transcribe(list(signals), RATE, language)]

    def spell(self, text: str) -> str:
        """A transcript as the model would write it; an error where it cannot."""
        if not normalise(text):
            raise UserError("its transcript is empty: there is no loss to raise or lower")
        return text

    def check(self, clips: Sequence[AttackClip]) -> None:
        """Refuse a model whose differentiable input differs from its input when it transcribes."""

    def compile(self) -> None:
        """Compile the model with torch.compile, where there is one to compile."""

    def _mixed(self, enabled: bool = True) -> Any:
        if self.precision is None:
            return contextlib.nullcontext()
        return torch.autocast(torch.device(self.device).type, self.precision, enabled=enabled)


@dataclass
class WrappedView(View):
    """Another view with something around it: a defence, other losses, dropout. It transcribes by its own recogniser."""

    inner: View = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        self.pads_safely, self.longest_s = self.inner.pads_safely, self.inner.longest_s

    @property
    def device(self) -> str:
        return self.inner.device

    def spell(self, text: str) -> str:
        return self.inner.spell(text)

    def check(self, clips: Sequence[AttackClip]) -> None:
        self.inner.check(clips)

    def compile(self) -> None:
        self.inner.compile()


def ctc(logits: Tensor, frames: Tensor, tokens: list[Tensor], blank: int) -> Tensor:
    """`logits` (clip, frame, token), of which a clip has `frames`. Infinite where there are more tokens than frames."""
    log_probs = logits.log_softmax(-1).transpose(0, 1)
    counts = torch.tensor([len(label) for label in tokens], device=logits.device)
    labels = torch.cat(tokens).to(logits.device)
    summed = functional.ctc_loss(log_probs, labels, frames.to(logits.device), counts, blank, reduction="none")
    return summed / counts


def cross_entropy(logits: Tensor, tokens: list[Tensor], first_weight: float = 0.0) -> Tensor:
    """`logits` (clip, position, token), padded as `tokens` are.

    `first_weight` is the lambda of Olivier's Eq. 5.2: the first token counts 1 + lambda times, because it is the one
    that a targeted attack on Whisper finds hardest to turn.
    """
    labels = pad_sequence(tokens, batch_first=True, padding_value=-100).to(logits.device)
    each = functional.cross_entropy(logits.transpose(1, 2), labels, ignore_index=-100, reduction="none")
    weights = (labels != -100).to(each.dtype)
    weights[:, 0] += first_weight
    return (each * weights).sum(1) / weights.sum(1)


def transducer(logits: Tensor, frames: Tensor, tokens: list[Tensor], blank: int = 0) -> Tensor:
    """RNN-T: `logits` (clip, frame, tokens said so far, token).

    Along one frame the recursion a[u] = logaddexp(stay[u], a[u-1] + say[u-1]) is a running sum once what was said so
    far is divided out, so only frames are looped over.
    """
    log_probs = logits.log_softmax(-1)
    labels = pad_sequence(tokens, batch_first=True).to(logits.device)
    counts = torch.tensor([len(label) for label in tokens], device=logits.device)
    stay = log_probs[..., blank]
    say = log_probs[:, :, :-1].gather(3, labels[:, None, :, None].expand(-1, log_probs.shape[1], -1, 1))[..., 0]
    said = functional.pad(say.cumsum(2), (1, 0))
    alpha = said[:, 0]
    reached = [alpha]
    for frame in range(1, log_probs.shape[1]):
        alpha = (alpha + stay[:, frame - 1] - said[:, frame]).logcumsumexp(1) + said[:, frame]
        reached.append(alpha)
    rows = torch.arange(len(tokens), device=logits.device)
    last = frames.to(logits.device) - 1
    total = torch.stack(reached, 1)[rows, last, counts] + stay[rows, last, counts]
    return -total / counts


def writable_spelling(text: str, writable: Callable[[str], bool], name: str) -> str:
    """The spelling nearest to the text that a model has tokens for; an error that names what it cannot write."""
    plain = "".join(char for char in text if unicodedata.category(char)[0] != "P")
    ways = [way(spelling) for spelling in (text, plain) for way in (str, str.lower, str.upper)]
    written = next((spelling for spelling in ways if writable(spelling)), None)
    if written is None:
        odd = [c for c in dict.fromkeys(plain) if not (writable(c.lower()) or writable(c.upper()))]
        raise UserError(f"its transcript has characters that {name} cannot write: {' '.join(odd)}")
    return written


# (extractor, waveforms that are zero behind their ends, their lengths) -> the model's input and its mask
FrontEnd = Callable[[Any, Tensor, Tensor], dict[str, Tensor]]

LOG_GUARD = 2**-24  # both as in ParakeetFeatureExtractor
SPREAD_GUARD = 1e-5
RANGE = 8.0  # log10: what is more than 80 dB below the loudest is raised to it (Radford et al. 2023)


def waveform(extractor: Any, waves: Tensor, lengths: Tensor) -> dict[str, Tensor]:
    """The samples themselves (wav2vec 2.0, Moonshine, SpeechT5), with mean 0 and deviation 1 if so configured."""
    mask = mask_of(lengths, waves.shape[1])
    if getattr(extractor, "do_normalize", False):
        count = lengths[:, None].to(waves.dtype)
        centred = (waves - waves.sum(1, keepdim=True) / count) * mask
        waves = centred / (centred.square().sum(1, keepdim=True) / count + 1e-7).sqrt()
    return {"input_values": waves} | ({"attention_mask": mask.long()} if extractor.return_attention_mask else {})


def power_spectrum(waves: Tensor, n_fft: int, hop: int, window: Tensor, pad_mode: str = "reflect") -> Tensor:
    """The power of each frequency bin in each frame, as (clip, bin, frame)."""
    spectrum = torch.stft(waves, n_fft, hop, len(window), window, pad_mode=pad_mode, return_complex=True)
    return (spectrum.real.square() + spectrum.imag.square()).contiguous()


def log_mel_80_db(power: Tensor, filters: Tensor) -> Tensor:
    """(clip, band, frame): Whisper's log10 of mel energies, of which 80 dB below the clip's loudest are kept."""
    logs = (filters.T @ power).clamp_min(1e-10).log10()
    return logs.maximum(logs.amax((1, 2), keepdim=True) - RANGE)


def whisper(extractor: Any, waves: Tensor, lengths: Tensor) -> dict[str, Tensor]:
    """Always 30 s, whatever the clip's length (Whisper, Voxtral)."""
    waves = functional.pad(waves, (0, extractor.n_samples - waves.shape[1]))
    return {"input_features": _whisper_features(extractor, waves)}


def _whisper_features(extractor: Any, waves: Tensor) -> Tensor:
    window = torch.hann_window(extractor.n_fft, device=waves.device, dtype=waves.dtype)
    power = power_spectrum(waves, extractor.n_fft, extractor.hop_length, window)[..., :-1]
    return (log_mel_80_db(power, torch.from_numpy(extractor.mel_filters).to(waves)) + 4.0) / 4.0


def qwen3_asr(extractor: Any, waves: Tensor, lengths: Tensor) -> dict[str, Tensor]:
    """Whisper's spectrogram of half a second or more, with zeros up to a multiple of the encoder's window."""
    waves = functional.pad(waves, (0, max(0, extractor.min_length - waves.shape[1])))
    features = _whisper_features(extractor, waves)
    return {"input_features": functional.pad(features, (0, -features.shape[2] % (2 * extractor.n_window)))}


def granite_speech(extractor: Any, waves: Tensor, lengths: Tensor) -> dict[str, Tensor]:
    """torchaudio's mel spectrogram on Whisper's scale, two frames side by side."""
    settings = extractor.melspec_kwargs
    window = torch.hann_window(settings["win_length"], device=waves.device, dtype=waves.dtype)
    power = power_spectrum(waves, settings["n_fft"], settings["hop_length"], window)
    filters = _htk_filters(settings["n_fft"], settings["n_mels"], settings["sample_rate"]).to(waves)
    frames = log_mel_80_db(power, filters).transpose(1, 2) / 4 + 1
    frames = frames[:, : frames.shape[1] // 2 * 2]
    return {"input_features": frames.reshape(len(frames), -1, 2 * frames.shape[2])}


@cache
def _htk_filters(n_fft: int, bands: int, rate: int) -> Tensor:
    """(bin, band): triangles on the HTK mel scale, as torchaudio's `melscale_fbanks` has them by default."""
    top = 2595 * math.log10(1 + rate / 2 / 700)
    corners = 700 * (10 ** (torch.linspace(0, top, bands + 2, dtype=torch.float64) / 2595) - 1)
    slopes = corners[None] - torch.linspace(0, rate // 2, n_fft // 2 + 1, dtype=torch.float64)[:, None]
    steps = corners.diff()
    return torch.minimum(-slopes[:, :-2] / steps[:-1], slopes[:, 2:] / steps[1:]).clamp_min(0)


def parakeet(extractor: Any, waves: Tensor, lengths: Tensor) -> dict[str, Tensor]:
    """Log mel energies, every band with mean 0 and deviation 1 over the clip's own frames (Parakeet, Canary)."""
    if (share := extractor.preemphasis) is not None:
        waves = torch.cat([waves[:, :1], waves[:, 1:] - share * waves[:, :-1]], 1)
        waves = waves * mask_of(lengths, waves.shape[1])
    window = torch.hann_window(extractor.win_length, periodic=False, device=waves.device, dtype=waves.dtype)
    power = power_spectrum(waves, extractor.n_fft, extractor.hop_length, window, "constant")
    logs = (extractor.mel_filters.to(power) @ power + LOG_GUARD).log().transpose(1, 2)
    real = mask_of(lengths // extractor.hop_length, logs.shape[1])
    weights = real[..., None].to(logs.dtype)
    count = weights.sum(1, keepdim=True)
    mean = (logs * weights).sum(1, keepdim=True) / count
    variance = ((logs - mean).square() * weights).sum(1, keepdim=True) / (count - 1)
    return {
        "input_features": (logs - mean) / (variance.sqrt() + SPREAD_GUARD) * weights,
        "attention_mask": real,
    }


FRONT_ENDS: dict[str, FrontEnd] = {
    "Wav2Vec2FeatureExtractor": waveform,
    "SpeechT5FeatureExtractor": waveform,
    "Waveform": waveform,  # filter banks, which are a part of the model
    "WhisperFeatureExtractor": whisper,
    "ParakeetFeatureExtractor": parakeet,
    "Qwen3ASRFeatureExtractor": qwen3_asr,
    "GraniteSpeechFeatureExtractor": granite_speech,
}


def front_end(extractor: Any) -> FrontEnd | None:
    """The differentiable form of an extractor, if there is one."""
    return FRONT_ENDS.get(type(extractor).__name__) if extractor.sampling_rate == RATE else None
