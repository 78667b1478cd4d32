"""Groups from the voice itself, where nobody has said who speaks: high and low voices, by the median pitch.

A proxy, not a fact about people: it says how a voice sounds, not whose it is, and every table made with it says so. The
line between the two groups is 165 Hz, between the usual means of men (about 120 Hz) and of women (about 210 Hz) in
Baken and Orlikoff, "Clinical Measurement of Speech and Voice" (2000). Pitch is measured by autocorrelation of 40 ms
frames with the window's own autocorrelation divided out (Boersma, "Accurate short-term analysis of the fundamental
frequency", 1993).
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from speech_robust_bench.core.audio import RATE, Samples

NAME = "pitch"
LINE_HZ = 165.0
LOWEST_HZ, HIGHEST_HZ = 65.0, 400.0
FRAME_S, HOP_S = 0.04, 0.01
PERIODIC = 0.6  # of 1: how much like itself a frame must be one period later to count as voiced
LEAST_VOICED_S = 0.2


def median_pitch_hz(samples: Samples, rate: int = RATE) -> float | None:
    """The median pitch of a clip's voiced frames; None where there are too few of them."""
    size, hop = int(FRAME_S * rate), int(HOP_S * rate)
    if len(samples) < size:
        return None
    frames = np.lib.stride_tricks.sliding_window_view(samples.astype(np.float64), size)[::hop]
    loud = np.sqrt(np.mean(frames**2, axis=1))
    frames = frames[loud > 0.1 * np.quantile(loud, 0.95)]
    window = np.hanning(size)
    frames = (frames - frames.mean(axis=1, keepdims=True)) * window
    likeness = _autocorrelation(frames) / _autocorrelation(window[None])
    shortest, longest = int(rate / HIGHEST_HZ), int(rate / LOWEST_HZ)
    lags = likeness[:, shortest : longest + 1]
    # A period is also two periods: of the lags that are nearly as good as the best, the first peak is the pitch.
    best = lags.max(axis=1, keepdims=True)
    peaks = np.zeros(lags.shape, dtype=bool)
    peaks[:, 1:-1] = (lags[:, 1:-1] >= lags[:, :-2]) & (lags[:, 1:-1] > lags[:, 2:]) & (lags[:, 1:-1] > 0.9 * best)
    voiced = (best[:, 0] > PERIODIC) & peaks.any(axis=1)
    if voiced.sum() * HOP_S < LEAST_VOICED_S:
        return None
    return float(np.median(rate / (shortest + peaks[voiced].argmax(axis=1))))


def _autocorrelation(frames: np.ndarray) -> np.ndarray:
    """Of each row, 1 at lag 0."""
    size = frames.shape[1]
    correlation = np.fft.irfft(np.abs(np.fft.rfft(frames, 2 * size)) ** 2)[:, : size // 2]
    return correlation / np.maximum(correlation[:, :1], 1e-12)


def group(pitch_hz: float | None) -> str | None:
    """`low voice` or `high voice`.

    >>> group(120.0), group(210.0), group(None)
    ('low voice', 'high voice', None)
    """
    if pitch_hz is None:
        return None
    return "high voice" if pitch_hz >= LINE_HZ else "low voice"


def of_config(data: str | Path, config: str) -> dict[str, str | None]:
    """The group of each clip of a built config, by id."""
    from speech_robust_bench.builders.config_sources import open_data

    clips = open_data(str(data)).config(config)
    return {
        row.id: group(median_pitch_hz(window.decode(row)))
        for window in clips.windows({row.position for row in clips.rows})
        for row in window.rows
    }
