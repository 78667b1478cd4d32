"""Packet loss: how much is lost, and in bursts of the length that the model has."""

import numpy as np
import pytest
from speech import RATE

from speech_robust_bench.builders.perturb.codecs import MEAN_BURST, lost_packets, packet_loss


def test_packets_are_lost_at_the_rate_and_in_bursts():
    lost = lost_packets(200_000, 0.2, np.random.default_rng(0))
    assert lost.mean() == pytest.approx(0.2, abs=0.01)
    bursts = np.flatnonzero(np.diff(lost.astype(int)) == 1).size
    assert lost.sum() / bursts == pytest.approx(MEAN_BURST, rel=0.05)
    silenced = packet_loss(np.ones(10 * RATE, np.float32), RATE, 40, np.random.default_rng(0))
    assert 0.3 < (silenced == 0).mean() < 0.5
