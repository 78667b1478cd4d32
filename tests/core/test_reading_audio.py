"""Reading: channels, rates, stretches and refusals. Writing: each format, whole or not at all."""

import io
import os
from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest
import soundfile

from speech_robust_bench.core import audio
from speech_robust_bench.core.errors import UserError

RATE = 16_000


def ramp(seconds: float = 1.0, rate: int = RATE) -> np.ndarray:
    """Every sample another value, on the 16-bit grid."""
    return (np.arange(round(seconds * rate)) - 8_000).astype(np.float32) / 32768


@pytest.fixture
def wav(tmp_path):
    path = tmp_path / "clip.wav"
    soundfile.write(path, np.stack([ramp(), 0 * ramp() + 0.5], axis=1), RATE, subtype="FLOAT")
    return path


def test_channels_are_averaged_or_the_first_is_kept(wav):
    np.testing.assert_allclose(audio.read(wav), ramp() / 2 + 0.25, atol=1e-7)
    np.testing.assert_array_equal(audio.read(wav, mix=False), ramp())
    assert audio.read(wav).dtype == np.float32


@pytest.mark.parametrize(
    ("start_s", "end_s", "first", "last"),
    [(0.25, 0.5, 4_000, 8_000), (0.25, None, 4_000, 16_000), (0.0, 0.5, 0, 8_000), (0.5, 1.05, 8_000, 16_000)],
)
def test_a_stretch_is_cut_exactly(wav, start_s, end_s, first, last):
    cut = audio.read(wav, mix=False, start_s=start_s, end_s=end_s)
    np.testing.assert_array_equal(cut, ramp()[first:last])
    data = wav.read_bytes()
    np.testing.assert_array_equal(audio.read(data, mix=False, start_s=start_s, end_s=end_s), cut)


def test_a_stretch_of_flac_bytes_is_a_stretch():
    buffer = io.BytesIO()
    soundfile.write(buffer, ramp(), RATE, format="FLAC")
    np.testing.assert_array_equal(audio.read(buffer.getvalue(), start_s=0.5), ramp()[8_000:])
    np.testing.assert_array_equal(audio.read(buffer.getvalue(), end_s=0.5), ramp()[:8_000])


def test_a_stretch_that_ends_before_it_starts_is_empty(wav):
    assert len(audio.read(wav, start_s=0.5, end_s=0.25)) == 0


@pytest.mark.parametrize(
    ("stretch", "complaint"),
    [
        ({"start_s": 1.0}, r"clip\.wav: 1\.00 s lies beyond its end at 1\.00 s"),
        ({"start_s": 0.5, "end_s": 1.2}, r"clip\.wav: 1\.20 s lies beyond its end at 1\.00 s"),
    ],
)
def test_a_stretch_beyond_the_end_is_refused(wav, stretch, complaint):
    with pytest.raises(UserError, match=complaint):
        audio.read(wav, **stretch)


def test_a_tenth_of_a_second_beyond_the_end_is_rounding(wav):
    assert len(audio.read(wav, end_s=1.1)) == RATE
    with pytest.raises(UserError, match="beyond its end"):
        audio.read(wav, end_s=1.1001)


@pytest.mark.parametrize(
    ("rate", "frames", "told"),
    [
        (1_000, 86_400 * 1_000, None),
        (768_000, 86_400 * 768_000, None),
        (999, 1, "sampling rate"),
        (768_001, 1, "sampling rate"),
        (16_000, 86_400 * 16_000 + 1, "longer than 24 hours"),
        (16_000, 2**61, "longer than 24 hours"),
        (16_000, 2**62, "does not say how long it is"),
    ],
)
def test_rates_and_lengths_of_headers_are_bounded(rate, frames, told):
    header = SimpleNamespace(format="WAV", format_info="WAV", samplerate=rate, frames=frames)
    with pytest.raises(UserError, match=told) if told else nullcontext():
        audio._check_header(header, "x.wav")


