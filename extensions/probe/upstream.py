"""Frozen encoders: the hidden states of any transformers speech encoder, of one with random weights, or filter banks.

An upstream is named `hf:<id or folder>`, `random:<id or folder>` (the same architecture with random weights, so that
the result owes nothing to pre-training) or `fbank` (the paper's baseline). Of a model with a decoder, such as Whisper
or Moonshine, only the encoder is used. Whisper pads every clip to 30 s; `hf:<id>?window_s=6` shortens that, with the
first of its positions: a fifth of the work, and another representation than that of 30 s.

The filter banks (FBANK of SUPERB and SUPERB-SG) are 80 log mel filters in windows of 25 ms every 10 ms, with first and
second differences over two frames to each side, every dimension normalised to mean 0 and variance 1 within the clip, as
in s3prl's `fbank`; in torch, so that they can be attacked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from speech_robust_bench.core.audio import RATE
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.options import Settings
from speech_robust_bench.extensions.probe.probe_file import parsed_upstream
from speech_robust_bench.models.hf.base import first_line, loading, quiet_transformers, revision_of
from speech_robust_bench.models.interface import Clip

FILTERS, WINDOW, HOP, FFT = 80, 400, 160, 512
DELTA_FRAMES = 2
LEAST_POWER = 1e-8


class Waveform:
    """A feature extractor that leaves the waveform as it is; clips that share a batch have one length."""

    sampling_rate = RATE
    return_attention_mask = False

    def __call__(self, clips: Sequence[np.ndarray], **how: Any) -> dict[str, Tensor]:
        longest = max(len(clip) for clip in clips)
        rows = [torch.from_numpy(np.pad(clip, (0, longest - len(clip))).astype(np.float32)) for clip in clips]
        return {"input_values": torch.stack(rows)}


class FilterBank(nn.Module):
    """Waveforms (clip, sample) to one hidden state (clip, frame, 240)."""

    main_input_name = "input_values"

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("filters", torch.from_numpy(mel_filters()), persistent=False)
        self.register_buffer("window", torch.hamming_window(WINDOW, periodic=False), persistent=False)

    def forward(self, input_values: Tensor, **_: Any) -> SimpleNamespace:
        frames = input_values.unfold(1, WINDOW, HOP)
        spectrum = torch.fft.rfft((frames - frames.mean(-1, keepdim=True)) * self.window, FFT)
        power = spectrum.real.square() + spectrum.imag.square()
        logs = (power @ self.filters.to(power.dtype)).clamp_min(LEAST_POWER).log()
        features = torch.cat([logs, (first := deltas(logs)), deltas(first)], -1)
        centred = features - features.mean(1, keepdim=True)
        return SimpleNamespace(hidden_states=(centred / (centred.square().mean(1, keepdim=True).sqrt() + 1e-10),))


def deltas(features: Tensor) -> Tensor:
    """The slope of each dimension over time, by regression over `DELTA_FRAMES` frames to each side."""
    steps = range(1, DELTA_FRAMES + 1)
    padded = functional.pad(features.transpose(1, 2), (DELTA_FRAMES, DELTA_FRAMES), mode="replicate").transpose(1, 2)
    count, middle = features.shape[1], DELTA_FRAMES
    slopes = sum(n * (padded[:, middle + n :][:, :count] - padded[:, middle - n :][:, :count]) for n in steps)
    return slopes / (2 * sum(n * n for n in steps))


def mel_filters() -> np.ndarray:
    """Triangles (frequency bin, filter) that are equally wide in mel, from 20 Hz to half the rate, as Kaldi's."""

    def mel(hertz: np.ndarray | float) -> np.ndarray:
        return 1127.0 * np.log1p(np.asarray(hertz) / 700.0)

    corners = np.linspace(mel(20.0), mel(RATE / 2), FILTERS + 2)
    bins = mel(np.fft.rfftfreq(FFT, 1 / RATE))[:, None]
    rising = (bins - corners[:-2]) / (corners[1:-1] - corners[:-2])
    falling = (corners[2:] - bins) / (corners[2:] - corners[1:-1])
    return np.maximum(0, np.minimum(rising, falling)).astype(np.float32)


EXAMPLES = "hf:facebook/hubert-base-ls960, random:facebook/hubert-base-ls960 or fbank"
WHISPER_STRIDE = 320  # samples: a mel frame every 160, and a convolution of stride 2
SHORTEST = 1600  # samples: below, the first convolutions have nothing to give


