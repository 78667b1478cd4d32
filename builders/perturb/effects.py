"""SoX's effects (echo, chorus, phaser, tremolo, shelves, sinc; paper, Appendix A), and AequeVox' transformations.

AequeVox: Rajan et al., FASE 2022, Table 2, least to most destructive. The authors' published code swaps high- and
low-pass and never applies clipping and scale; this follows the paper. Their code also filters forward and backward, and
the people who rated comprehensibility listened to that: these two filters are here both ways. Noise is `gaussian`.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from speech_robust_bench.builders.perturb.signal_kernels import add_delayed, biquad
from speech_robust_bench.builders.perturb.time_and_pitch import sinc_resample
from speech_robust_bench.core.audio import Samples
from speech_robust_bench.core.extensions import LazyModule

if TYPE_CHECKING:
    from scipy import signal
else:
    signal = LazyModule("scipy.signal")


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


def bass(
    samples: np.ndarray,
    rate: int,
    gain_db: float,
    rng: np.random.Generator | None = None,
    *,
    corner_hz: float = 100.0,
    slope: float = 0.5,
) -> np.ndarray:
    """Raise what lies below the corner. Not clipped: a clip with real bass leaves [-1, 1] by a wide margin."""
    return _apply_shelf(samples, _shelf(rate, gain_db, corner_hz, slope, low=True))


def treble(
    samples: np.ndarray,
    rate: int,
    gain_db: float,
    rng: np.random.Generator | None = None,
    *,
    corner_hz: float = 3000.0,
    slope: float = 0.5,
) -> np.ndarray:
    """Raise what lies above the corner. Not clipped."""
    return _apply_shelf(samples, _shelf(rate, gain_db, corner_hz, slope, low=False))


def _apply_shelf(samples: np.ndarray, coefficients: tuple[float, ...]) -> np.ndarray:
    samples = np.ascontiguousarray(samples, dtype=np.float32)
    out = np.empty(len(samples), dtype=np.float32)
    biquad(out, samples, *coefficients)
    return out


@lru_cache(maxsize=64)
def _shelf(rate: int, gain_db: float, corner_hz: float, slope: float, *, low: bool) -> tuple[float, ...]:
    """b0, b1, b2, a1, a2 with a0 = 1."""
    w0 = 2 * math.pi * corner_hz / rate
    if w0 > math.pi:
        raise ValueError(f"a shelf at {corner_hz:g} Hz is above half the sample rate of {rate} Hz")
    amp = 10 ** (gain_db / 40)
    alpha = math.sin(w0) / 2 * math.sqrt((amp + 1 / amp) * (1 / slope - 1) + 2)
    # The high shelf is the low one mirrored in frequency: cos(w0) and the odd coefficients change their sign.
    sign = 1 if low else -1
    cos = sign * math.cos(w0)
    up, down, root = amp + 1, amp - 1, 2 * math.sqrt(amp) * alpha
    a0 = up + down * cos + root
    return (
        amp * (up - down * cos + root) / a0,
        sign * 2 * amp * (down - up * cos) / a0,
        amp * (up - down * cos - root) / a0,
        sign * -2 * (down + up * cos) / a0,
        (up + down * cos - root) / a0,
    )


# Window shape by octaves of the corner below 25 Nyquist rates; SoX draws straight lines between these points.
_OCTAVES = (4, 5, 6, 7, 8, 9)
_BETAS = (12.309004585664, 12.312915581888, 12.334994437312, 12.36770556512, 12.4177162944, 12.6228670168)

_BLOCK = 2048  # samples in a transform: the least work for filters of 315 to 323 taps
_BATCH = 16  # blocks transformed together, few enough to stay in the processor's cache


def lowpass(samples: np.ndarray, rate: int, corner_hz: float, rng: np.random.Generator | None = None) -> np.ndarray:
    """Keep what lies below the corner."""
    return _sinc_filter(samples, *_response(rate, corner_hz, keep_high=False))


def highpass(samples: np.ndarray, rate: int, corner_hz: float, rng: np.random.Generator | None = None) -> np.ndarray:
    """Keep what lies above the corner."""
    return _sinc_filter(samples, *_response(rate, corner_hz, keep_high=True))


def taps(corner: float) -> np.ndarray:
    """The low-pass filter for a corner given as a fraction of the Nyquist rate."""
    beta = float(np.interp(math.log2(25 / corner), _OCTAVES, _BETAS))
    count = math.ceil(25.44866 * beta + 1.2403) | 1
    offset = np.arange(count) - count // 2
    return corner * np.sinc(corner * offset) * np.kaiser(count, beta)


@lru_cache(maxsize=64)
def _response(rate: int, corner_hz: float, *, keep_high: bool) -> tuple[np.ndarray, int]:
    """The filter's spectrum, and how many samples it reaches to each side."""
    corner = corner_hz / (rate / 2)
    if not 0 < corner < 1:
        raise ValueError(f"sinc: {corner_hz:g} Hz is not between 0 and half the sample rate of {rate} Hz")
    kernel = taps(corner)
    reach = len(kernel) // 2
    if keep_high:  # all that the low-pass filter leaves out
        kernel = -kernel
        kernel[reach] += 1
    centred = np.zeros(_BLOCK)
    centred[: reach + 1] = kernel[reach:]
    centred[-reach:] = kernel[:reach]
    # Symmetric around sample 0, so its spectrum is real. Each value twice: for both parts of a complex number.
    return np.repeat(np.fft.rfft(centred).real, 2), reach


