"""The built-in bank: every kind works with no files, is plausible, and is the same everywhere."""

import hashlib
import itertools
import pickle
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from speech_robust_bench.builders.banks import LAYOUTS, builtin, open_bank, synthesis
from speech_robust_bench.builders.banks.builtin import NOISES, babble
from speech_robust_bench.core.audio import RATE
from speech_robust_bench.core.seeding import clip_rng

CLIP = np.random.default_rng(0).standard_normal(RATE).astype(np.float32) * 0.1


def draw(kind, clip_id, severity=2, clip=CLIP, folder=None):
    return open_bank(kind, folder).draw(clip_rng("test", str(clip_id), kind, severity), clip=clip, severity=severity)


@pytest.mark.parametrize("kind", LAYOUTS)
def test_every_kind_draws_without_files(kind):
    for severity in (1, 2, 3, 4):
        recording = draw(kind, 1, severity)
        assert recording.name.startswith("builtin/")
        assert recording.samples.dtype == np.float32
        assert recording.samples.ndim == 1
        assert np.isfinite(recording.samples).all()
        assert 0.01 < np.abs(recording.samples).max() <= 1
        assert not recording.samples.flags.writeable


@pytest.mark.parametrize("kind", LAYOUTS)
def test_a_pickled_bank_draws_the_same(kind):
    bank = open_bank(kind)
    copy = pickle.loads(pickle.dumps(bank))
    for i in range(5):
        ours, theirs = (b.draw(clip_rng("t", str(i), kind, 3), clip=CLIP, severity=3) for b in (bank, copy))
        assert ours.name == theirs.name
        np.testing.assert_array_equal(ours.samples, theirs.samples)


def digest() -> str:
    total = hashlib.sha256()
    for kind in sorted(LAYOUTS):
        for severity in (1, 4):
            recording = draw(kind, 7, severity)
            total.update(recording.name.encode() + recording.samples.tobytes())
    return total.hexdigest()


def test_another_process_draws_the_same():
    code = "import sys; sys.path.insert(0, sys.argv[1]); import test_builtin_bank as t; print(t.digest())"
    folder = __file__.rsplit("/", 1)[0]
    other = subprocess.run([sys.executable, "-c", code, folder], capture_output=True, text=True, check=True)
    assert other.stdout.strip() == digest()


def test_noise_scenarios_are_not_copies_of_each_other():
    assert len({frozenset(names) for names in NOISES.values()}) == len(NOISES)
    assert {name for names in NOISES.values() for name in names} == set(synthesis.NOISES)
    for kind, names in NOISES.items():
        drawn = {draw(kind, i).name for i in range(60)}
        assert drawn == {f"builtin/{name}" for name in names}


def third_octaves_db(samples):
    """Power in third-octave bands, relative to the whole."""
    power = np.abs(np.fft.rfft(samples)) ** 2
    hz = np.fft.rfftfreq(len(samples), 1 / RATE)
    edges = 50 * 2 ** (np.arange(23) / 3)
    bands = [power[(hz >= low) & (hz < high)].sum() for low, high in itertools.pairwise(edges)]
    return 10 * np.log10(np.array(bands) / power.sum() + 1e-6)


def test_noises_differ_in_spectrum_or_in_time():
    features = {}
    for name in synthesis.NOISES:
        samples = synthesis.noise(name)
        frames = np.square(samples, dtype=np.float64).reshape(-1, 320).mean(axis=1)
        features[name] = (third_octaves_db(samples), np.log(frames.mean() / np.exp(np.log(frames + 1e-9).mean())))
    for a, (spectrum_a, burst_a) in features.items():
        for b, (spectrum_b, burst_b) in features.items():
            if a < b:
                assert np.abs(spectrum_a - spectrum_b).max() > 6 or abs(burst_a - burst_b) > 0.3, (a, b)


@pytest.mark.parametrize("name", synthesis.NOISES)
def test_noises_loop_without_a_click(name):
    samples = synthesis.noise(name).astype(np.float64)
    seam = abs(samples[0] - samples[-1])
    assert seam <= np.abs(np.diff(samples)).max()
    assert len(samples) == 10 * RATE


