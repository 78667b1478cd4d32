"""Tempo, speed and pitch: SoX's `tempo`, resampling, and torchaudio's `PitchShift`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from math import ceil, gcd
from typing import TYPE_CHECKING

import numpy as np

from speech_robust_bench.builders.perturb.signal_kernels import (
    many_phases,
    overlap_frames,
    phasors,
    polyphase,
    settle,
    vocode,
)
from speech_robust_bench.core.audio import Samples
from speech_robust_bench.core.extensions import LazyModule

if TYPE_CHECKING:
    from scipy import fft
else:
    fft = LazyModule("scipy.fft")

ZERO_CROSSINGS = 6
ROLLOFF = 0.99
MANY_PHASES = 64
STRETCH = 1 << 16  # samples interpolated at a time


def speed(samples: Samples, rate: int, factor: float, rng: np.random.Generator) -> Samples:
    """Play `factor` times as fast: the clip gets shorter and its pitch rises by the same factor."""
    return sinc_resample(samples, int(factor * rate), rate)


def resample(samples: Samples, rate: int, fraction: float, rng: np.random.Generator) -> Samples:
    """Down to `fraction` of the rate and back, at the clip's own length."""
    low_rate = int(rate * fraction)
    return sinc_resample(sinc_resample(samples, rate, low_rate), low_rate, rate)[: len(samples)]


