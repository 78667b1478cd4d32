"""Our SoX effects against the real program, sample by sample."""

import numpy as np
import pytest
from support.sox_program import EFFECTS, RATE, error_db, needs_sox, sox, speech, speech_like

from speech_robust_bench.builders.perturb.effects import Voice, bass, chorus, echo, phaser, treble, tremolo
from speech_robust_bench.builders.perturb.time_and_pitch import tempo

pytestmark = needs_sox
LIMIT_DB = -100  # the promise is -60; what is left is the 24-bit arithmetic inside some SoX effects

CASES = [(name, value) for name, (_, _, severities, between) in EFFECTS.items() for value in (*severities, *between)]


@pytest.mark.parametrize(("name", "value"), CASES)
def test_recorded_speech_matches_the_program(name, value, tmp_path):
    if not speech():
        pytest.skip("needs ffmpeg and the asterisk recordings (apt: asterisk-core-sounds-*-g722)")
    function, arguments, *_ = EFFECTS[name]
    for clip in speech():
        assert error_db(function(clip, RATE, value, None), sox(clip, RATE, arguments(value), tmp_path)) < LIMIT_DB


@pytest.mark.parametrize(("name", "value"), CASES)
def test_synthetic_speech_matches_the_program(name, value, tmp_path):
    function, arguments, *_ = EFFECTS[name]
    clip = speech_like()
    assert error_db(function(clip, RATE, value, None), sox(clip, RATE, arguments(value), tmp_path)) < LIMIT_DB


@pytest.mark.parametrize("rate", [8_000, 11_025, 22_050, 44_100, 48_000])
@pytest.mark.parametrize("name", EFFECTS)
def test_other_rates_match_the_program(name, rate, tmp_path):
    function, arguments, severities, _ = EFFECTS[name]
    clip = speech_like(rate=rate)
    value = severities[1]
    assert error_db(function(clip, rate, value, None), sox(clip, rate, arguments(value), tmp_path)) < LIMIT_DB


@pytest.mark.parametrize("name", EFFECTS)
def test_full_scale_clips_where_the_program_clips(name, tmp_path):
    """A full-scale square wave drives every stage into its limits."""
    function, arguments, severities, _ = EFFECTS[name]
    clip = np.where(np.arange(RATE) // 37 % 2, 1, -1).astype(np.float32)
    value = severities[-1]
    assert error_db(function(clip, RATE, value, None), sox(clip, RATE, arguments(value), tmp_path)) < LIMIT_DB


OPTIONS = [
    (echo, 80, {"gain_in": 0.9, "gain_out": 1.0, "decay": 0.7}, "echo 0.9 1.0 80 0.7"),
    (
        phaser,
        0.4,
        {"gain_in": 0.5, "delay_ms": 4.3, "speed_hz": 0.37, "wave": "sine"},
        "phaser 0.5 0.8 4.3 0.4 0.37 -s",
    ),
    (tempo, 1.3, {"segment_ms": 82, "search_ms": 14, "overlap_ms": 12}, "tempo 1.3 82 14 12"),
    (tempo, 0.8, {"segment_ms": 40, "search_ms": 0, "overlap_ms": 30}, "tempo 0.8 40 0 30"),
    (tremolo, 60, {"speed_hz": 6.25}, "tremolo 6.25 60"),
    (tremolo, 60, {"speed_hz": 0.0123}, "tremolo 0.0123 60"),
    (treble, 12, {"corner_hz": 2000, "slope": 1.0}, "treble 12 2000 1.0"),
    (bass, -9, {"corner_hz": 250, "slope": 0.3}, "bass -9 250 0.3"),
    (
        chorus,
        50,
        {"gain_in": 0.6, "voices": (Voice(0, 0.5, 2.3, 3, "sine"), Voice(7, 0.2, 0.9, 10, "triangle"))},
        "chorus 0.6 0.9 50 0.5 2.3 3 -s 57 0.2 0.9 10 -t",
    ),
]


@pytest.mark.parametrize(("function", "value", "options", "arguments"), OPTIONS)
def test_other_settings_match_the_program(function, value, options, arguments, tmp_path):
    clip = speech_like()
    assert (
        error_db(function(clip, RATE, value, None, **options), sox(clip, RATE, arguments.split(), tmp_path)) < LIMIT_DB
    )
