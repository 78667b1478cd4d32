"""Babble from the speech at hand: competing talkers made out of the clip itself, where no bank of speech is given.

Each talker is the clip at another speed (so at another pitch), started elsewhere and wrapped around, some played
backwards so that their words are nobody's. A pure function of the clip and the random stream.
"""

from __future__ import annotations

import numpy as np

from srb.builders.audio import Samples

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
    for talker, ((up, down), offset) in enumerate(zip(speeds, offsets, strict=True)):
        voice = clip[::-1] if talker == backwards else clip
        out += _at_speed(voice, up, down, int(offset * len(clip)))
    return out


def _at_speed(samples: Samples, up: int, down: int, offset: int) -> Samples:
    """The clip read round and round from an offset, `up` samples for every `down` that come out, on straight lines."""
    rounds = -(-len(samples) // down)
    around = np.resize(np.concatenate([samples[offset:], samples[:offset]]), (rounds + 1) * up + 1)
    out = np.empty((rounds, down), dtype=np.float32)
    for phase in range(down):
        whole, rest = divmod(phase * up, down)
        left, right = around[whole::up][:rounds], around[whole + 1 :: up][:rounds]
        out[:, phase] = left + np.float32(rest / down) * (right - left)
    return out.reshape(-1)[: len(samples)]
