"""WebRTC's noise suppression, as browsers and telephones run it; `webrtc` is its level 2, `webrtc:3` the strongest."""

from __future__ import annotations

import numpy as np

from speech_robust_bench.core.audio import resample, to_pcm16
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.extensions.front_ends.rnnoise import fitted
from speech_robust_bench.models.interface import Clip, FrontEnd, need

INSTALL = "pip install webrtc-noise-gain"
RATE = 16_000
FRAME = 160  # 10 ms
DELAY = 96  # samples: the overlap of its windows
LEVELS = ("0", "1", "2", "3", "4")


def load(target: str) -> FrontEnd:
    """The suppressor as a function; it adapts to a stream, so every clip has one of its own."""
    package = need("webrtc_noise_gain", "webrtc", INSTALL)
    level = target or "2"
    if level not in LEVELS:
        raise UserError(f"webrtc:{target}: its levels are {', '.join(LEVELS)}")

    def enhance(clip: Clip, rate: int) -> Clip:
        samples = resample(clip, rate, RATE)
        frames = -(-(len(samples) + DELAY) // FRAME)
        pcm = np.zeros(frames * FRAME, np.int16)
        pcm[: len(samples)] = to_pcm16(samples.clip(-1, 1))
        processor = package.AudioProcessor(0, int(level))
        parts = [processor.Process10ms(frame.tobytes()).audio for frame in pcm.reshape(frames, FRAME)]
        clean = np.frombuffer(b"".join(parts), np.int16)[DELAY : DELAY + len(samples)].astype(np.float32) / 32768
        return fitted(resample(clean, RATE, rate), len(clip))

    return enhance
