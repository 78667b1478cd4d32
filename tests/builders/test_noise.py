"""Additive noise reaches its SNR; silence has none."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.speech import RATE

from speech_robust_bench.builders.perturb.environment import gaussian, mix, snr_db, to_length


def clip(seed: int, length: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(length).astype(np.float32) * np.float32(0.1)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 99), st.integers(100, 20_000), st.integers(100, 20_000), st.floats(-10, 60))
def test_reaches_the_snr(seed, length, noise_length, wanted_db):
    speech, noise = clip(seed, length), clip(seed + 1, noise_length)
    noisy = mix(speech, noise, wanted_db).astype(float)
    added = noisy - speech
    assert 10 * np.log10((speech.astype(float) ** 2).sum() / (added**2).sum()) == pytest.approx(wanted_db, abs=0.05)


@pytest.mark.parametrize("wanted_db", [30, 20, 10, 0])
def test_gaussian_is_white_and_reaches_the_snr(wanted_db, speech):
    noisy = gaussian(speech, RATE, wanted_db, np.random.default_rng(0))
    assert snr_db(speech, noisy) == pytest.approx(wanted_db, abs=0.05)
    power = np.abs(np.fft.rfft(noisy.astype(float) - speech)) ** 2
    low, high = np.array_split(power, 2)
    assert low.mean() == pytest.approx(high.mean(), rel=0.05)


def test_silent_speech_and_silent_noise_leave_the_clip_as_it_was(speech):
    silence = np.zeros(1000, np.float32)
    assert not mix(silence, clip(0, 500), 10).any()
    assert np.array_equal(mix(speech, silence, 10), speech)
    assert snr_db(silence, silence) is None


def test_short_noise_repeats_and_long_noise_is_cut_at_its_start():
    assert to_length(np.arange(3.0), 7).tolist() == [0, 1, 2, 0, 1, 2, 0]
    assert to_length(np.arange(9.0), 2).tolist() == [0, 1]
