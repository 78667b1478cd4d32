"""RNNoise (Valin 2018): a small recurrent network that scales critical bands at 48 kHz; `pyrnnoise` has its weights."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np

from speech_robust_bench.core.audio import resample
from speech_robust_bench.models.interface import Clip, FrontEnd, need

INSTALL = "pip install pyrnnoise"
RATE = 48_000
DELAY = 960  # samples: its windows overlap by a frame, and it looks one frame ahead


def load(target: str) -> FrontEnd:
    """The denoiser as a function; RNNoise has one set of weights, so `target` is empty."""
    rnnoise = _library()

    def enhance(clip: Clip, rate: int) -> Clip:
        samples = resample(clip, rate, RATE)
        frames = -(-(len(samples) + DELAY) // rnnoise.FRAME_SIZE)
        padded = np.zeros(frames * rnnoise.FRAME_SIZE, np.float32)
        padded[: len(samples)] = samples
        pcm = np.clip(np.rint(padded * 32768), -32768, 32767).astype(np.int16)
        state = rnnoise.create()
        try:
            parts = [rnnoise.process_mono_frame(state, frame)[0] for frame in pcm.reshape(frames, -1)]
        finally:
            rnnoise.destroy(state)
        clean = np.concatenate(parts)[DELAY : DELAY + len(samples)].astype(np.float32) / 32768
        return fitted(resample(clean, RATE, rate), len(clip))

    return enhance


def _library() -> Any:
    """The package's thin wrapper of the C library, by itself: the package as a whole imports a media framework."""
    package = importlib.util.find_spec("pyrnnoise")
    if package is None:
        return need("pyrnnoise", "rnnoise", INSTALL)  # says how to install it
    path = Path((package.submodule_search_locations or [""])[0]) / "rnnoise.py"
    spec = importlib.util.spec_from_file_location("srb_rnnoise", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def fitted(samples: Clip, length: int) -> Clip:
    """Cut or padded to a length: resampling there and back may move the end by a sample."""
    return np.pad(samples[:length], (0, max(0, length - len(samples))))
