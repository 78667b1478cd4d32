"""Very short, silent, read-only and long clips through the SoX effects, and the properties that always hold."""

import subprocess
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from support.sox_program import EFFECTS, RATE, error_db, needs_sox, sox, speech_like

NAMES = list(EFFECTS)
LINEAR = [name for name in NAMES if not name.startswith("tempo")]
LENGTHS = (1, 2, 7, 72, 157, 480, 566, 1000)  # around a tempo segment, its overlap, and half a sinc filter

clips = arrays(np.float32, st.integers(0, 3000), elements=st.floats(-1, 1, width=32))


def apply(name: str, clip: np.ndarray, severity: int = 3, rate: int = RATE) -> np.ndarray:
    function, _, severities, _ = EFFECTS[name]
    return function(clip, rate, severities[severity - 1], None)


def length_law(name: str, length: int, value: float) -> int:
    """The length that SoX's manual gives an effect's output."""
    if name == "echo":
        return length + int(value * RATE / 1000)
    if name == "chorus":  # the longer of the two delays, and its depth
        return length + int((value + 10 + 2) * RATE / 1000)
    return int(length / value + 0.5) if name.startswith("tempo") else length


@pytest.mark.parametrize("name", NAMES)
def test_an_empty_clip_stays_empty(name):
    out = apply(name, np.zeros(0, np.float32))
    assert out.shape == (0,)
    assert out.dtype == np.float32


@needs_sox
@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("name", NAMES)
def test_short_clips_match_the_program(name, length, tmp_path):
    function, arguments, severities, _ = EFFECTS[name]
    clip = speech_like()[2000 : 2000 + length]
    for value in (severities[0], severities[-1]):
        ours, reference = function(clip, RATE, value, None), sox(clip, RATE, arguments(value), tmp_path)
        assert len(ours) == len(reference)
        assert not len(ours) or error_db(ours, reference) < -80


@pytest.mark.parametrize("name", NAMES)
def test_silence_stays_silent(name):
    assert not apply(name, np.zeros(RATE, np.float32)).any()


@pytest.mark.parametrize("name", NAMES)
def test_the_clip_itself_is_left_alone(name):
    clip = speech_like()
    clip.flags.writeable = False
    before = clip.copy()
    out = apply(name, clip)
    assert np.array_equal(clip, before)
    assert not np.shares_memory(out, clip)
    assert np.array_equal(apply(name, np.repeat(clip, 2)[::2]), out)  # neither does it have to be contiguous


@pytest.mark.parametrize("name", NAMES)
def test_a_long_clip_takes_memory_in_proportion_to_its_length(name):
    clip = np.resize(speech_like(), 60 * 10 * RATE)
    apply(name, clip[:RATE])  # compile and design first
    tracemalloc.start()
    out = apply(name, clip)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak <= out.nbytes + 1.6 * clip.nbytes + 4e6


@needs_sox
@pytest.mark.parametrize(
    ("name", "value", "rate"),
    [
        ("echo", 0.01, 8_000),
        ("phaser", 1.0, RATE),
        ("tempo_up", 0, RATE),
        ("tempo_up", 101, RATE),
        ("lowpass", 4000, 8_000),
        ("highpass", 8000, RATE),
        ("treble", 10, 5_000),
        ("chorus", 19, RATE),
        ("chorus", 91, RATE),
    ],
)
def test_what_sox_refuses_is_refused(name, value, rate, tmp_path):
    function, arguments, *_ = EFFECTS[name]
    clip = speech_like(0.1, rate)
    with pytest.raises(ValueError, match=r"\d"):
        function(clip, rate, value, None)
    with pytest.raises(subprocess.CalledProcessError):
        sox(clip, rate, arguments(value), tmp_path)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=25, deadline=None)
@given(clip=clips, severity=st.integers(1, 4))
def test_length_and_finiteness(name, clip, severity):
    out = apply(name, clip, severity)
    assert out.dtype == np.float32
    assert np.isfinite(out).all()
    assert len(out) == (length_law(name, len(clip), EFFECTS[name][2][severity - 1]) if len(clip) else 0)
    assert out.tobytes() == apply(name, clip, severity).tobytes()


@pytest.mark.parametrize("name", LINEAR)
@settings(max_examples=15, deadline=None)
@given(one=clips, seed=st.integers(0, 2**32 - 1), severity=st.integers(1, 4))
def test_linear(name, one, seed, severity):
    """Nothing inside an effect clips or rounds: clipping is left to the caller."""
    other = np.random.default_rng(seed).uniform(-1, 1, len(one)).astype(np.float32)
    mixed = apply(name, 0.5 * one - 3 * other, severity)
    expected = 0.5 * apply(name, one, severity).astype(np.float64) - 3 * apply(name, other, severity)
    scale = max(1, np.abs(expected).max(initial=0))
    assert np.allclose(mixed, expected, rtol=0, atol=2e-5 * scale)


@pytest.mark.parametrize("factor", [0.5, 0.875, 1.25, 2])
def test_tempo_keeps_the_pitch_and_moves_the_events(factor):
    """A tone keeps its frequency; a click two thirds into the clip stays two thirds into it."""
    time = np.arange(3 * RATE) / RATE
    tone = (0.5 * np.sin(2 * np.pi * 440 * time)).astype(np.float32)
    out = EFFECTS["tempo_up"][0](tone, RATE, factor, None)
    assert np.abs(np.fft.rfft(out)).argmax() * RATE / len(out) == pytest.approx(440, abs=2)
    click = np.zeros(3 * RATE, np.float32)
    click[2 * RATE] = 1
    out = EFFECTS["tempo_up"][0](click, RATE, factor, None)
    assert np.abs(out).argmax() == pytest.approx(len(out) * 2 / 3, abs=0.03 * RATE)
