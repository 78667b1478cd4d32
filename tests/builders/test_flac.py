"""FLAC written straight to memory is what soundfile writes."""

import io

import numpy as np
import pytest
import soundfile

from srb.builders import flac


def plain(pcm, rate):
    buffer = io.BytesIO()
    soundfile.write(buffer, pcm, rate, format="FLAC", subtype="PCM_16")
    return buffer.getvalue()


def signals():
    rng = np.random.default_rng(0)
    full = rng.integers(-32768, 32768, 100_000, dtype=np.int16)  # white at full scale: nothing can be compressed
    return {
        "one sample": full[:1],
        "one frame": full[:4096],
        "a little more": full[:4097],
        "silence": np.zeros(50_000, np.int16),
        "noise": full,
        "a long tone": (3000 * np.sin(np.arange(2_000_000) / 20)).astype(np.int16),
        "every other sample": full[::2],
    }


@pytest.mark.parametrize("name", signals())
@pytest.mark.parametrize("rate", [8_000, 16_000])
def test_the_bytes_are_soundfiles(name, rate):
    pcm = signals()[name]
    made = flac._directly(np.ascontiguousarray(pcm), rate)
    assert made == flac.encode(pcm, rate) == plain(pcm, rate)


def test_what_cannot_be_written_directly_is_left_to_soundfile(monkeypatch):
    pcm = signals()["one frame"]
    monkeypatch.setattr(flac, "_library", lambda: None)
    assert flac._directly(pcm, 16_000) is None
    assert flac.encode(pcm, 16_000) == plain(pcm, 16_000)


@pytest.mark.parametrize("kind", [lambda pcm: pcm / np.float32(32768), lambda pcm: np.stack([pcm, -pcm], axis=1)])
def test_other_shapes_and_types_are_left_to_soundfile(kind):
    pcm = kind(signals()["one frame"])
    assert flac.encode(pcm, 16_000) == plain(pcm, 16_000)


def test_memory_that_is_too_small_is_noticed(monkeypatch):
    pcm = signals()["noise"]
    monkeypatch.setattr(flac, "_ROOM", -pcm.nbytes)
    assert flac._directly(pcm, 16_000) is None
    assert flac.encode(pcm, 16_000) == plain(pcm, 16_000)


def test_a_rate_that_flac_does_not_know_is_soundfiles_error():
    with pytest.raises(soundfile.LibsndfileError):
        flac.encode(signals()["one frame"], 0)
