"""SoX's delay and modulation effects: echo, chorus, phaser and tremolo (paper, Appendix A)."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import Literal, NamedTuple

import numpy as np

from speech_robust_bench.builders.perturb.signal_kernels import add_delayed

Wave = Literal["sine", "triangle"]


class Sweep(NamedTuple):
    """One period of a modulated delay: run `i` holds `delays[i]` from `starts[i]` up to `starts[i + 1]`."""

    starts: np.ndarray  # int64, one longer than `delays`; the last one is the period
    delays: np.ndarray  # int64, whole samples


def whole_samples(duration_ms: float, rate: int) -> int:
    """A duration cut to whole samples, through the single precision in which SoX reads it."""
    return int(float(np.float32(duration_ms)) * rate / 1000)


def runs(delays: np.ndarray) -> Sweep:
    """One period of delays, sample by sample, as runs of equal values."""
    edges = np.flatnonzero(np.diff(delays)) + 1
    starts = np.concatenate(([0], edges, [len(delays)])).astype(np.int64)
    return Sweep(starts, np.ascontiguousarray(delays[starts[:-1]], dtype=np.int64))


@lru_cache(maxsize=64)
def oscillator(wave: Wave, period: int, low: float, high: float, phase: float) -> np.ndarray:
    """One period of a wave between `low` and `high`, in whole numbers; it starts `phase` of a period late."""
    points = (np.arange(period) + int(phase * period + 0.5)) % period
    if wave == "triangle":  # from the middle up, down through the middle, and back
        turns = points * 2 / period
        quarter = 4 * points // period
        unit = np.select([quarter == 0, quarter <= 2], [turns + 0.5, 1.5 - turns], turns - 1.5)
    else:  # the C library's sine: NumPy's own differs in the last bit between processors
        unit = (np.array([math.sin(point / period * 2 * math.pi) for point in points.tolist()]) + 1) / 2
    value = unit * (high - low) + low
    return np.trunc(value + np.where(value < 0, -0.5, 0.5)).astype(np.int64)


def echo(
    samples: np.ndarray,
    rate: int,
    delay_ms: float,
    rng: np.random.Generator | None = None,
    *,
    gain_in: float = 0.8,
    gain_out: float = 0.9,
    decay: float = 0.3,
) -> np.ndarray:
    """The echo outlives the clip: as in SoX, the result is longer by the delay."""
    delay = whole_samples(delay_ms, rate)
    if delay < 1:
        raise ValueError(f"echo: a delay of {delay_ms} ms is shorter than one sample at {rate} Hz")
    length = len(samples)
    if not length:
        return np.zeros(0, dtype=np.float32)
    out = np.empty(length + delay, dtype=np.float32)
    np.multiply(samples, np.float32(gain_in * gain_out), out=out[:length])
    out[length:] = 0.0
    out[delay:] += np.multiply(samples, np.float32(decay * gain_out), dtype=np.float32)
    return out


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
    samples = np.ascontiguousarray(samples, dtype=np.float32)
    out = np.empty(length + longest, dtype=np.float32)
    np.multiply(samples, np.float32(gain_in * gain_out), out=out[:length])
    out[length:] = 0.0
    for voice in voices:
        starts, delays = _chorus_sweep(voice, rate, delay_ms, longest)
        add_delayed(out, samples, starts, delays, np.float32(voice.decay * gain_out))
    return out


def _reach(voice: Voice, rate: int, delay_ms: float) -> int:
    """The longest delay of a voice, in samples."""
    if not (20 <= delay_ms + voice.extra_ms <= 100 and 0 <= voice.depth_ms <= 10):
        raise ValueError(f"chorus: a delay of {delay_ms + voice.extra_ms:g} ms is outside SoX's 20 to 100 ms")
    return whole_samples(float(np.float32(delay_ms + voice.extra_ms) + np.float32(voice.depth_ms)), rate)


@lru_cache(maxsize=64)
def _chorus_sweep(voice: Voice, rate: int, delay_ms: float, longest: int) -> Sweep:
    reach = _reach(voice, rate, delay_ms)
    depth = whole_samples(voice.depth_ms, rate)
    period = int(rate / float(np.float32(voice.speed_hz)))
    if voice.wave == "triangle":
        delays = oscillator("triangle", period, reach - 1 - 2 * depth, reach - 1, 0.75)
    else:  # SoX swings this one around no delay at all, whatever the delay asked for
        delays = oscillator("sine", period, 0, depth, 0.0)
    # SoX reads its ring buffer before it writes: no delay finds the oldest sample there, not the newest.
    return runs(np.where(delays == 0, longest, delays))


def phaser(
    samples: np.ndarray,
    rate: int,
    decay: float,
    rng: np.random.Generator | None = None,
    *,
    gain_in: float = 0.6,
    gain_out: float = 0.8,
    delay_ms: float = 3.0,
    speed_hz: float = 2.0,
    wave: Wave = "triangle",
) -> np.ndarray:
    """Not clipped: SoX clips its output, and never what it feeds back."""
    if not 0 <= decay <= 0.99:
        raise ValueError(f"phaser: the decay must lie between 0 and 0.99, not {decay}")
    # The gain-out may come first, because everything after it is linear.
    out = np.multiply(samples, np.float32(gain_in * gain_out), dtype=np.float32)
    add_delayed(out, out, *_phaser_sweep(rate, delay_ms, speed_hz, wave), np.float32(decay))
    return out


@lru_cache(maxsize=64)
def _phaser_sweep(rate: int, delay_ms: float, speed_hz: float, wave: Wave) -> Sweep:
    longest = int(delay_ms * 0.001 * rate + 0.5)
    if longest < 1:
        raise ValueError(f"phaser: a delay of {delay_ms} ms is shorter than one sample at {rate} Hz")
    period = int(rate / speed_hz + 0.5)
    return runs(longest + 1 - oscillator(wave, period, 1, longest, 0.25))


def tremolo(
    samples: np.ndarray,
    rate: int,
    depth_percent: float,
    rng: np.random.Generator | None = None,
    *,
    speed_hz: float = 20.0,
) -> np.ndarray:
    """Multiply by a wave that starts at its peak of 1 and falls by the depth."""
    length = len(samples)
    if not length:
        return np.zeros(0, dtype=np.float32)
    cycles = Fraction(str(speed_hz)) / rate  # per sample, exactly: the gains repeat after `denominator` samples
    gains = _gains(cycles, min(cycles.denominator, length), depth_percent)
    out = np.empty(length, dtype=np.float32)
    whole = length - length % len(gains)
    np.multiply(samples[:whole].reshape(-1, len(gains)), gains, out=out[:whole].reshape(-1, len(gains)))
    np.multiply(samples[whole:], gains[: length - whole], out=out[whole:])
    return out


@lru_cache(maxsize=16)
def _gains(cycles: Fraction, count: int, depth_percent: float) -> np.ndarray:
    centre = float(f"{100 - depth_percent / 2:g}") / 100  # SoX passes the centre on as text of six digits
    turn = 2 * math.pi / cycles.denominator
    # The C library's cosine: NumPy's own differs in the last bit between processors.
    waves = [math.cos(turn * (index * cycles.numerator % cycles.denominator)) for index in range(count)]
    return (np.array(waves) * (1 - centre) + centre).astype(np.float32)
