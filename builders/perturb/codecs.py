"""Codecs and networks: telephony, MP3, Vorbis, Opus, AMR, LC3 and packet loss."""

from __future__ import annotations

import ctypes
import importlib
import io
import math
from fractions import Fraction
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from speech_robust_bench.builders.perturb.effects import butterworth
from speech_robust_bench.core.audio import Samples, from_pcm16, to_pcm16
from speech_robust_bench.core.audio import resample as convert_rate
from speech_robust_bench.core.errors import UserError, install_hint
from speech_robust_bench.core.extensions import LazyModule

if TYPE_CHECKING:
    import soundfile
else:
    soundfile = LazyModule("soundfile")

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
    """ITU-T G.711 A-law, 8 bits a sample, on 16-bit samples as in the ITU's software tools (G.191).

    libsndfile rounds floats to 12 bits where A-law cuts them off, which costs up to 1 dB.
    """
    pcm = to_pcm16(np.clip(samples, -1, 1)).astype(np.int32)
    sign = pcm >> 15
    magnitude = (pcm ^ sign) >> 4
    shift = np.maximum(np.frexp(magnitude)[1] - 5, 0)  # 16 steps a segment, each segment twice as wide as the last
    middle = ((magnitude >> shift) * 16 + 8) << shift
    return from_pcm16(((middle ^ sign) - sign).astype(np.int16))


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
    return soundfile.read(io.BytesIO(coded), dtype="float32")[0]


def fit_length(samples: Samples, length: int) -> Samples:
    """The clip cut to a length, or with silence up to it."""
    return np.pad(samples[:length], (0, max(0, length - len(samples))))


PACKET_MS = 20
MEAN_BURST = 2.0  # packets


