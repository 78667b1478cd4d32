"""Every scenario has a defined outcome for clips that nobody meant to make, and every bad file one clear line."""

import subprocess
import sys

import numpy as np
import pytest
import soundfile
from support.speech import RATE

from speech_robust_bench.builders.apply import apply
from speech_robust_bench.builders.banks import Banks
from speech_robust_bench.builders.scenarios import SCENARIOS, perturbations
from speech_robust_bench.core import audio
from speech_robust_bench.core.errors import UserError

ALL = [pytest.param(scenario, id=scenario.name) for scenario in perturbations()]
BANKS = Banks()


def perturb(scenario, samples):
    return apply(scenario, scenario.levels[-1], samples, np.random.default_rng(0), BANKS)


@pytest.mark.parametrize("scenario", ALL)
def test_an_empty_clip_stays_empty(scenario):
    assert len(perturb(scenario, np.zeros(0, np.float32)).samples) == 0


@pytest.mark.parametrize("scenario", ALL)
@pytest.mark.parametrize("length", [1, 2, 50, 257])
def test_a_clip_shorter_than_any_filter_stays_finite(scenario, length):
    made = perturb(scenario, np.full(length, 0.5, np.float32)).samples
    assert len(made) > 0
    assert np.isfinite(made).all()
    assert np.abs(made).max(initial=0) <= 1


@pytest.mark.parametrize("scenario", [s for s in ALL if s.values[0].category != "reject"])
def test_silence_stays_silent(scenario):
    made = perturb(scenario, np.zeros(RATE, np.float32))
    assert np.abs(made.samples).max() < 2e-3  # the codecs code silence with a little noise
    assert made.snr_db is None


@pytest.mark.parametrize("scenario", ALL)
def test_a_full_scale_square_wave_stays_in_range(scenario):
    square = np.sign(np.sin(np.arange(RATE, dtype=np.float32))).astype(np.float32)
    made = perturb(scenario, square)
    assert np.isfinite(made.samples).all()
    assert np.abs(made.samples).max() <= 1
    assert made.samples.dtype == np.float32


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_samples_that_are_no_numbers_are_refused(bad):
    clip = np.zeros(100, np.float32)
    clip[7] = bad
    with pytest.raises(UserError, match="NaN or infinite"):
        perturb(SCENARIOS["echo"], clip)


def test_clipped_samples_are_counted(speech):
    made = apply(SCENARIOS["gain"], 4, speech, np.random.default_rng(0), BANKS)
    assert made.clipped == np.count_nonzero(np.abs(speech * np.float32(40)) > 1) > 0


@pytest.mark.parametrize("rate", [8_000, 16_000, 22_050, 44_100, 48_000])
@pytest.mark.parametrize("channels", [1, 2])
def test_any_rate_and_channel_count_is_read(tmp_path, rate, channels):
    tone = 0.5 * np.sin(2 * np.pi * 440 * np.arange(rate) / rate)
    soundfile.write(tmp_path / "tone.wav", np.stack([tone] * channels, axis=1), rate)
    read = audio.read(tmp_path / "tone.wav")
    assert len(read) == RATE
    expected = 0.5 * np.sin(2 * np.pi * 440 * np.arange(RATE) / RATE)
    assert np.abs(read - expected)[800:-800].max() < 2e-3


def test_a_text_file_named_wav_is_refused_by_name(tmp_path):
    (tmp_path / "letter.wav").write_text("Dear all,")
    with pytest.raises(UserError, match=r"letter\.wav: cannot be decoded as audio"):
        audio.read(tmp_path / "letter.wav")


def test_a_truncated_flac_is_refused_by_name(tmp_path):
    soundfile.write(tmp_path / "a.flac", np.random.default_rng(0).uniform(-0.5, 0.5, 5 * RATE), RATE)
    whole = (tmp_path / "a.flac").read_bytes()
    (tmp_path / "cut.flac").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(UserError, match=r"cut\.flac"):
        audio.read(tmp_path / "cut.flac")


def test_a_name_that_is_not_utf8_is_refused(tmp_path):
    soundfile.write(tmp_path / "a.wav", np.zeros(10), RATE)
    odd = tmp_path / "\udcff.wav"
    (tmp_path / "a.wav").rename(odd)
    with pytest.raises(UserError, match="its name is not UTF-8"):
        audio.read(odd)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(UserError, match=r"gone\.wav: no such file"):
        audio.read(tmp_path / "gone.wav")


MEMORY = """
import resource, numpy as np
from speech_robust_bench.builders.apply import apply
from speech_robust_bench.builders.banks import Banks
from speech_robust_bench.builders.scenarios import SCENARIOS
banks, rng = Banks(), np.random.default_rng(0)
def run(seconds):
    clip = np.resize(np.sin(np.arange(99991, dtype=np.float32)), seconds * 16_000) * np.float32(0.3)
    for name in {names}:
        apply(SCENARIOS[name], SCENARIOS[name].levels[-1], clip, rng, banks)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
small = run(10)
print((run({seconds}) - small) / ({seconds} * 16_000 * 4))
"""


@pytest.mark.parametrize("seconds", [600, pytest.param(3600, marks=pytest.mark.long)])
def test_memory_for_a_long_clip_is_proportional(seconds):
    names = ["gaussian", "rir", "echo", "phaser", "tempo_down", "pitch_up", "slowdown", "chorus", "resample", "lowpass"]
    run = subprocess.run(
        [sys.executable, "-c", MEMORY.format(names=names, seconds=seconds)], capture_output=True, text=True, check=True
    )
    assert float(run.stdout) < 16, "copies of the clip at the peak"
