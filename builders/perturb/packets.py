"""Packet loss on a voice call: 20 ms packets lost in bursts (Gilbert's two-state channel), nothing concealed."""

from __future__ import annotations

import numpy as np

from speech_robust_bench.core.audio import Samples

PACKET_MS = 20
MEAN_BURST = 2.0  # packets


def packet_loss(samples: Samples, rate: int, percent: float, rng: np.random.Generator) -> Samples:
    """Silence the packets that a bursty channel with this mean loss does not deliver."""
    size = round(PACKET_MS * rate / 1000)
    lost = lost_packets(-(-len(samples) // size), percent / 100, rng)
    out = samples.copy()
    for packet in np.flatnonzero(lost):
        out[packet * size : (packet + 1) * size] = 0
    return out


def lost_packets(count: int, share: float, rng: np.random.Generator) -> np.ndarray:
    """Which packets are lost: a Markov chain whose stationary loss is `share` and whose bursts last MEAN_BURST."""
    recover = 1 / MEAN_BURST
    fail = recover * share / (1 - share)
    draws = rng.random(count)
    lost = np.zeros(count, dtype=bool)
    state = bool(count) and rng.random() < share
    for i, draw in enumerate(draws):
        state = draw >= recover if state else draw < fail
        lost[i] = state
    return lost