def odd_rate(samples: Samples, rate: int, rate_hz: float, rng: np.random.Generator) -> Samples:
    """To another rate and back by straight lines between samples, as cheap converters do: images and aliases stay."""
    away, back = (int(rate), round(rate_hz)), (round(rate_hz), int(rate))
    there = _interpolated(samples, *away, -(-len(samples) * away[1] // away[0]))
    return _interpolated(there, *back, len(samples))


def _interpolated(samples: Samples, source_rate: int, rate: int, length: int) -> Samples:
    out = np.empty(length, np.float32)
    for start in range(0, length, STRETCH):  # the places of all samples at once take ten times their memory
        wanted = np.arange(start, min(start + STRETCH, length), dtype=np.int64)
        places, rest = np.divmod(wanted * source_rate, rate)
        left, right = (samples[np.minimum(index, len(samples) - 1)] for index in (places, places + 1))
        out[start : start + STRETCH] = left + (right - left) * (rest / rate).astype(np.float32)
    return out


def sinc_resample(samples: Samples, source_rate: int, rate: int) -> Samples:
    """Change the sampling rate from `source_rate` to `rate`."""
    common = gcd(source_rate, rate)
    step, phases = source_rate // common, rate // common
    if step == phases or not len(samples):
        return samples
    taps, starts, before = _filter_bank(step, phases)
    length = ceil(len(samples) * phases / step)
    blocks = ceil(length / phases)
    reach = -(-(int(starts.max()) + taps.shape[1]) // step)  # in steps
    padded = np.zeros((blocks - 1 + reach) * step, dtype=np.float32)
    padded[before : before + len(samples)] = samples[: len(padded) - before]
    if phases >= MANY_PHASES:
        return many_phases(padded, taps, starts, step, length)
    out = np.empty(length, dtype=np.float32)
    polyphase(out, np.ascontiguousarray(padded.reshape(-1, step).T), taps, starts)
    return out


@lru_cache(maxsize=32)
def _filter_bank(step: int, phases: int) -> tuple[np.ndarray, np.ndarray, int]:
    """Taps of each output phase, where each starts in the padded input, and how many zeros go before the input."""
    cutoff = min(step, phases) * ROLLOFF / step  # in input samples
    reach = ZERO_CROSSINGS / cutoff  # the window is zero from the sixth zero crossing on
    centre = np.arange(phases) * (step / phases)
    starts = np.ceil(centre - reach).astype(np.int64)
    t = (starts[:, None] + np.arange(int(2 * reach) + 1) - centre[:, None]) * cutoff
    inside = np.abs(t) < ZERO_CROSSINGS
    taps = np.sinc(t) * np.cos(t * (np.pi / ZERO_CROSSINGS / 2)) ** 2 * cutoff * inside
    before = ceil(reach)
    return np.ascontiguousarray(taps, dtype=np.float32), starts + before, before


def tempo(
    samples: np.ndarray,
    rate: int,
    factor: float,
    rng: np.random.Generator | None = None,
    *,
    segment_ms: float = 30.0,
    search_ms: float | None = None,
    overlap_ms: float | None = None,
) -> np.ndarray:
    """`factor` times as fast. The search range and the overlap default to SoX's fractions of the segment."""
    if not 0.1 <= factor <= 100:
        raise ValueError(f"tempo: the factor must lie between 0.1 and 100, not {factor}")
    samples = np.ascontiguousarray(samples, dtype=np.float32)
    if factor == 1:
        return samples.copy()
    search_ms = segment_ms / 5.587 if search_ms is None else search_ms
    overlap_ms = min(segment_ms / 6.833 if overlap_ms is None else overlap_ms, segment_ms / 2)
    segment = int(rate * segment_ms / 1000 + 0.5)
    search = int(rate * search_ms / 1000 + 0.5)
    overlap = int(max(rate * overlap_ms / 1000 + 4.5, 16)) // 8 * 8
    if overlap * 2 > segment:
        overlap -= 8
    if overlap * 2 > segment:
        raise ValueError(f"tempo: a segment of {segment_ms:g} ms is too short at {rate} Hz")
    length = int(len(samples) / factor + 0.5)
    if not length:
        return np.zeros(0, dtype=np.float32)
    stride = segment - overlap  # of the output; the clip is walked through at `factor` times that
    places = (factor * (np.arange(-(-length // stride)) * stride) + 0.5).astype(np.int64)
    padded = _padded(samples, search // 2, places[-1] + search + segment)
    places[0] = search // 2  # the first segment stays at the start of the clip
    settle(places, np.empty(max(search, 1), dtype=np.float32), padded, stride, overlap)
    return _stitched(padded, places, stride, overlap)[:length]


def _padded(samples: np.ndarray, before: int, length: int) -> np.ndarray:
    """The clip with silence before it and, up to the length, after it, rounded to the steps of 2^-24 that SoX works in.

    Rounding matters where two places fit almost equally well. Speech from 16-bit files is not changed by it.
    """
    padded = np.zeros(max(before + len(samples), length), dtype=np.float32)
    clip = padded[before : before + len(samples)]
    np.multiply(samples, np.float32(1 << 24), out=clip)
    clip += np.float32(0.49999997)  # a whole 0.5 would carry over where a float32 has no fractions left
    np.floor(clip, out=clip)
    clip *= np.float32(2.0**-24)
    return padded


def _stitched(padded: np.ndarray, places: np.ndarray, stride: int, overlap: int) -> np.ndarray:
    """The segments at these places, one after another, each cross-faded from the end of the one before it."""
    segments = np.lib.stride_tricks.sliding_window_view(padded, stride)[places]
    fade = np.arange(overlap, dtype=np.float32) * (np.float32(1) / np.float32(overlap))
    tails = np.lib.stride_tricks.sliding_window_view(padded, overlap)[places[:-1] + stride]
    tails *= np.float32(1) - fade
    heads = segments[1:, :overlap]
    heads *= fade
    heads += tails
    return segments.reshape(-1)


N_FFT = 512
HOP = N_FFT // 4
BLOCK = 256  # frames: few enough to stay in the cache of any CPU
LONGEST_ANALYSED = 60 * 16_000  # samples; the analysis of each takes 24 bytes
Block = tuple[np.ndarray, np.ndarray, np.ndarray]  # magnitudes, first frame's phasors, phase steps


def pitch(
    samples: Samples, rate: int, semitones: float, rng: np.random.Generator, analysis: Sequence[Block] | None = None
) -> Samples:
    """Shift the pitch by `semitones` (negative: down) and keep the length; `analysis` is `analyse(samples)`."""
    pace = 2.0 ** (-semitones / 12)
    stretched = _stretch(_blocks(samples) if analysis is None else analysis, len(samples), pace)
    shifted = sinc_resample(stretched, int(rate / pace), rate)[: len(samples)]
    return np.pad(shifted, (0, len(samples) - len(shifted)))


def analyse(samples: Samples) -> list[Block] | None:
    """What all pitch shifts of a clip begin with; None for a long clip, whose blocks are computed one at a time."""
    return list(_blocks(samples)) if len(samples) <= LONGEST_ANALYSED else None


def _stretch(blocks: Iterable[Block], length: int, pace: float) -> Samples:
    """Phase vocoder: `pace` times as fast at the same pitch, from the blocks of a clip of `length` samples."""
    at = np.arange(0, length // HOP + 1, pace)
    whole = np.floor(at).astype(np.int64)
    fractions = (at - whole).astype(np.float32)
    hops = np.zeros((len(at) + 3, HOP), dtype=np.float32)
    phase = None
    for number, (size, first, step) in enumerate(blocks):
        start = number * BLOCK
        block = slice(*np.searchsorted(whole, (start, start + BLOCK)))
        phase = first.copy() if phase is None else phase
        stretched = np.empty((len(at[block]), size.shape[1]), dtype=np.complex64)
        vocode(stretched.view(np.float32), size, step[0], step[1], whole[block] - start, fractions[block], phase)
        overlap_frames(hops[block.start :], fft.irfft(stretched, axis=1), _window())
    return _normalised(hops)[N_FFT // 2 :][: round(length / pace)]


def _blocks(samples: Samples) -> Iterator[Block]:
    """What the vocoder needs of each block of frames."""
    # A clip too short to reflect at its edges is surrounded with silence instead.
    padded = np.pad(samples, N_FFT // 2, mode="reflect" if len(samples) > N_FFT // 2 else "constant")
    frames = np.lib.stride_tricks.sliding_window_view(padded, N_FFT)[::HOP]
    for start in range(0, len(frames), BLOCK):
        size, unit, step = _polar(fft.rfft(frames[start : start + BLOCK + 1] * _window(), axis=1))
        yield size, np.ascontiguousarray(unit[:, 0]), step


def _polar(spectrum: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Magnitudes, unit phasors, and the phase step from each frame to the next, with two silent frames at the end.

    Only the phase modulo 2 pi reaches the output, so it is kept as a phasor (real and imaginary part) and no angle is
    ever computed.
    """
    shape = len(spectrum) + 2, spectrum.shape[1]
    size, unit = np.zeros(shape, dtype=np.float32), np.zeros((2, *shape), dtype=np.float32)
    unit[0, -2:] = 1
    step = np.empty((2, shape[0] - 1, shape[1]), dtype=np.float32)
    phasors(spectrum.view(np.float32), size, unit[0], unit[1], step[0], step[1])
    return size, unit, step


def _normalised(hops: np.ndarray) -> Samples:
    """Overlapped frames divided by the sum of the squared windows that lie over them: four, but fewer at the ends."""
    squared = (_window() ** 2).reshape(4, HOP)
    count = len(hops) - 3
    hops[3:count] /= squared.sum(axis=0)
    for hop in {0, 1, 2, *range(max(3, count), count + 3)}:
        over = sum(squared[quarter] for quarter in range(4) if 0 <= hop - quarter < count)
        np.divide(hops[hop], over, out=hops[hop], where=over > 1e-11)
    return hops.ravel()


@lru_cache(maxsize=1)
def _window() -> np.ndarray:
    return (0.5 - 0.5 * np.cos(2 * np.pi * np.arange(N_FFT) / N_FFT)).astype(np.float32)
