"""Decoding: the fast FLAC decoder gives libsndfile's samples, and leaves damaged files to libsndfile."""

import io
import sys

import numpy as np
import pytest
import soundfile

from speech_robust_bench.core.audio import _whole_flac, read
from speech_robust_bench.core.errors import UserError


def flac(channels=1, rate=16_000, subtype="PCM_16", seconds=2.0):
    rng = np.random.default_rng(0)
    samples = 0.3 * rng.standard_normal((int(seconds * rate), channels)).clip(-3, 3)
    samples[:3] = [[0.999999], [-1.0], [0.0]]
    buffer = io.BytesIO()
    soundfile.write(buffer, samples, rate, format="FLAC", subtype=subtype)
    return buffer.getvalue()


@pytest.mark.parametrize("subtype", ["PCM_S8", "PCM_16", "PCM_24"])
@pytest.mark.parametrize("channels", [1, 2, 6])
@pytest.mark.parametrize("rate", [8_000, 16_000, 44_100])
def test_the_fast_decoder_gives_what_libsndfile_gives(channels, rate, subtype):
    pytest.importorskip("miniaudio")
    data = flac(channels, rate, subtype)
    expected, expected_rate = soundfile.read(io.BytesIO(data), dtype="float32", always_2d=True)
    samples, found_rate = _whole_flac(data)
    assert found_rate == expected_rate
    np.testing.assert_array_equal(samples, expected)


def test_a_machine_without_the_fast_decoder_reads_the_same(monkeypatch):
    data = flac(channels=2, rate=44_100)
    fast = read(data)
    monkeypatch.setitem(sys.modules, "miniaudio", None)
    assert _whole_flac(data) is None
    np.testing.assert_array_equal(read(data), fast)


@pytest.mark.parametrize("damage", ["cut", "flipped bits", "no length", "header only"])
def test_a_damaged_flac_is_left_to_libsndfile(damage):
    data = bytearray(flac())
    middle = len(data) // 2
    if damage == "cut":
        del data[middle:]
    elif damage == "flipped bits":
        data[middle] ^= 0x55
    elif damage == "no length":  # as a stream is written: the 36 bits of its length are zero
        data[21] &= 0xF0
        data[22:26] = bytes(4)
    else:
        del data[42:]
    assert _whole_flac(bytes(data)) is None
    if damage != "no length":
        with pytest.raises(UserError, match=r"clip\.flac: cannot be decoded"):
            read(bytes(data), name="clip.flac")
