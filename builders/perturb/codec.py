"""Lossy coding and back: G.711 companding, telephone lines, GSM, MP3, Opus and Vorbis (asked for by Aksenova et al.).

The codecs are those that libsndfile carries, so nothing has to be installed. It takes a compression level in [0, 1]
instead of a bit rate; `_level` turns one into the other as libsndfile's own coders do.
"""

from __future__ import annotations

import io

import numpy as np

from speech_robust_bench.builders.perturb.butterworth import butterworth
from speech_robust_bench.core.audio import Samples
from speech_robust_bench.core.audio import resample as convert_rate

TELEPHONE_RATE = 8_000
TELEPHONE_BAND_HZ = (300, 3_400)
# Encoder (576) and decoder (529) delay of MP3, which stays in streams too slow to carry the header that tells of it.
MP3_DELAY = 1_105
MPEG2_MAX_RATE = 24_000
MPEG2_KBPS, MPEG1_KBPS = (8, 160), (32, 320)  # Layer III, lowest and highest bit rate
OPUS_KBPS = (6, 256)
MOST_AT_ONCE = 1_920_000  # samples for libvorbis: two minutes at 16 kHz


def mulaw(samples: Samples, rate: int, value: None, rng: np.random.Generator) -> Samples:
    """ITU-T G.711 mu-law, 8 bits a sample."""
    return _round_trip(samples, rate, "WAV", "ULAW")


def alaw(samples: Samples, rate: int, value: None, rng: np.random.Generator) -> Samples:
    """ITU-T G.711 A-law, 8 bits a sample."""
    return _round_trip(samples, rate, "WAV", "ALAW")


def telephone(samples: Samples, rate: int, value: None, rng: np.random.Generator) -> Samples:
    """A landline: 300 to 3,400 Hz, 8 kHz, mu-law."""
    low_hz, high_hz = TELEPHONE_BAND_HZ
    narrow = butterworth(convert_rate(samples, rate, TELEPHONE_RATE), TELEPHONE_RATE, low_hz, "highpass", order=4)
    line = _round_trip(butterworth(narrow, TELEPHONE_RATE, high_hz, "lowpass", order=4), TELEPHONE_RATE, "WAV", "ULAW")
    return fit_length(convert_rate(line, TELEPHONE_RATE, rate), len(samples))


def gsm(samples: Samples, rate: int, value: None, rng: np.random.Generator) -> Samples:
    """A mobile call: 8 kHz through the GSM 06.10 full-rate codec, 13 kbit/s."""
    call = _round_trip(convert_rate(samples, rate, TELEPHONE_RATE), TELEPHONE_RATE, "WAV", "GSM610")
    return fit_length(convert_rate(call, TELEPHONE_RATE, rate), len(samples))


def mp3(samples: Samples, rate: int, kbps: int, rng: np.random.Generator) -> Samples:
    """MP3 at a constant bit rate."""
    level = _level(kbps, *(MPEG2_KBPS if rate <= MPEG2_MAX_RATE else MPEG1_KBPS))
    coded = _decode(_encode(samples, rate, "MP3", "MPEG_LAYER_III", level, "CONSTANT"))
    return fit_length(coded[MP3_DELAY:] if len(coded) > len(samples) else coded, len(samples))


def opus(samples: Samples, rate: int, kbps: int, rng: np.random.Generator) -> Samples:
    """Opus at a bit rate."""
    return _round_trip(samples, rate, "OGG", "OPUS", _level(kbps, *OPUS_KBPS))


def vorbis(samples: Samples, rate: int, quality: float, rng: np.random.Generator) -> Samples:
    """Ogg Vorbis at a quality from 0 (about 28 kbit/s of 16 kHz speech) to 10; it has no constant bit rate."""
    return _round_trip(samples, rate, "OGG", "VORBIS", 1 - quality / 10)


def _level(kbps: float, lowest: float, highest: float) -> float:
    return min((highest - kbps) / (highest - lowest), 0.999)  # libsndfile's MP3 encoder refuses a level of 1


def _round_trip(samples: Samples, rate: int, container: str, codec: str, level: float | None = None) -> Samples:
    return fit_length(_decode(_encode(samples, rate, container, codec, level)), len(samples))


def _encode(
    samples: Samples, rate: int, container: str, codec: str, level: float | None = None, mode: str | None = None
) -> bytes:
    import soundfile

    buffer = io.BytesIO()
    clipped = np.clip(samples, -1, 1)
    options = {"format": container, "compression_level": level, "bitrate_mode": mode}
    # libvorbis puts what it is given first onto the stack, four bytes a sample: more than 8 MB of it ends the process.
    # It looks at all of that, so that a clip in parts has other samples than one in a piece.
    part = MOST_AT_ONCE // 2 if codec == "VORBIS" and len(clipped) > MOST_AT_ONCE else max(1, len(clipped))
    with soundfile.SoundFile(buffer, "w", rate, 1, codec, **options) as file:
        for start in range(0, len(clipped), part):
            file.write(clipped[start : start + part])
    return buffer.getvalue()


def _decode(coded: bytes) -> Samples:
    import soundfile

    return soundfile.read(io.BytesIO(coded), dtype="float32")[0]


def fit_length(samples: Samples, length: int) -> Samples:
    """The clip cut to a length, or with silence up to it."""
    return np.pad(samples[:length], (0, max(0, length - len(samples))))
