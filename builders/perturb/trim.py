"""Cut beginnings and ends: what a voice activity detector or a late press of a button loses of an utterance.

Telephony calls it front-end and back-end clipping (Freeman et al., ICASSP 1989). The cut is measured from where speech
begins or ends, so that the silence around it does not soften it; the reference stays that of the whole utterance.
"""

from __future__ import annotations

import numpy as np

from speech_robust_bench.core.audio import Samples

FRAME_MS = 10
BELOW_PEAK_DB = 30  # a frame this far below the loudest is not speech


def trim_start(samples: Samples, rate: int, cut_ms: float, rng: np.random.Generator) -> Samples:
    """Without all that comes before speech begins, and without its first `cut_ms`."""
    first, _ = speech_bounds(samples, rate)
    return samples[first + round(cut_ms * rate / 1000) :].copy()


def trim_end(samples: Samples, rate: int, cut_ms: float, rng: np.random.Generator) -> Samples:
    """Without all that comes after speech ends, and without its last `cut_ms`."""
    _, last = speech_bounds(samples, rate)
    return samples[: max(last - round(cut_ms * rate / 1000), 0)].copy()


def speech_bounds(samples: Samples, rate: int) -> tuple[int, int]:
    """Where the first frame begins and the last one ends that are within 30 dB of the loudest; all of a silent clip."""
    from speech_robust_bench.builders.perturb.noise import energy

    size = round(FRAME_MS * rate / 1000)
    energies = np.array([energy(samples[start : start + size]) for start in range(0, len(samples), size)])
    loud = np.flatnonzero(energies > energies.max(initial=0) * 10 ** (-BELOW_PEAK_DB / 10))
    if not len(loud):
        return 0, len(samples)
    return int(loud[0]) * size, min((int(loud[-1]) + 1) * size, len(samples))
