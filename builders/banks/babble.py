"""Babble from the speech at hand: competing talkers made out of the clip itself, where no bank of speech is given.

Each talker is the clip at another speed (so at another pitch), started elsewhere and wrapped around, some played
backwards so that their words are nobody's. A pure function of the clip and the random stream.
"""

from __future__ import annotations

import numpy as np

from speech_robust_bench.core.audio import Samples

TALKERS = 3
# Speeds as ratios: below 1 the talker is slower and lower than the clip's own voice, above 1 faster and higher.
SPEEDS = ((4, 5), (7, 8), (8, 7), (5, 4))


def babble(clip: Samples, rng: np.random.Generator) -> Samples:
    """As many samples as the clip has, of three other talkers at once; an empty or silent clip gives silence."""
    speeds = rng.permutation(SPEEDS)[:TALKERS].tolist()
    offsets = rng.random(TALKERS).tolist()
    backwards = int(rng.integers(TALKERS))
    out = np.zeros(len(clip), dtype=np.float32)
    if not len(clip):
        return out
    from speech_robust_bench.builders.perturb.signal_kernels import add_talker

    for talker, ((up, down), offset) in enumerate(zip(speeds, offsets, strict=True)):
        voice = clip[::-1] if talker == backwards else clip
        weights = (np.arange(down) / down).astype(np.float32)
        add_talker(out, np.ascontiguousarray(voice, dtype=np.float32), weights, up, int(offset * len(clip)))
    return out