def packet_loss(samples: Samples, rate: int, percent: float, rng: np.random.Generator) -> Samples:
    """Silence the packets that a bursty channel with this mean loss does not deliver."""
    size = round(PACKET_MS * rate / 1000)
    lost = lost_packets(-(-len(samples) // size), percent / 100, rng)
    out = samples.copy()
    for packet in np.flatnonzero(lost):
        out[packet * size : (packet + 1) * size] = 0
    return out


def lost_packets(count: int, share: float, rng: np.random.Generator) -> np.ndarray:
    """Which packets are lost: a Markov chain whose stationary loss is `share` and whose bursts last MEAN_BURST.

    Above two thirds no packet that arrives is followed by another, and the bursts are longer, as long as it takes.
    """
    odds = share / (1 - share) if share < 1 else math.inf
    fail = min(odds / MEAN_BURST, 1.0)
    recover = 1 / max(odds, MEAN_BURST)
    draws = rng.random(count)
    lost = np.zeros(count, dtype=bool)
    state = bool(count) and rng.random() < share
    for i, draw in enumerate(draws):
        state = draw >= recover if state else draw < fail
        lost[i] = state
    return lost


OPUS_CALL_KBPS = 24
OPUS_LOOKAHEAD_S = Fraction(13, 2000)  # of the encoder: 6.5 ms, which the decoder's output lags behind
AMR_KBPS = {"MR122": 12.2, "MR795": 7.95, "MR59": 5.9, "MR475": 4.75}
AMR_DELAY = 40  # samples at 8 kHz: the encoder's look-ahead of 5 ms
LC3_FRAME_US = 10_000


def opus_loss(samples: Samples, rate: int, percent: float, rng: np.random.Generator) -> Samples:
    """A call over Opus at 24 kbit/s whose lost packets the decoder conceals."""
    return _opus_call(samples, rate, percent, rng, fec=False)


def opus_loss_fec(samples: Samples, rate: int, percent: float, rng: np.random.Generator) -> Samples:
    """The same with Opus's forward error correction: a packet carries a coarse copy of the one before it."""
    return _opus_call(samples, rate, percent, rng, fec=True)


def amr(samples: Samples, rate: int, mode: str, rng: np.random.Generator) -> Samples:
    """A mobile call: 8 kHz through AMR narrowband."""
    narrow = convert_rate(samples, rate, TELEPHONE_RATE)
    packets = _encode_packets(
        "libopencore_amrnb", narrow, TELEPHONE_RATE, AMR_DELAY, bit_rate=round(1000 * AMR_KBPS[mode])
    )
    av = need("av")
    decoder = av.CodecContext.create("libopencore_amrnb", "r")
    decoder.sample_rate, decoder.layout = TELEPHONE_RATE, "mono"
    frames = [frame.to_ndarray().ravel() for packet in packets for frame in decoder.decode(av.Packet(packet))]
    decoded = from_pcm16(np.concatenate(frames))[AMR_DELAY:]
    return fit_length(convert_rate(decoded, TELEPHONE_RATE, rate), len(samples))


def lc3(samples: Samples, rate: int, kbps: float, rng: np.random.Generator) -> Samples:
    """A Bluetooth LE headset: LC3 in frames of 10 ms."""
    package = need("lc3")
    encoder = package.Encoder(LC3_FRAME_US, rate, 1)
    decoder = package.Decoder(LC3_FRAME_US, rate, 1)
    size, delay = encoder.get_frame_samples(), encoder.get_delay_samples()
    frame_bytes = encoder.get_frame_bytes(round(1000 * kbps))
    frames = _frames(samples, size, delay)
    decoded = [decoder.decode(encoder.encode(frame.tobytes(), frame_bytes, 16), 16) for frame in frames]
    return fit_length(from_pcm16(np.frombuffer(b"".join(decoded), np.int16))[delay:], len(samples))


def _opus_call(samples: Samples, rate: int, percent: float, rng: np.random.Generator, *, fec: bool) -> Samples:
    told = {"fec": "1", "packet_loss": f"{percent:.0f}"} if fec else {}
    options = {"application": "voip", "vbr": "off", "frame_duration": str(PACKET_MS), **told}
    delay = int(OPUS_LOOKAHEAD_S * rate)
    packets = _encode_packets("libopus", samples, rate, delay, bit_rate=1000 * OPUS_CALL_KBPS, options=options)
    lost = lost_packets(len(packets), percent / 100, rng)
    size = round(PACKET_MS * rate / 1000)
    decoder = _OpusDecoder(rate, size)
    frames = []
    for number, packet in enumerate(packets):
        if not lost[number]:
            frames.append(decoder.decode(packet))
        elif fec and number + 1 < len(packets) and not lost[number + 1]:
            frames.append(decoder.decode(packets[number + 1], fec=True))
        else:
            frames.append(decoder.decode(None))
    return fit_length(np.concatenate(frames)[delay:], len(samples))


class _OpusDecoder:
    """The decoder of libopus; None in place of a packet is one that was lost."""

    def __init__(self, rate: int, frame: int) -> None:
        self._library, self._frame = _libopus(), frame
        error = ctypes.c_int()
        self._state = ctypes.c_void_p(self._library.opus_decoder_create(rate, 1, ctypes.byref(error)))
        if error.value:
            raise UserError(f"libopus cannot decode at {rate} Hz (error {error.value})")

    def decode(self, packet: bytes | None, *, fec: bool = False) -> Samples:
        out = np.zeros(self._frame, dtype=np.float32)
        pointer = out.ctypes.data_as(ctypes.POINTER(ctypes.c_float))
        decoded = self._library.opus_decode_float(
            self._state, packet, len(packet or b""), pointer, self._frame, int(fec)
        )
        if decoded != self._frame:
            raise UserError(f"libopus decoded {decoded} samples of a packet of {self._frame}")
        return out

    def __del__(self) -> None:
        if state := getattr(self, "_state", None):
            self._library.opus_decoder_destroy(state)


@cache
def _libopus() -> Any:
    """The libopus beside PyAV's modules; that of the system where a build of PyAV uses it."""
    import ctypes.util

    package = Path(str(need("av").__file__)).parent
    beside = sorted([*package.parent.glob("av.libs/libopus*"), *package.glob(".dylibs/libopus*")])
    name = str(beside[0]) if beside else ctypes.util.find_library("opus")
    if not name:
        raise UserError("no libopus beside PyAV or in the system; install PyAV's own wheel: pip install av")
    library = ctypes.CDLL(name)
    library.opus_decoder_create.restype = ctypes.c_void_p
    library.opus_decoder_create.argtypes = [ctypes.c_int32, ctypes.c_int, ctypes.POINTER(ctypes.c_int)]
    library.opus_decoder_destroy.argtypes = [ctypes.c_void_p]
    library.opus_decoder_destroy.restype = None
    arguments: list[Any] = [
        ctypes.c_void_p,
        ctypes.c_char_p,
        ctypes.c_int32,
        ctypes.POINTER(ctypes.c_float),
        ctypes.c_int,
    ]
    library.opus_decode_float.argtypes = [*arguments, ctypes.c_int]
    return library


def _encode_packets(codec: str, samples: Samples, rate: int, delay: int, **settings: Any) -> list[bytes]:
    """The packets of a clip, with silence after it that pushes its end out of the encoder."""
    av = need("av")
    encoder = av.CodecContext.create(codec, "w")
    encoder.sample_rate, encoder.layout, encoder.format = rate, "mono", "s16"
    encoder.time_base = Fraction(1, rate)
    for name, value in settings.items():
        setattr(encoder, name, value)
    encoder.open()
    packets: list[Any] = []
    for number, pcm in enumerate(_frames(samples, encoder.frame_size, delay)):
        frame = av.AudioFrame.from_ndarray(pcm[None], format="s16", layout="mono")
        frame.sample_rate, frame.pts, frame.time_base = rate, number * encoder.frame_size, encoder.time_base
        packets += encoder.encode(frame)
    packets += encoder.encode(None)
    return [bytes(packet) for packet in packets]


def _frames(samples: Samples, size: int, delay: int) -> np.ndarray:
    """The clip as 16-bit frames, with room for the codec's delay."""
    pcm = to_pcm16(np.clip(samples, -1, 1))
    count = -(-(len(pcm) + delay) // size)
    return np.pad(pcm, (0, count * size - len(pcm))).reshape(count, size)


def need(package: str) -> ModuleType:
    """A package of the extra `[codecs]`, or one line that says how to get it."""
    try:
        return importlib.import_module(package)
    except ImportError:
        raise UserError(f"this scenario needs the package {package}: {install_hint('codecs')}") from None
