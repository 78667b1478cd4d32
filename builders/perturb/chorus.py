"""SoX `chorus`: the clip plus two copies whose delays drift slowly (SRB, Appendix A).

The paper prints a gain-in of 0.9; the authors' published data was made with 0.7, which is the default here.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from speech_robust_bench.builders.perturb.delays import Sweep, Wave, oscillator, runs, whole_samples


class Voice(NamedTuple):
    """One delayed copy. Its delay is that of the scenario plus `extra_ms`, modulated by up to `depth_ms`."""

    extra_ms: float
    decay: float
    speed_hz: float
    depth_ms: float
    wave: Wave


VOICES = (Voice(0, 0.4, 0.25, 2, "triangle"), Voice(10, 0.3, 0.4, 2, "sine"))


def chorus(
    samples: np.ndarray,
    rate: int,
    delay_ms: float,
    rng: np.random.Generator | None = None,
    *,
    gain_in: float = 0.7,
    gain_out: float = 0.9,
    voices: tuple[Voice, ...] = VOICES,
) -> np.ndarray:
    """As in SoX, the result is longer than the clip by the longest delay."""
    longest = max(_reach(voice, rate, delay_ms) for voice in voices)
    length = len(samples)
    if not length:
        return np.zeros(0, dtype=np.float32)
    from speech_robust_bench.builders.perturb.signal_kernels import add_delayed

    samples = np.ascontiguousarray(samples, dtype=np.float32)
    out = np.empty(length + longest, dtype=np.float32)
    np.multiply(samples, np.float32(gain_in * gain_out), out=out[:length])
    out[length:] = 0.0
    for voice in voices:
        starts, delays = _sweep(voice, rate, delay_ms, longest)
        add_delayed(out, samples, starts, delays, np.float32(voice.decay * gain_out))
    return out


def _reach(voice: Voice, rate: int, delay_ms: float) -> int:
    """The longest delay of a voice, in samples."""
    if not (20 <= delay_ms + voice.extra_ms <= 100 and 0 <= voice.depth_ms <= 10):
        raise ValueError(f"chorus: a delay of {delay_ms + voice.extra_ms:g} ms is outside SoX's 20 to 100 ms")
    return whole_samples(float(np.float32(delay_ms + voice.extra_ms) + np.float32(voice.depth_ms)), rate)


@lru_cache(maxsize=64)
def _sweep(voice: Voice, rate: int, delay_ms: float, longest: int) -> Sweep:
    reach = _reach(voice, rate, delay_ms)
    depth = whole_samples(voice.depth_ms, rate)
    period = int(rate / float(np.float32(voice.speed_hz)))
    if voice.wave == "triangle":
        delays = oscillator("triangle", period, reach - 1 - 2 * depth, reach - 1, 0.75)
    else:  # SoX swings this one around no delay at all, whatever the delay asked for
        delays = oscillator("sine", period, 0, depth, 0.0)
    # SoX reads its ring buffer before it writes: no delay finds the oldest sample there, not the newest.
    return runs(np.where(delays == 0, longest, delays))
