"""Codecs against other implementations of the same standards."""

import io

import numpy as np
import pytest
import soundfile
from support.speech import RATE, error_db

from speech_robust_bench.builders.perturb import codecs
from speech_robust_bench.core.audio import from_pcm16, to_pcm16

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


EVERY_SAMPLE = np.arange(-32768, 32768).astype(np.int16)


def a_law(sample: int) -> int:
    """Table 1a of G.711 for one 16-bit sample: 13 bits, and the value in the middle of the decision interval."""
    magnitude = (sample if sample >= 0 else -1 - sample) // 8  # 0 to 4095, in the table's own units
    start, step = 0, 2
    while magnitude >= start + 16 * step:
        start, step = start + 16 * step, step * 2 if start else step
    value = 8 * (start + (magnitude - start) // step * step + step // 2)
    return value if sample >= 0 else -value


def test_alaw_is_the_table_of_g711():
    ours = to_pcm16(codecs.alaw(from_pcm16(EVERY_SAMPLE), RATE, None, None))
    assert ours.tolist() == [a_law(int(sample)) for sample in EVERY_SAMPLE]
    assert len(np.unique(ours)) == 256


@pytest.mark.filterwarnings("ignore:'audioop' is deprecated")
def test_alaw_is_that_of_pythons_audioop(speech):
    audioop = pytest.importorskip("audioop")  # until Python 3.12
    pcm = np.concatenate([EVERY_SAMPLE, to_pcm16(speech)])
    theirs = audioop.alaw2lin(audioop.lin2alaw(pcm.tobytes(), 2), 2)
    assert to_pcm16(codecs.alaw(from_pcm16(pcm), RATE, None, None)).tobytes() == theirs


@pytest.mark.filterwarnings("ignore:'audioop' is deprecated")
def test_mulaw_is_audioops_but_for_the_last_two_bits(speech):
    """G.711 has 14 bits for mu-law. We round to them, audioop cuts off, which is no nearer to the speech."""
    audioop = pytest.importorskip("audioop")
    around = [EVERY_SAMPLE.astype(int) + change for change in (-2, 0, 2)]
    pcms = [pcm.clip(-32768, 32767).astype(np.int16) for pcm in around]
    below, same, above = (
        np.frombuffer(audioop.ulaw2lin(audioop.lin2ulaw(pcm.tobytes(), 2), 2), np.int16) for pcm in pcms
    )
    ours = to_pcm16(codecs.mulaw(from_pcm16(EVERY_SAMPLE), RATE, None, None))
    assert np.mean(ours != same) < 0.006
    assert ((ours == same) | (ours == below) | (ours == above)).all()
    pcm = to_pcm16(speech)
    theirs = np.frombuffer(audioop.ulaw2lin(audioop.lin2ulaw(pcm.tobytes(), 2), 2), np.int16)
    ours = codecs.mulaw(speech, RATE, None, None)
    assert error_db(ours, speech) <= error_db(from_pcm16(theirs), speech)


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