def _sinc_filter(samples: np.ndarray, response: np.ndarray, reach: int) -> np.ndarray:
    """Overlap-save convolution in double precision, a few blocks at a time."""
    length = len(samples)
    if not length:
        return np.zeros(0, dtype=np.float32)
    hop = _BLOCK - 2 * reach
    total = -(-length // hop)
    out = np.empty(total * hop, dtype=np.float32)
    batch = min(_BATCH, total)
    # One allocation for all steps: several would be returned to the system and allocated again for every clip.
    spectra, filtered, padded = _split(
        np.empty(batch * (len(response) + _BLOCK + hop) + 2 * reach), batch, len(response)
    )
    for start in range(0, length, hop * batch):
        blocks = min(batch, total - start // hop)
        skipped = max(reach - start, 0)  # before the clip there is silence, and after it too
        piece = samples[start - reach + skipped : start - reach + len(padded)]
        padded[:skipped] = 0
        padded[skipped : skipped + len(piece)] = piece
        padded[skipped + len(piece) :] = 0
        windows = np.lib.stride_tricks.as_strided(padded, (blocks, _BLOCK), (hop * padded.itemsize, padded.itemsize))
        np.fft.rfft(windows, out=spectra[:blocks])
        parts = spectra[:blocks].view(np.float64)
        parts *= response
        np.fft.irfft(spectra[:blocks], _BLOCK, out=filtered[:blocks])
        out[start : start + blocks * hop].reshape(blocks, hop)[:] = filtered[:blocks, reach : reach + hop]
    return out[:length]


def _split(space: np.ndarray, batch: int, bins: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Room for the spectra of a batch, for its filtered blocks, and for the stretch of clip that it covers."""
    spectra, filtered, padded = np.split(space, [batch * bins, batch * (bins + _BLOCK)])
    return spectra.view(np.complex128).reshape(batch, -1), filtered.reshape(batch, _BLOCK), padded


Kind = Literal["lowpass", "highpass"]


def butterworth(samples: Samples, rate: int, corner_hz: float, kind: Kind, order: int = 2) -> Samples:
    """Filter a clip; `order` is even."""
    samples = np.ascontiguousarray(samples, dtype=np.float32)
    for section in _sections(rate, corner_hz, kind, order):
        out = np.empty(len(samples), dtype=np.float32)
        biquad(out, samples, *section)
        samples = out
    return samples


@lru_cache(maxsize=32)
def _sections(rate: int, corner_hz: float, kind: Kind, order: int) -> tuple[tuple[float, ...], ...]:
    """b0, b1, b2, a1, a2 (a0 = 1) of each section: pairs of poles evenly spaced on a half circle."""
    if not 0 < corner_hz < rate / 2:
        raise ValueError(f"a corner of {corner_hz:g} Hz does not lie between 0 and {rate / 2:g} Hz")
    w = 2 * math.pi * corner_hz / rate
    sections = []
    for pair in range(order // 2):
        alpha = math.sin(w) * math.sin(math.pi * (2 * pair + 1) / (2 * order))
        a0 = 1 + alpha
        edge = (1 - math.cos(w)) if kind == "lowpass" else (1 + math.cos(w))
        sign = 1 if kind == "lowpass" else -1
        sections.append((edge / 2 / a0, sign * edge / a0, edge / 2 / a0, -2 * math.cos(w) / a0, (1 - alpha) / a0))
    return tuple(sections)


CHUNK_MS = 20
FRAME_SHARE = 0.1


def amplitude(samples: Samples, rate: int, factor: float, rng: np.random.Generator) -> Samples:
    """Amplitude times a factor."""
    return samples * np.float32(factor)


def clipping(samples: Samples, rate: int, level: float, rng: np.random.Generator) -> Samples:
    """Scale the peak to 1, clip at `level`, and scale what is left back to a peak of 1."""
    peak = np.abs(samples).max(initial=0.0)
    if peak == 0:
        return samples.copy()
    return np.clip(samples / peak, -level, level) / np.float32(level)


def drop_chunks(samples: Samples, rate: int, percent: float, rng: np.random.Generator) -> Samples:
    """Silence `percent` of the 20 ms chunks, no two of them adjacent."""
    return _silence_chunks(samples, round(CHUNK_MS * rate / 1000), percent / 100, rng)


def drop_share(samples: Samples, rate: int, chunk_ms: float, rng: np.random.Generator) -> Samples:
    """Silence 10 % of the chunks of `chunk_ms`, no two of them adjacent."""
    return _silence_chunks(samples, round(chunk_ms * rate / 1000), FRAME_SHARE, rng)


def butterworth_highpass(samples: Samples, rate: int, corner_hz: float, rng: np.random.Generator) -> Samples:
    """Butterworth high-pass of order 2."""
    return butterworth(samples, rate, corner_hz, "highpass")


def butterworth_lowpass(samples: Samples, rate: int, corner_hz: float, rng: np.random.Generator) -> Samples:
    """Butterworth low-pass of order 2."""
    return butterworth(samples, rate, corner_hz, "lowpass")


def zero_phase_highpass(samples: Samples, rate: int, corner_hz: float, rng: np.random.Generator) -> Samples:
    """The high-pass forward and backward, as in the authors' code: twice the attenuation, no shift in time."""
    return _forward_backward(samples, rate, corner_hz, "highpass")


def zero_phase_lowpass(samples: Samples, rate: int, corner_hz: float, rng: np.random.Generator) -> Samples:
    """The low-pass forward and backward, as in the authors' code: twice the attenuation, no shift in time."""
    return _forward_backward(samples, rate, corner_hz, "lowpass")


def _forward_backward(samples: Samples, rate: int, corner_hz: float, kind: Kind) -> Samples:
    numerator, denominator = signal.butter(2, corner_hz, kind, fs=rate)
    # What scipy puts before and after the clip, unless the clip is shorter than that.
    padding = min(3 * max(len(numerator), len(denominator)), max(len(samples) - 1, 0))
    if not len(samples):
        return samples.copy()
    return signal.filtfilt(numerator, denominator, samples.astype(np.float64), padlen=padding).astype(np.float32)


def slow_down(samples: Samples, rate: int, factor: float, rng: np.random.Generator) -> Samples:
    """Play at `factor` of the sampling frequency: slower, and the pitch falls with it."""
    return sinc_resample(samples, round(factor * rate), rate)


def _silence_chunks(samples: Samples, size: int, share: float, rng: np.random.Generator) -> Samples:
    chunks = -(-len(samples) // size)
    count = min(round(share * chunks), (chunks + 1) // 2)
    # Choosing among chunks - count + 1 places and then spreading them by one each draws every set of non-adjacent
    # chunks with the same probability.
    chosen = np.sort(rng.choice(chunks - count + 1, count, replace=False)) + np.arange(count)
    out = samples.copy()
    for start in chosen * size:
        out[start : start + size] = 0
    return out
