"""A file that is cut off is refused wherever its container says how long it is, and a whole one never is."""

import io
import struct

import numpy as np
import pytest
import soundfile
from hypothesis import given, settings
from hypothesis import strategies as st

from speech_robust_bench.core.audio import RATE, is_truncated, read
from speech_robust_bench.core.errors import UserError

TONE = (0.3 * np.sin(np.arange(2 * RATE) / 9)).astype(np.float32)
FORMATS = {
    "WAV": "PCM_16",
    "RF64": "PCM_16",
    "AIFF": "PCM_16",
    "AU": "PCM_16",
    "W64": "PCM_16",
    "CAF": "PCM_16",
    "NIST": "PCM_16",
    "FLAC": "PCM_16",
    "OGG": "VORBIS",
    "MP3": "MPEG_LAYER_III",
}


def encoded(container: str, samples: np.ndarray = TONE, subtype: str | None = None) -> bytes:
    buffer = io.BytesIO()
    soundfile.write(buffer, samples, RATE, subtype or FORMATS[container], format=container)
    return buffer.getvalue()


@pytest.mark.parametrize("container", FORMATS)
@pytest.mark.parametrize("kind", ["bytes", "file"])
def test_whole_files_are_read(tmp_path, container, kind):
    data = encoded(container)
    source = data
    if kind == "file":
        source = tmp_path / "clip"
        source.write_bytes(data)
    assert len(read(source)) == pytest.approx(len(TONE), abs=2400)  # codecs pad


@pytest.mark.parametrize("container", FORMATS)
@pytest.mark.parametrize("share", [0.5, 0.9])
def test_cut_files_are_refused(container, share):
    data = encoded(container)
    with pytest.raises(UserError, match=r"is cut off|cannot be decoded"):
        read(data[: int(len(data) * share)], name="clip")


def test_opus_cut_at_a_page_is_refused():
    data = encoded("OGG", np.tile(TONE, 5), "OPUS")
    last_page = data.rfind(b"OggS")
    assert len(read(data)) == pytest.approx(5 * len(TONE), abs=2400)
    with pytest.raises(UserError, match="is cut off"):
        read(data[:last_page], name="clip")


@pytest.mark.parametrize("unknown", [0xFFFFFFFF, 0x7FFFFFFF])
def test_a_wav_from_a_pipe_that_does_not_know_its_length_is_read(unknown):
    data = bytearray(encoded("WAV"))
    data[data.index(b"data") + 4 :][:4] = b""
    at = bytes(data).index(b"data") + 4
    data[at : at + 4] = struct.pack("<I", unknown)
    assert len(read(bytes(data))) == len(TONE)


def test_chunks_after_the_samples_are_no_damage():
    data = encoded("WAV", TONE[:1001])
    assert not is_truncated(io.BytesIO(data + b"LIST" + struct.pack("<I", 3) + b"abc\0"))


@given(st.binary(max_size=200), st.sampled_from([b"RIFF\0\0\0\0WAVE", b"FORM\0\0\0\0AIFF", b".snd", b"OggS", b""]))
@settings(max_examples=200, deadline=None)
def test_anything_is_answered(data, head):
    assert is_truncated(io.BytesIO(head + data)) in (True, False)


def changed(container: str, place: int, new: bytes) -> bytes:
    data = bytearray(encoded(container))
    data[place : place + len(new)] = new
    return bytes(data)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (changed("WAV", 24, struct.pack("<I", 1)), "its sampling rate, 1 Hz"),
        (changed("WAV", 24, struct.pack("<I", 2**31 - 1)), "its sampling rate, 2147483647 Hz"),
        (changed("FLAC", 22, b"\xff\xff\xff\xff"), "longer than 24 hours"),
        (encoded("VOC", subtype="PCM_16"), "convert it to WAV or FLAC"),
    ],
    ids=["lowest rate", "highest rate", "length", "container"],
)
def test_a_header_cannot_cost_more_than_the_file_has_bytes(data, said):
    with pytest.raises(UserError, match=said):
        read(data, name="clip")


def test_a_flac_that_was_streamed_is_refused():
    """Nobody knew how long it would become, so its header has 0 samples, and nobody knows whether it is whole."""
    with pytest.raises(UserError, match="does not say how long it is"):
        read(changed("FLAC", 22, bytes(4)), name="clip")


def test_long_files_are_read_block_by_block(monkeypatch):
    whole = read(encoded("WAV"))
    monkeypatch.setattr("speech_robust_bench.core.audio.BLOCK", 1000)
    assert np.array_equal(read(encoded("WAV")), whole)
    assert np.array_equal(read(encoded("WAV"), start_s=0.5, end_s=1.0), whole[RATE // 2 : RATE])
