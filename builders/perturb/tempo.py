"""SoX `tempo FACTOR SEGMENT`: faster or slower at the same pitch (SRB, Appendix A).

Waveform-similarity overlap-add: segments are taken from the clip at the new pace, each is moved to where it best fits
the end of the one before it, and the two are cross-faded.
"""

from __future__ import annotations

import numpy as np


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
    from speech_robust_bench.builders.perturb.signal_kernels import settle

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
