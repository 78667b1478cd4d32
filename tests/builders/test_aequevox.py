"""AequeVox transformations as its paper defines them."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import signal
from speech import RATE, error_db

from srb.builders.perturb import aequevox
from srb.builders.perturb.butterworth import butterworth
from srb.builders.perturb.packets import MEAN_BURST, lost_packets, packet_loss


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 999), st.integers(1, 60_000), st.sampled_from([5, 10, 15, 20, 25]))
def test_drop_silences_its_share_and_never_two_neighbours(seed, length, percent):
    kept = aequevox.drop(np.ones(length, np.float32), RATE, percent, np.random.default_rng(seed))
    chunks = [chunk.any() for chunk in np.split(kept, range(320, length, 320))]
    dropped = [not alive for alive in chunks]
    assert sum(dropped) == min(round(percent / 100 * len(chunks)), (len(chunks) + 1) // 2)
    assert not any(a and b for a, b in itertools.pairwise(dropped))


@pytest.mark.parametrize("chunk_ms", [10, 20, 30, 40, 50])
def test_frame_silences_a_tenth(chunk_ms):
    kept = aequevox.frame(np.ones(10 * RATE, np.float32), RATE, chunk_ms, np.random.default_rng(1))
    assert 1 - kept.mean() == pytest.approx(0.1, abs=0.005)


@pytest.mark.parametrize("corner_hz", [500, 700, 900])
def test_filters_are_3_db_down_at_the_corner_and_fall_by_12_db_an_octave(corner_hz):
    impulse = np.zeros(RATE, np.float32)
    impulse[0] = 1
    for function, octave in ((aequevox.lowpass, 4), (aequevox.highpass, 1 / 4)):
        response = np.abs(np.fft.rfft(function(impulse, RATE, corner_hz, None)))
        assert 20 * np.log10(response[corner_hz]) == pytest.approx(-3.01, abs=0.05)
        assert 20 * np.log10(response[int(corner_hz * octave)]) < -23


def test_clipping_is_at_the_level_of_a_full_scale_clip_and_then_rescaled(speech):
    clipped = aequevox.clipping(speech, RATE, 0.05, None)
    assert np.abs(clipped).max() == pytest.approx(1)
    untouched = np.abs(speech) < 0.05 * np.abs(speech).max()
    assert np.allclose(clipped[untouched] * 0.05 * np.abs(speech).max(), speech[untouched], atol=1e-6)


def test_scale_slows_down_and_lowers_the_pitch():
    tone = np.sin(2 * np.pi * 1000 * np.arange(RATE) / RATE).astype(np.float32)
    slow = aequevox.scale(tone, RATE, 0.5, None)
    assert len(slow) == 2 * RATE
    hertz, power = signal.periodogram(slow, RATE)
    assert hertz[np.argmax(power)] == pytest.approx(500, abs=1)


def test_packets_are_lost_at_the_rate_and_in_bursts():
    lost = lost_packets(200_000, 0.2, np.random.default_rng(0))
    assert lost.mean() == pytest.approx(0.2, abs=0.01)
    bursts = np.flatnonzero(np.diff(lost.astype(int)) == 1).size
    assert lost.sum() / bursts == pytest.approx(MEAN_BURST, rel=0.05)
    silenced = packet_loss(np.ones(10 * RATE, np.float32), RATE, 40, np.random.default_rng(0))
    assert 0.3 < (silenced == 0).mean() < 0.5


@pytest.mark.parametrize("kind", ["lowpass", "highpass"])
@pytest.mark.parametrize("order", [2, 4])
def test_butterworth_is_that_of_scipy(kind, order, speech):
    theirs = signal.sosfilt(signal.butter(order, 700, kind, fs=RATE, output="sos"), speech)
    assert error_db(butterworth(speech, RATE, 700, kind, order), theirs) < -120
