"""Our SoX effects against the real program, sample by sample."""

import numpy as np
import pytest
from sox_program import EFFECTS, RATE, error_db, needs_sox, sox, speech, speech_like

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