@pytest.mark.parametrize("block", [2_000, 1_999, 1])
def test_long_files_are_read_block_by_block(tmp_path, monkeypatch, block):
    monkeypatch.setattr(audio, "BLOCK", block)
    samples = np.random.default_rng(0).uniform(-0.9, 0.9, (3_000, 2)).astype(np.float32)
    soundfile.write(tmp_path / "x.wav", samples, 16_000, subtype="FLOAT")
    np.testing.assert_array_equal(audio.read(tmp_path / "x.wav"), samples.mean(axis=1))


def test_another_rate_is_converted(tmp_path):
    t = np.arange(44_100) / 44_100
    soundfile.write(tmp_path / "tone.wav", np.sin(2 * np.pi * 440 * t), 44_100)
    read = audio.read(tmp_path / "tone.wav")
    assert len(read) == RATE
    middle = slice(1_000, -1_000)
    np.testing.assert_allclose(read[middle], np.sin(2 * np.pi * 440 * np.arange(RATE) / RATE)[middle], atol=1e-3)
    assert len(audio.read(tmp_path / "tone.wav", 8_000)) == 8_000
    np.testing.assert_array_equal(audio.resample(read, RATE, RATE), read)
    assert len(audio.resample(read[:0], 8_000, RATE)) == 0


def test_what_cannot_be_read_is_named(tmp_path):
    with pytest.raises(UserError, match=r"none\.wav: no such file"):
        audio.read(tmp_path / "none.wav")
    with pytest.raises(UserError, match=r": no such file"):
        audio.read(tmp_path)
    (tmp_path / "bad.wav").write_bytes(b"no audio")
    with pytest.raises(UserError, match=r"bad\.wav: cannot be decoded as audio \(Format not recognised\)$"):
        audio.read(tmp_path / "bad.wav")
    with pytest.raises(UserError, match=r"^<bytes>: cannot be decoded"):
        audio.read(b"no audio")
    soundfile.write(tmp_path / "nan.wav", np.array([0, np.nan, 0]), RATE, subtype="FLOAT")
    with pytest.raises(UserError, match=r"nan\.wav: holds NaN or infinite samples"):
        audio.read(tmp_path / "nan.wav")


def test_a_name_that_is_not_utf_8_is_named(tmp_path, wav):
    odd = tmp_path / os.fsdecode(b"\xff.wav")
    try:
        odd.write_bytes(wav.read_bytes())
    except OSError:
        pytest.skip("this file system takes no such names")
    with pytest.raises(UserError, match="its name is not UTF-8; rename it"):
        audio.read(odd)


@pytest.mark.parametrize(("ending", "exact"), [("wav", True), ("FLAC", True), ("ogg", False), ("mp3", False)])
def test_each_format_can_be_written_and_read_again(tmp_path, ending, exact):
    tone = (0.5 * np.sin(2 * np.pi * 440 * np.arange(RATE) / RATE)).astype(np.float32)
    path = tmp_path / f"clip.{ending}"
    audio.write(path, tone)
    info = soundfile.info(path)
    assert (info.samplerate, info.channels) == (RATE, 1)
    assert (info.format, info.subtype) == {
        "wav": ("WAV", "PCM_16"),
        "FLAC": ("FLAC", "PCM_16"),
        "ogg": ("OGG", "VORBIS"),
        "mp3": ("MP3", "MPEG_LAYER_III"),
    }[ending]
    read = audio.read(path)
    if exact:
        np.testing.assert_array_equal(audio.to_pcm16(read), audio.to_pcm16(tone))
    else:
        assert np.abs(np.fft.rfft(read)[: RATE // 2]).argmax() * RATE / len(read) == pytest.approx(440, abs=2)


def test_an_unknown_ending_is_answered_with_those_known(tmp_path):
    with pytest.raises(UserError, match=r"clip\.aac: unknown ending; write to one of \.wav, \.flac, \.ogg, \.mp3"):
        audio.write(tmp_path / "clip.aac", ramp())


def test_bytes_of_flac_hold_the_rate_asked_for():
    stored = soundfile.info(io.BytesIO(audio.encode_flac(np.zeros(10, np.int16))))
    assert (stored.samplerate, stored.format, stored.subtype, stored.frames) == (16_000, "FLAC", "PCM_16", 10)
    assert soundfile.info(io.BytesIO(audio.encode_flac(np.zeros(10, np.int16), 8_000))).samplerate == 8_000
