"""How speech is recorded: level control, odd sample rates, cut beginnings and ends, noise that comes and goes."""

import numpy as np
import pytest
from support.speech import RATE, speech_like

from speech_robust_bench.builders.banks.recording import Recording
from speech_robust_bench.builders.perturb.environment import add_moving_noise, agc, snr_db, trim_end, trim_start
from speech_robust_bench.builders.perturb.time_and_pitch import odd_rate
from speech_robust_bench.builders.scenarios import SCENARIOS

RNG = np.random.default_rng(0)


def rms(samples):
    return float(np.sqrt(np.mean(np.square(samples, dtype=np.float64))))


def tone(seconds, level, hz=440):
    return (level * np.sqrt(2) * np.sin(2 * np.pi * hz * np.arange(int(seconds * RATE)) / RATE)).astype(np.float32)


@pytest.mark.parametrize("level", [0.02, 0.1, 0.5])
def test_level_control_brings_a_steady_tone_to_minus_20_dbfs(level):
    controlled = agc(tone(6, level), RATE, 30, RNG)
    assert rms(controlled[-RATE:]) == pytest.approx(0.1, rel=0.02)


def test_level_control_turns_up_no_further_than_it_may():
    assert rms(agc(tone(6, 0.001), RATE, 20, RNG)[-RATE:]) == pytest.approx(0.01, rel=0.02)


def test_level_control_falls_faster_than_it_rises():
    """Ten times too loud is right within 0.2 s; ten times too quiet takes seconds."""
    gains_down = rms(
        agc(np.concatenate([tone(2, 0.1), tone(1, 1.0)]), RATE, 40, RNG)[2 * RATE + 3200 : 2 * RATE + 4800]
    )
    gains_up = rms(agc(np.concatenate([tone(2, 0.1), tone(1, 0.01)]), RATE, 40, RNG)[2 * RATE + 3200 : 2 * RATE + 4800])
    assert gains_down == pytest.approx(0.1, rel=0.05)
    assert gains_up < 0.05


@pytest.mark.parametrize("rate_hz", SCENARIOS["odd_rate"].severities)
def test_odd_rates_are_numpys_straight_lines(rate_hz):
    clip = speech_like(1)
    there_at = np.arange(-(-len(clip) * rate_hz // RATE)) * RATE / rate_hz
    there = np.interp(there_at, np.arange(len(clip)), clip)
    back = np.interp(np.arange(len(clip)) * rate_hz / RATE, np.arange(len(there)), there)
    np.testing.assert_allclose(odd_rate(clip, RATE, rate_hz, RNG), back, atol=1e-6)


def test_a_cut_begins_where_speech_does():
    silence, speech = np.zeros(RATE // 2, np.float32), tone(1, 0.1)
    clip = np.concatenate([silence, speech, silence])
    assert len(trim_start(clip, RATE, 100, RNG)) == len(speech) + len(silence) - RATE // 10
    assert len(trim_end(clip, RATE, 100, RNG)) == len(silence) + len(speech) - RATE // 10
    np.testing.assert_array_equal(trim_start(clip, RATE, 0, RNG)[: len(speech)], speech)
    assert len(trim_start(clip, RATE, 10_000, RNG)) == len(trim_end(clip, RATE, 10_000, RNG)) == 0


def test_moving_noise_keeps_the_snr_and_moves_by_20_db():
    clip, noise = tone(8, 0.1), np.random.default_rng(1).standard_normal(8 * RATE).astype(np.float32)
    noisy = add_moving_noise(clip, RATE, 10, np.random.default_rng(2), Recording("white", noise))
    assert snr_db(clip, noisy) == pytest.approx(10, abs=0.01)
    levels = [20 * np.log10(rms(part)) for part in (noisy - clip).reshape(-1, RATE // 10)]
    assert max(levels) - min(levels) == pytest.approx(20, abs=1)


def test_words_of_a_cut_clip_have_no_known_times():
    assert not SCENARIOS["trim_start"].keeps_start
    assert SCENARIOS["trim_end"].keeps_start
    assert SCENARIOS["street_call"].keeps_start
