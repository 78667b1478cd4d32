"""Convolution with a room: the authors' recipe, exact, and bounded in time and memory."""

import tracemalloc

import numpy as np
import pytest
import scipy.signal
from hypothesis import given, settings
from hypothesis import strategies as st

from speech_robust_bench.builders.banks.recording import Recording
from speech_robust_bench.builders.perturb.environment import direct_sound, reverberate
from speech_robust_bench.core.errors import UserError

RATE = 16_000
RNG = np.random.default_rng(3)


def room(length, lead_in=160):
    response = RNG.standard_normal(length) * np.exp(-6.9 * np.arange(length) / max(length, 1))
    return Recording("room.wav", np.concatenate([np.zeros(lead_in), response]).astype(np.float32))


def error_db(ours, theirs):
    return 10 * np.log10(np.sum((ours - theirs) ** 2) / np.sum(theirs**2) + 1e-30)


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 200_000), st.integers(1, 9_000))
def test_matches_scipy_in_double_precision(samples, response):
    clip, rir = RNG.standard_normal(samples).astype(np.float32), room(response)
    kept = rir.samples[160:].astype(np.float64)
    expected = scipy.signal.fftconvolve(clip.astype(np.float64), kept / np.linalg.norm(kept))
    ours = reverberate(clip, RATE, None, RNG, rir)
    assert ours.dtype == np.float32
    assert len(ours) == samples + response - 1
    assert error_db(ours, expected) < -100


def test_the_first_ten_milliseconds_are_dropped():
    clip, rir = RNG.standard_normal(4000).astype(np.float32), room(2000)
    noisy = Recording("n", np.concatenate([np.full(160, 0.5), rir.samples[160:]]).astype(np.float32))
    np.testing.assert_array_equal(reverberate(clip, RATE, 1, RNG, noisy), reverberate(clip, RATE, 1, RNG, rir))


def test_an_impulse_that_is_all_lead_in_leaves_the_clip_as_it_is():
    """A response of 10 ms or less, or one that is silent after them, is kept whole: it is all there is of the room."""
    clip = RNG.standard_normal(4000).astype(np.float32)
    for length in (1, 160, 8000):
        impulse = np.zeros(length, np.float32)
        impulse[0] = 0.25
        out = reverberate(clip, RATE, 1, RNG, Recording("i", impulse))
        np.testing.assert_allclose(out[: len(clip)], clip, atol=1e-5)
        np.testing.assert_allclose(out[len(clip) :], 0, atol=1e-5)


@pytest.mark.parametrize("noise", [0.0, 0.003, 0.03])
@pytest.mark.parametrize(("direct_ms", "reflection_ms"), [(0, 4), (2, 13), (9, 30), (11, 25), (50, 80)])
def test_the_direct_sound_is_never_cut(direct_ms, reflection_ms, noise):
    """Early it is kept with all that is before it; from 10 ms on, the first 10 ms are dropped as in the paper."""
    response = noise * np.random.default_rng(5).standard_normal(4000)
    response[direct_ms * 16 + 200 :] += 0.1 * np.random.default_rng(6).standard_normal(3800 - direct_ms * 16)
    response[[direct_ms * 16, reflection_ms * 16]] = 0.8, 0.5
    response = response.astype(np.float32)
    clip = RNG.standard_normal(8000).astype(np.float32)
    dropped = 0 if direct_ms < 10 else 160
    kept = response[dropped:].astype(np.float64)
    expected = scipy.signal.fftconvolve(clip.astype(np.float64), kept / np.linalg.norm(kept))
    ours = reverberate(clip, RATE, None, RNG, Recording("room.wav", response))
    assert len(ours) == len(clip) + len(kept) - 1
    assert error_db(ours, expected) < -100
    first = np.abs(scipy.signal.correlate(ours, clip, "valid")).argmax()
    assert first == direct_ms * 16 - dropped, "the strongest path is the direct one, with its delay"


def test_a_direct_sound_fainter_than_a_reflection_is_found():
    response = np.zeros(3000, np.float32)
    response[[40, 400]] = 0.15, 1.0
    assert direct_sound(response, RATE) == 40
    assert len(reverberate(np.ones(1, np.float32), RATE, 1, RNG, Recording("r", response))) == 3000


@pytest.mark.parametrize("length", [0, 100, 5000])
def test_a_silent_room_is_named(length):
    with pytest.raises(UserError, match=r"quiet\.wav"):
        reverberate(np.ones(10, np.float32), RATE, 1, RNG, Recording("quiet.wav", np.zeros(length, np.float32)))


def test_empty_and_one_sample_clips():
    assert len(reverberate(np.zeros(0, np.float32), RATE, 1, RNG, room(500))) == 0
    one = reverberate(np.ones(1, np.float32), RATE, 1, RNG, room(500))
    assert len(one) == 500
    assert np.linalg.norm(one) == pytest.approx(1, rel=1e-5)


def test_memory_follows_the_clip():
    clip = np.zeros(5 * 60 * RATE, np.float32)
    rir = room(RATE)
    tracemalloc.start()
    reverberate(clip, RATE, 1, RNG, rir)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1.5 * clip.nbytes
