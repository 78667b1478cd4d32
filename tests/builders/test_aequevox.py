"""AequeVox transformations as its paper defines them."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import signal
from support.speech import RATE, error_db

from speech_robust_bench.builders.perturb import effects
from speech_robust_bench.builders.perturb.effects import butterworth


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 999), st.integers(1, 60_000), st.sampled_from([5, 10, 15, 20, 25]))
def test_drop_silences_its_share_and_never_two_neighbours(seed, length, percent):
    kept = effects.drop_chunks(np.ones(length, np.float32), RATE, percent, np.random.default_rng(seed))
    chunks = [chunk.any() for chunk in np.split(kept, range(320, length, 320))]
    dropped = [not alive for alive in chunks]
    assert sum(dropped) == min(round(percent / 100 * len(chunks)), (len(chunks) + 1) // 2)
    assert not any(a and b for a, b in itertools.pairwise(dropped))


@pytest.mark.parametrize("chunk_ms", [10, 20, 30, 40, 50])
def test_frame_silences_a_tenth(chunk_ms):
    kept = effects.drop_share(np.ones(10 * RATE, np.float32), RATE, chunk_ms, np.random.default_rng(1))
    assert 1 - kept.mean() == pytest.approx(0.1, abs=0.005)


@pytest.mark.parametrize("corner_hz", [500, 700, 900])
def test_filters_are_those_of_second_order(corner_hz):
    impulse = np.zeros(RATE, np.float32)
    impulse[0] = 1
    for function, octave in ((effects.butterworth_lowpass, 4), (effects.butterworth_highpass, 1 / 4)):
        response = np.abs(np.fft.rfft(function(impulse, RATE, corner_hz, None)))
        assert 20 * np.log10(response[corner_hz]) == pytest.approx(-3.01, abs=0.05)
        assert 20 * np.log10(response[int(corner_hz * octave)]) < -23


@pytest.mark.parametrize("corner_hz", [500, 700, 900])
def test_zero_phase_filters_are_scipys_filtfilt(corner_hz, speech):
    for function, once, octave in (
        (effects.zero_phase_lowpass, effects.butterworth_lowpass, 4),
        (effects.zero_phase_highpass, effects.butterworth_highpass, 1 / 4),
    ):
        kind = "low" if octave > 1 else "high"
        expected = signal.filtfilt(*signal.butter(2, corner_hz / (RATE / 2), kind), speech)
        assert error_db(function(speech, RATE, corner_hz, None), expected.astype(np.float32)) < -100
        impulse = np.zeros(RATE, np.float32)
        impulse[RATE // 2] = 1
        twice, single = (np.abs(np.fft.rfft(f(impulse, RATE, corner_hz, None))) for f in (function, once))
        hertz = int(corner_hz * octave)
        assert 20 * np.log10(twice[hertz]) == pytest.approx(40 * np.log10(single[hertz]), abs=0.1)


def test_a_500_hz_lowpass_both_ways_takes_50_db_from_2_khz():
    """The figure that AequeVox' code gives; a single pass takes 25."""
    tone = np.sin(2 * np.pi * 2000 * np.arange(RATE) / RATE).astype(np.float32)
    middle = slice(RATE // 4, 3 * RATE // 4)
    rms = [np.sqrt(np.mean(x[middle] ** 2)) for x in (tone, effects.zero_phase_lowpass(tone, RATE, 500, None))]
    assert 20 * np.log10(rms[1] / rms[0]) == pytest.approx(-49.9, abs=0.1)


@pytest.mark.parametrize("length", [0, 1, 5, 9, 10])
def test_zero_phase_filters_take_the_shortest_clips(length):
    assert len(effects.zero_phase_lowpass(np.ones(length, np.float32), RATE, 500, None)) == length


def test_clipping_is_relative_to_the_peak_and_rescaled(speech):
    clipped = effects.clipping(speech, RATE, 0.05, None)
    assert np.abs(clipped).max() == pytest.approx(1)
    untouched = np.abs(speech) < 0.05 * np.abs(speech).max()
    assert np.allclose(clipped[untouched] * 0.05 * np.abs(speech).max(), speech[untouched], atol=1e-6)


def test_scale_slows_down_and_lowers_the_pitch():
    tone = np.sin(2 * np.pi * 1000 * np.arange(RATE) / RATE).astype(np.float32)
    slow = effects.slow_down(tone, RATE, 0.5, None)
    assert len(slow) == 2 * RATE
    hertz, power = signal.periodogram(slow, RATE)
    assert hertz[np.argmax(power)] == pytest.approx(500, abs=1)


@pytest.mark.parametrize("kind", ["lowpass", "highpass"])
@pytest.mark.parametrize("order", [2, 4])
def test_butterworth_is_that_of_scipy(kind, order, speech):
    theirs = signal.sosfilt(signal.butter(order, 700, kind, fs=RATE, output="sos"), speech)
    assert error_db(butterworth(speech, RATE, 700, kind, order), theirs) < -120
