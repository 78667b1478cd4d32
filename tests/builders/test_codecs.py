"""Codecs against other implementations of the same standards."""

import io

import numpy as np
import pytest
import soundfile
from speech import RATE, error_db

from speech_robust_bench.builders.perturb import codecs

CODED = {"mp3": (32, 24, 16, 8), "opus": (24, 16, 10, 6), "vorbis": (6, 4, 2, 0)}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in CODED.items() for value in values])
def test_coded_speech_stays_aligned(name, value, speech):
    coded = getattr(codecs, name)(speech, RATE, value, None)
    assert len(coded) == len(speech)
    spectrum = np.fft.rfft(speech, 2 * len(speech)) * np.conj(np.fft.rfft(coded, 2 * len(speech)))
    lag = np.argmax(np.fft.irfft(spectrum))
    assert min(lag, 2 * len(speech) - lag) <= 2, "samples of delay left in"


@pytest.mark.parametrize("name", CODED)
def test_a_lower_rate_loses_more(name, speech):
    errors = [error_db(getattr(codecs, name)(speech, RATE, value, None), speech) for value in CODED[name]]
    assert errors == sorted(errors)
    assert errors[0] < errors[-1] - 3


@pytest.mark.parametrize("kbps", CODED["mp3"])
def test_mp3_has_the_bit_rate_asked_for(kbps, speech):
    level = codecs._level(kbps, *codecs.MPEG2_KBPS)
    size = len(codecs._encode(speech, RATE, "MP3", "MPEG_LAYER_III", level, "CONSTANT"))
    assert size * 8 / (len(speech) / RATE) == pytest.approx(kbps * 1000, rel=0.05)


@pytest.mark.parametrize("kbps", CODED["opus"])
def test_opus_has_about_the_bit_rate_asked_for(kbps, speech):
    size = len(codecs._encode(speech, RATE, "OGG", "OPUS", codecs._level(kbps, *codecs.OPUS_KBPS)))
    assert size * 8 / (len(speech) / RATE) == pytest.approx(kbps * 1000, rel=0.35)


def test_mulaw_follows_g711(speech):
    """The companding curve of G.711, to its own step size."""
    coded = codecs.mulaw(speech, RATE, None, None)
    mu = 255
    companded = np.sign(speech) * np.log1p(mu * np.abs(speech)) / np.log1p(mu)
    expanded = np.sign(companded) * np.expm1(np.abs(np.round(companded * 127) / 127) * np.log1p(mu)) / mu
    assert error_db(coded, speech) == pytest.approx(error_db(expanded, speech), abs=2)
    assert len(np.unique(coded)) <= 256


def test_alaw_has_256_levels(speech):
    assert 50 < len(np.unique(codecs.alaw(speech, RATE, None, None))) <= 256


@pytest.mark.parametrize("name", ["telephone", "gsm"])
def test_a_phone_line_is_narrow(name, speech):
    spectrum = np.abs(np.fft.rfft(getattr(codecs, name)(speech, RATE, None, None))) ** 2
    hertz = np.fft.rfftfreq(len(speech), 1 / RATE)
    assert spectrum[hertz > 4_100].sum() < 1e-4 * spectrum.sum()


def test_gsm_is_the_codec_of_soundfile_at_8_khz(speech):
    import soxr

    buffer = io.BytesIO()
    soundfile.write(buffer, soxr.resample(speech, RATE, 8_000), 8_000, "GSM610", format="WAV")
    theirs = soxr.resample(soundfile.read(io.BytesIO(buffer.getvalue()), dtype="float32")[0], 8_000, RATE)
    assert error_db(codecs.gsm(speech, RATE, None, None), theirs[: len(speech)]) < -60


def test_vorbis_takes_clips_longer_than_the_stack_of_a_thread(speech):
    long = np.tile(speech, 1 + 2_200_000 // len(speech))  # libvorbis would put it onto the stack as a whole
    coded = codecs.vorbis(long, RATE, 0, None)
    assert len(coded) == len(long)
    assert error_db(coded[-len(speech) :], speech) == pytest.approx(
        error_db(codecs.vorbis(speech, RATE, 0, None), speech), abs=1
    )
