"""Reject sets: clips with no speech at all, where every word of a transcript is a hallucination (Aksenova et al.).

Each takes the place of a real clip, as long and as loud as it, so that length and level give nothing away.
"""

from __future__ import annotations

import numpy as np

from speech_robust_bench.builders.perturb.noise import energy, to_length
from speech_robust_bench.builders.recording import Recording
from speech_robust_bench.core.audio import Samples

DEFAULT_RMS = 0.05  # where the clip itself is silent


def silence(samples: Samples, rate: int, value: None, rng: np.random.Generator) -> Samples:
    """Digital silence."""
    return np.zeros_like(samples)


def only(samples: Samples, rate: int, value: None, rng: np.random.Generator, recording: Recording) -> Samples:
    """The recording alone, at the clip's level."""
    if not len(recording.samples):
        return np.zeros_like(samples)
    alone = to_length(recording.samples, len(samples))
    loudness = energy(samples) or len(samples) * DEFAULT_RMS**2
    return alone * np.float32(np.sqrt(loudness / (energy(alone) or 1)))
