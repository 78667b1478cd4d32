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
    length = int(len(samples) / factor + 0.5)
    stride = segment - overlap  # of the output; the clip is walked through at `factor` times that
    count = -(-length // stride)
    # SoX searches symmetrically around each place, and goes on into silence at the end.
    last = int(factor * max(count - 1, 0) * stride + 0.5)
    padded = np.zeros(max(search // 2 + len(samples), last + search + segment), dtype=np.float32)
    padded[search // 2 : search // 2 + len(samples)] = samples
    from srb.builders.perturb.kernels import overlap_add

    out = np.empty(count * stride, dtype=np.float32)
    overlap_add(out, padded, factor, segment, search, overlap)
    return out[:length]