def test_pink_noise_falls_by_three_decibels_an_octave():
    power = np.abs(np.fft.rfft(synthesis.noise("pink"))) ** 2
    hz = np.fft.rfftfreq(10 * RATE, 1 / RATE)
    octaves = [10 * np.log10(power[(hz >= low) & (hz < 2 * low)].mean()) for low in (125, 250, 500, 1000, 2000, 4000)]
    np.testing.assert_allclose(np.diff(octaves), -3.01, atol=0.3)


def test_music_is_in_tune():
    """The ballad's last bars rest on F and C: energy stands on the notes of the scale of C, not between them."""
    samples = synthesis.music("ballad")
    power = np.abs(np.fft.rfft(samples * np.hanning(len(samples)))) ** 2
    hz = np.fft.rfftfreq(len(samples), 1 / RATE)
    inside = (hz > 200) & (hz < 1000)
    semitones = 12 * np.log2(hz[inside] / 440)
    on_note = np.abs(semitones - np.round(semitones)) < 0.25
    assert power[inside][on_note].sum() > 0.9 * power[inside].sum()


@pytest.mark.parametrize("name", synthesis.PIECES)
def test_music_keeps_time_and_has_many_notes(name):
    samples = synthesis.music(name)
    assert 6 * RATE < len(samples) <= 12 * RATE
    assert np.sqrt(np.mean(np.square(samples))) > 0.03


def test_rooms_decay_as_they_say():
    measure_rt60 = pytest.importorskip("pyroomacoustics.experimental").measure_rt60
    for room in builtin.SIMULATED:
        assert measure_rt60(builtin.response(room), RATE, decay_db=30) == pytest.approx(room.rt60_s, rel=0.1)


def test_simulated_rooms_have_the_means_of_the_paper():
    bank = open_bank("rir")
    assert bank.bins.rule == "equal-width bins"
    means = [np.mean([bank.rooms[i].rt60_s for i in members]) for members in bank.bins.members]
    np.testing.assert_allclose(means, [0.27, 0.58, 0.99, 1.33], atol=0.01)


def test_the_direct_sound_survives_the_lead_in():
    """The scenario drops 10 ms; what follows must still hold the response's peak or it would be another room."""
    for room in builtin.SIMULATED + builtin.FURNISHED:
        response = np.abs(builtin.response(room))
        assert response[:160].max() < 0.1 * response.max()
        direct = int(0.0105 * RATE)
        assert response[direct - 2 : direct + 3].max() > 0.3 * response.max()


def test_rooms_of_a_severity_come_from_its_bin():
    for severity, (low, high) in enumerate(((0.10, 0.45), (0.45, 0.80), (0.80, 1.15), (1.15, 1.50)), 1):
        for i in range(20):
            assert low - 1e-9 <= draw("rir", i, severity).measures["rt60_s"] <= high + 1e-9


@given(st.integers(0, 3000), st.integers(0, 2**32))
def test_babble_has_the_clips_length_and_repeats_itself(length, seed):
    clip = CLIP[:length]
    first, second = (babble(clip, np.random.Generator(np.random.Philox(seed))) for _ in range(2))
    assert len(first) == length
    assert first.dtype == np.float32
    np.testing.assert_array_equal(first, second)
    assert np.isfinite(first).all()


def test_babble_is_other_talkers():
    """A tone comes back at three other pitches, none of them its own."""
    clip = np.sin(2 * np.pi * 1000 * np.arange(4 * RATE) / RATE).astype(np.float32)
    spectrum = np.abs(np.fft.rfft(babble(clip, np.random.default_rng(1))))
    peaks = {int(i / 4) for i in np.argsort(spectrum)[-3:]}
    assert len(peaks) == 3
    assert peaks <= {800, 875, 1142, 1143, 1250}


def test_babble_of_silence_is_silence():
    assert not babble(np.zeros(1000, np.float32), np.random.default_rng(0)).any()
