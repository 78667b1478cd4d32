"""A file that is cut off is refused wherever its container says how long it is, and a whole one never is."""

import io
import struct

import numpy as np
import pytest
import soundfile
from hypothesis import given, settings
from hypothesis import strategies as st

from srb.core.audio import RATE, read
from srb.core.container_length import is_truncated
from srb.core.errors import UserError

TONE = (0.3 * np.sin(np.arange(2 * RATE) / 9)).astype(np.float32)
FORMATS = {
    "WAV": "PCM_16",
    "RF64": "PCM_16",
    "AIFF": "PCM_16",
    "AU": "PCM_16",
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


def test_chunks_after_the_samples_and_of_odd_length_are_no_damage():
    data = encoded("WAV", TONE[:1001])
    assert not is_truncated(io.BytesIO(data + b"LIST" + struct.pack("<I", 3) + b"abc\0"))


@given(st.binary(max_size=200), st.sampled_from([b"RIFF\0\0\0\0WAVE", b"FORM\0\0\0\0AIFF", b".snd", b"OggS", b""]))
@settings(max_examples=200, deadline=None)
def test_anything_is_answered(data, head):
    assert is_truncated(io.BytesIO(head + data)) in (True, False)
