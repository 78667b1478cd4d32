"""Packet loss: how much is lost, and in bursts of the length that the model has."""

from itertools import groupby

import numpy as np
import pytest
from support.speech import RATE

from speech_robust_bench.builders.perturb import codecs
from speech_robust_bench.builders.perturb.codecs import MEAN_BURST, lost_packets, packet_loss


def test_packets_are_lost_at_the_rate_and_in_bursts():
    lost = lost_packets(200_000, 0.2, np.random.default_rng(0))
    assert lost.mean() == pytest.approx(0.2, abs=0.01)
    bursts = np.flatnonzero(np.diff(lost.astype(int)) == 1).size
    assert lost.sum() / bursts == pytest.approx(MEAN_BURST, rel=0.05)
    silenced = packet_loss(np.ones(10 * RATE, np.float32), RATE, 40, np.random.default_rng(0))
    assert 0.3 < (silenced == 0).mean() < 0.5


@pytest.mark.parametrize("percent", [0, 5, 40, 60, 66.6, 70, 80, 90])
def test_the_rate_asked_for_is_reached(percent):
    """Over 400,000 packets, within five standard errors of a mean over as many independent bursts."""
    count, share = 400_000, percent / 100
    lost = lost_packets(count, share, np.random.default_rng(7))
    bursts = [len(list(run)) for state, run in groupby(lost) if state]
    spread = 5 * np.sqrt(2 * share * (1 - share) * max(MEAN_BURST, 1 / (1 - share)) / count)
    assert lost.mean() == pytest.approx(share, abs=spread)
    if share:
        expected = max(MEAN_BURST, share / (1 - share))  # no gap is shorter than one packet
        assert np.mean(bursts) == pytest.approx(expected, rel=0.03)


@pytest.mark.parametrize("percent", [70, 90])
def test_a_call_over_opus_loses_what_was_asked_for(percent, monkeypatch):
    pytest.importorskip("av")
    decoded: list[bytes | None] = []
    decode = codecs._OpusDecoder.decode

    def counting(self, packet, **how):
        decoded.append(packet)
        return decode(self, packet, **how)

    monkeypatch.setattr(codecs._OpusDecoder, "decode", counting)
    noise = (0.1 * np.random.default_rng(0).standard_normal(120 * RATE)).astype(np.float32)
    codecs.opus_loss(noise, RATE, percent, np.random.default_rng(1))
    share = np.mean([packet is None for packet in decoded])
    assert share == pytest.approx(percent / 100, abs=4 * np.sqrt(2 * 0.09 * 2 / 6000) + 0.01)


def test_no_packet_arrives_where_all_are_lost():
    assert lost_packets(50, 1.0, np.random.default_rng(0)).all()
    assert not lost_packets(50, 0.0, np.random.default_rng(0)).any()
