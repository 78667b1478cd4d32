"""Samples to 16 bits: full scale is 32768, as libsndfile has it, and what does not fit saturates."""

import io

import numpy as np
import pytest
import soundfile

from speech_robust_bench.core.audio import clip_in_place, from_pcm16, to_pcm16


def by_libsndfile(samples: np.ndarray) -> np.ndarray:
    """What libsndfile stores of samples in a FLAC file. (In a WAV file it rounds down.)"""
    buffer = io.BytesIO()
    soundfile.write(buffer, samples, 16_000, format="FLAC", subtype="PCM_16")
    return soundfile.read(io.BytesIO(buffer.getvalue()), dtype="int16")[0]


@pytest.mark.parametrize(
    ("sample", "stored"),
    [
        (1.0, 32767),  # 32768 does not fit
        (-1.0, -32768),
        (0.5, 16384),
        (-0.5, -16384),
        (1 / 32768, 1),
        (32767 / 32768, 32767),
        (0.5 / 32768, 0),  # ties go to the even value
        (1.5 / 32768, 2),
        (-1.5 / 32768, -2),
        (0.0, 0),
        (2.0, 32767),
        (-2.0, -32768),
    ],
)
def test_values_worked_by_hand(sample, stored):
    assert to_pcm16(np.array([sample], np.float32)).tolist() == [stored]


def test_the_same_as_libsndfile():
    samples = np.random.default_rng(0).uniform(-1.1, 1.1, 50_000).astype(np.float32)
    samples[:4] = 1, -1, 0.5, -0.5
    np.testing.assert_array_equal(to_pcm16(samples), by_libsndfile(samples))


def test_other_arrays_are_taken_too():
    samples = np.array([0.25, -0.25, 0.5])
    samples.flags.writeable = False
    assert to_pcm16(samples).tolist() == [8192, -8192, 16384]  # of double precision
    single = samples.astype(np.float32)
    single.flags.writeable = False
    assert to_pcm16(single).tolist() == [8192, -8192, 16384]
    assert to_pcm16(np.repeat(single, 2)[::2]).tolist() == [8192, -8192, 16384]


def test_stored_values_are_read_as_libsndfile_reads_them():
    stored = np.array([-32768, -1, 0, 1, 16384, 32767], np.int16)
    buffer = io.BytesIO()
    soundfile.write(buffer, stored, 16_000, format="WAV", subtype="PCM_16")
    read, _ = soundfile.read(io.BytesIO(buffer.getvalue()), dtype="float32")
    np.testing.assert_array_equal(from_pcm16(stored), read)


def test_every_stored_value_comes_back():
    stored = np.arange(-32768, 32768).astype(np.int16)
    buffer = io.BytesIO()
    soundfile.write(buffer, stored, 16_000, format="FLAC", subtype="PCM_16")
    read, _ = soundfile.read(io.BytesIO(buffer.getvalue()), dtype="float32")
    np.testing.assert_array_equal(to_pcm16(read), stored)


def test_clipping_counts_what_was_outside():
    samples = np.array([-3, -1, np.nextafter(np.float32(-1), np.float32(-2)), 0.25, 1, 1.5], np.float32)
    assert clip_in_place(samples) == 3
    assert samples.tolist() == [-1, -1, -1, 0.25, 1, 1]