@dataclass
class Upstream:
    """A frozen encoder and what prepares its input."""

    spec: str
    revision: str | None
    encoder: nn.Module
    extractor: Any
    layers: int = 0
    width: int = 0
    stride: int = 0  # samples between two frames

    def __post_init__(self) -> None:
        self.encoder.eval().requires_grad_(False)
        probe_tone = np.sin(np.arange(2 * RATE) * 0.2).astype(np.float32)
        with torch.no_grad():
            (states,) = self.states([probe_tone])
        self.layers, frames, self.width = states.shape
        self.stride = round(2 * RATE / frames)

    @property
    def fixed_window(self) -> bool:
        """Whether every clip is padded to the same length, as Whisper's are to 30 s."""
        return type(self.extractor).__name__ == "WhisperFeatureExtractor"

    @property
    def longest_s(self) -> float:
        """The longest clip that it takes whole."""
        return self.extractor.n_samples / RATE if self.fixed_window else 30.0

    def inputs(self, clips: Sequence[Clip]) -> dict[str, Tensor]:
        """What the encoder is given for some clips at 16 kHz."""
        padded = [np.pad(clip, (0, max(0, SHORTEST - len(clip)))) for clip in clips]
        how = {} if self.fixed_window else {"padding": True}
        prepared = self.extractor(padded, sampling_rate=RATE, return_tensors="pt", **how)
        known = {name: value for name, value in prepared.items() if isinstance(value, Tensor)}
        where = next(self.encoder.buffers(), next(self.encoder.parameters(), torch.zeros(0)))
        return {name: value.to(where.device) for name, value in known.items()}

    def frames(self, lengths: Sequence[int], most: int) -> list[int]:
        """The number of frames of each clip, at most those that the encoder returned."""
        long_enough = [max(length, SHORTEST) for length in lengths]
        if self.fixed_window:
            return [min(-(-length // WHISPER_STRIDE), most) for length in long_enough]
        count = getattr(self.encoder, "_get_feat_extract_output_lengths", None)
        if count is None:  # unknown: such clips come one by one, or all of one length
            return [most] * len(long_enough)
        return [min(int(count(torch.tensor(length))), most) for length in long_enough]

    def hidden_states(self, inputs: dict[str, Tensor]) -> Tensor:
        """(clip, layer, frame, width), differentiable in the inputs."""
        output = self.encoder(**inputs, output_hidden_states=True)
        return torch.stack(list(output.hidden_states), 1)

    def states(self, clips: Sequence[Clip]) -> list[Tensor]:
        """Per clip (layer, frame, width); the clips share a batch."""
        states = self.hidden_states(self.inputs(clips))
        counts = self.frames([len(clip) for clip in clips], states.shape[2])
        return [each[:, :count] for each, count in zip(states, counts, strict=True)]


def open_upstream(spec: str, device: str = "cpu", revision: str = "", seed: int = 0) -> Upstream:
    """The upstream that a spec names; `seed` draws the weights of `random:`, `revision` is a commit on the Hub."""
    kind, target, window_s = parsed_upstream(spec)
    if kind == "fbank" and not target:
        return Upstream(spec, None, FilterBank().to(device), Waveform())
    if kind not in ("hf", "random") or not target:
        raise UserError(f"no upstream '{spec}'; write {EXAMPLES}")
    transformers = quiet_transformers("probe")
    where: Settings = {"revision": revision} if revision else {}
    where["trust_remote_code"] = False  # left out, transformers asks on stdin
    with loading(spec):
        config = transformers.AutoConfig.from_pretrained(target, **where)
        extractor = transformers.AutoFeatureExtractor.from_pretrained(target, **where)
        if kind == "hf":
            model = transformers.AutoModel.from_pretrained(target, dtype=torch.float32, **where)
        else:
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(seed)
                model = transformers.AutoModel.from_config(config, trust_remote_code=False)
    if getattr(extractor, "sampling_rate", None) != RATE:
        raise UserError(f"{spec}: is not an encoder of speech at {RATE} Hz")
    encoder = model.get_encoder() if config.is_encoder_decoder else model
    if window_s:
        _shorten(spec, encoder, extractor, window_s)
    config.apply_spec_augment = False  # of wav2vec 2.0's own training
    named = revision_of(target, config) if kind == "hf" else f"seed {seed}"
    try:
        return Upstream(spec, named, encoder.to(device), extractor)
    except (AttributeError, TypeError, ValueError, RuntimeError) as error:
        raise UserError(f"{spec}: gives no hidden states for speech ({first_line(error)})") from None


def _shorten(spec: str, encoder: Any, extractor: Any, window_s: float) -> None:
    """Whisper's encoder and its spectrogram, for a number of seconds."""
    if type(extractor).__name__ != "WhisperFeatureExtractor":
        raise UserError(f"{spec}: only Whisper's encoders have a window; leave window_s out")
    frames = min(int(window_s * RATE) // WHISPER_STRIDE, encoder.config.max_source_positions)
    encoder.config.max_source_positions = encoder.max_source_positions = frames
    encoder.embed_positions = nn.Embedding.from_pretrained(encoder.embed_positions.weight[:frames].detach().clone())
    extractor.n_samples = frames * WHISPER_STRIDE
    extractor.nb_max_frames = extractor.n_samples // extractor.hop_length
    extractor.chunk_length = extractor.n_samples / RATE
