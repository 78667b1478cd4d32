"""Cutting long recordings for models that take only so much audio at a time."""

from __future__ import annotations

import numpy as np

from speech_robust_bench.models.interface import Clip

FRAME_S = 0.02


def split_at_pauses(clip: Clip, rate: int, longest_s: float, search_s: float = 6.0) -> list[Clip]:
    """Pieces of at most `longest_s`, cut at the quietest moment within the last `search_s` of each; no sample is lost.

    The energy is smoothed over 0.2 s, so that the cut falls in a pause and not in a stop consonant.
    """
    pieces = []
    longest, frame = int(longest_s * rate), max(1, int(FRAME_S * rate))
    while len(clip) > longest:
        window = clip[longest - int(search_s * rate) : longest]
        frames = window[: len(window) // frame * frame].reshape(-1, frame)
        energy = np.convolve(np.square(frames, dtype=np.float64).mean(axis=1), np.ones(10), mode="same")
        cut = longest - int(search_s * rate) + int(energy.argmin()) * frame + frame // 2
        pieces.append(clip[:cut])
        clip = clip[cut:]
    return [*pieces, clip]
