"""Samples as other programs hold them (numpy or torch, integers or floats, one channel or several), and as we do."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from speech_robust_bench.core.audio import RATE, Samples, resample
from speech_robust_bench.core.errors import UserError

MOST_CHANNELS = 16  # more than this is a batch of clips
LOUDEST = 100.0  # full scale is 1; a float beyond this holds unscaled integers
_FULL_SCALE = {"int16": 2.0**15, "int32": 2.0**31}


def channels_of(samples: Any, name: str = "samples") -> np.ndarray:
    """Float32 channels x frames from a numpy array, a torch tensor or a list; one clear error for anything else.

    Of two axes the shorter one is taken for the channels, so frames x channels (soundfile) is as good as channels x
    frames (torch, audiomentations).
    """
    array = _to_float(_to_numpy(samples, name), name)
    if array.ndim == 1:
        array = array[None]
    if array.ndim != 2:
        raise UserError(f"{name} of shape {array.shape}: one clip has the shape (frames,) or (channels, frames)")
    if array.shape[0] > array.shape[1]:
        array = array.T
    channels, frames = array.shape
    if not channels or not frames:
        raise UserError(f"{name} of shape {array.shape}: the clip holds no samples")
    if channels > MOST_CHANNELS:
        raise UserError(
            f"{name} of shape {array.shape}: {channels} channels look like a batch; give one clip at a time"
        )
    if not np.isfinite(array).all():
        raise UserError(f"{name}: NaN or infinite samples")
    peak = float(np.abs(array).max())
    if peak > LOUDEST:
        raise UserError(f"{name} reach {peak:g}, and floats lie in [-1, 1]; give int16 as it is, or divide by 32768")
    return np.ascontiguousarray(array)


def mono_at_benchmark_rate(samples: Any, rate: int) -> Samples:
    """One clip as the benchmark reads it from a file: channels averaged, 16 kHz, float32."""
    channels = channels_of(samples)
    mono = channels.mean(axis=0) if len(channels) > 1 else channels[0]
    return resample(np.ascontiguousarray(mono, dtype=np.float32), check_rate(rate), RATE)


def check_rate(rate: Any) -> int:
    """A sample rate as an int, or one clear error."""
    if isinstance(rate, bool) or not isinstance(rate, int | np.integer | float) or rate != rate or rate % 1:
        raise UserError(f"the sample rate is a whole number of Hz, not {rate!r}")
    if not 1000 <= rate <= 1_000_000:
        raise UserError(f"a sample rate of {rate:g} Hz: it lies between 1,000 and 1,000,000")
    return int(rate)


def like(samples: np.ndarray, given: Any) -> Any:
    """Samples as the kind of array that was given: a torch tensor on its device, or numpy."""
    if not _is_torch(given):
        return samples
    return sys.modules["torch"].from_numpy(np.ascontiguousarray(samples)).to(given.device)


def _is_torch(samples: Any) -> bool:
    return type(samples).__module__.split(".")[0] == "torch" and hasattr(samples, "detach")


def _to_numpy(samples: Any, name: str) -> np.ndarray:
    if _is_torch(samples):
        samples = samples.detach().cpu()
        return (samples if samples.dtype.is_floating_point is False else samples.float()).numpy()
    try:
        return np.asarray(samples)
    except ValueError:  # lists of different lengths
        raise UserError(f"{name}: not an array of numbers") from None


def _to_float(array: np.ndarray, name: str) -> np.ndarray:
    if array.dtype.kind == "f":
        return array.astype(np.float32, copy=False)
    if array.dtype.name in _FULL_SCALE:
        return (array / _FULL_SCALE[array.dtype.name]).astype(np.float32)
    if array.dtype.name == "uint8":  # as WAV files have it
        return ((array.astype(np.float32) - 128) / 128).astype(np.float32)
    raise UserError(f"{name} of type {array.dtype}: samples are float, int16, int32 or uint8")
