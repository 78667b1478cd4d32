"""Audio at the edges: files, bytes and arrays in, mono float32 at 16 kHz inside, 16-bit FLAC out.

Inner loops are compiled by Numba, which is imported then, each at its first call (`compiled`), with signatures written
out so that a read-only array needs no second compilation.

Is a file cut off? libsndfile reads what is there of a truncated WAV, AIFF, AU, CAF, SPHERE or Ogg file without a word,
and the clip would keep its whole transcript; so the container is asked how long it is or where it ends. FLAC says how
many samples it has, and MP3 files with a Xing header how many frames: those show when they are decoded. Containers that
libsndfile knows and this module does not are not read at all.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable
from functools import cache, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Literal

import numpy as np

from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.extensions import LazyModule
from speech_robust_bench.core.files import replacing

if TYPE_CHECKING:
    import soundfile
else:
    soundfile = LazyModule("soundfile")


@cache
def can_store_compiled_code() -> bool:
    """Whether Numba finds a place on disk for what it compiles: without one it refuses to be asked."""
    from numba import njit

    try:
        njit(cache=True)(lambda: None)
    except RuntimeError:  # neither this folder nor the user's cache can be written
        return False
    return True


def compiled(signature: Any, **options: Any) -> Callable[[Callable], Callable]:
    """Compile a kernel when it is first called, so that nobody waits for Numba or the kernels of other scenarios."""

    def decorate(function: Callable) -> Callable:
        @cache
        def machine_code() -> Callable:
            from numba import njit

            # Nobody calls it from C, and the wrapper for it costs compile time.
            settings: Any = {"cache": can_store_compiled_code(), "no_cfunc_wrapper": True, **options}
            return njit(signature, **settings)(function)

        return wraps(function)(lambda *args: machine_code()(*args))

    return decorate


UNKNOWN = 0x7FFF_F000  # what programs write that stream to a pipe and do not know the length
KNOWN = ("WAV", "WAVEX", "RF64", "W64", "AIFF", "AU", "CAF", "NIST", "FLAC", "OGG", "MP3")
OGG_LAST_PAGE = 4  # flag of the page that ends a stream (RFC 3533)
OGG_PAGE = 65_307  # bytes, at most


def is_truncated(file: BinaryIO) -> bool:
    """Whether an audio file ends before its container says; False where the container does not say."""
    head = file.read(12)
    end = file.seek(0, 2)
    if head[:4] in (b"RIFF", b"RF64") and head[8:] == b"WAVE":
        return _chunk_is_cut(file, end, b"data", "little")
    if head[:4] == b"FORM" and head[8:] in (b"AIFF", b"AIFC"):
        return _chunk_is_cut(file, end, b"SSND", "big")
    if head[:4] == b".snd":
        start, size = int.from_bytes(head[4:8], "big"), int.from_bytes(head[8:12], "big")
        return 0 < size < UNKNOWN and start + size > end
    if head[:4] == b"riff":  # Sony's Wave64: 16 bytes for a name, 8 for a size that counts these 24 too
        return _long_chunk_is_cut(file, end, 40, 24, "little")
    if head[:4] == b"caff":
        return _long_chunk_is_cut(file, end, 8, 12, "big")
    if head[:7] == b"NIST_1A":
        return _sphere_is_cut(file, end)
    if head[:4] == b"OggS":
        return not _ends_with_last_page(file, end)
    return False


def _chunk_is_cut(file: BinaryIO, end: int, wanted: bytes, order: Literal["little", "big"]) -> bool:
    """Whether the chunk that holds the samples is longer than what is left of the file."""
    at, long_size = 12, 0
    while at + 8 <= end:
        file.seek(at)
        header = file.read(8)
        size = int.from_bytes(header[4:], order)
        if header[:4] == b"ds64":  # of RF64, for files beyond 4 GB: the size of the file, then that of the samples
            long_size = int.from_bytes(file.read(16)[8:], "little")
        if header[:4] == wanted:
            size = long_size or size
            return (size < UNKNOWN or bool(long_size)) and at + 8 + size > end
        at += 8 + size + size % 2
    return False


def _long_chunk_is_cut(file: BinaryIO, end: int, at: int, head: int, order: Literal["little", "big"]) -> bool:
    """The same for containers with 64-bit sizes; a file that ends before its samples begin is cut off."""
    inside = head if order == "little" else 0  # what the size counts of the chunk's head
    while at + head <= end:
        file.seek(at)
        header = file.read(head)
        size = int.from_bytes(header[-8:], order, signed=True) - inside
        if size < 0:  # not known when it was written
            return False
        if header[:4] == b"data":
            return at + head + size > end
        at += head + size + (-size % 8 if inside else 0)
    return True


def _sphere_is_cut(file: BinaryIO, end: int) -> bool:
    """NIST SPHERE: a text of fields, as long as its second line says, and the samples, unless they are compressed."""
    file.seek(0)
    lines = file.read(1 << 16).split(b"end_head")[0].split(b"\n")
    fields = {words[0]: words[2] for words in map(bytes.split, lines[2:]) if len(words) >= 3}
    try:
        start = int(lines[1])
        count, size, channels = (int(fields[key]) for key in (b"sample_count", b"sample_n_bytes", b"channel_count"))
    except (ValueError, IndexError, KeyError):
        return False
    return b"shorten" not in fields.get(b"sample_coding", b"") and start + count * size * channels > end


def _ends_with_last_page(file: BinaryIO, end: int) -> bool:
    """Whether an Ogg file ends with a whole page that is marked as the last one."""
    tail_start = max(0, end - 2 * OGG_PAGE)
    file.seek(tail_start)
    tail = file.read()
    at = tail.rfind(b"OggS")
    if at < 0 or at + 27 > len(tail):
        return False
    segments = tail[at + 27 : at + 27 + tail[at + 26]]
    whole = len(segments) == tail[at + 26] and at + 27 + len(segments) + sum(segments) <= len(tail)
    return whole and bool(tail[at + 5] & OGG_LAST_PAGE)


CLIP_IN = "Array(float32, 1, 'C', readonly=True)"
CLIP_OUT = "float32[::1]"


@compiled(f"int64({CLIP_OUT})")
def clip_in_place(samples):
    """Clip to [-1, 1]; how many samples were outside."""
    top, bottom = np.float32(1), np.float32(-1)
    outside = 0
    for i in range(len(samples)):
        value = samples[i]
        outside += (value > top) | (value < bottom)
        samples[i] = min(max(value, bottom), top)
    return outside


@compiled(f"void(int16[::1], {CLIP_IN})")
def round_to_16_bits(out, samples):
    """The nearest 16-bit value, ties to even; what lies outside [-1, 1] saturates."""
    shift = np.float32(12582912)  # 1.5 * 2^23: adding it leaves no room for a fraction
    for i in range(len(samples)):
        value = (samples[i] * np.float32(32768) + shift) - shift
        out[i] = np.int16(min(max(value, np.float32(-32768)), np.float32(32767)))


RATE = 16_000
LOWEST_RATE, HIGHEST_RATE = 1_000, 768_000  # of a file; at 1 Hz a few bytes would become gigabytes
LONGEST_S = 24 * 3600
UNKNOWN_FRAMES = 2**62  # what libsndfile says of a FLAC that was streamed
MOST_FLAC_BYTES = 64 * 2**20  # of a file that is decoded from memory
BLOCK = 1 << 22  # samples read at a time
Decoded = tuple[np.ndarray, int]  # float32, frames x channels, and their rate
Samples = np.ndarray  # mono float32, in [-1, 1] unless a scenario has just pushed it outside


def read(
    source: str | os.PathLike | bytes,
    rate: int = RATE,
    *,
    mix: bool = True,
    name: str | None = None,
    start_s: float = 0.0,
    end_s: float | None = None,
) -> Samples:
    """Decode a file or its bytes to mono float32 at `rate`.

    Channels are averaged, or only channel 0 kept (`mix=False`). With `start_s` or `end_s` only that stretch is read, by
    seeking: corpora of meetings are cut from hours of audio.
    """
    name = name or ("<bytes>" if isinstance(source, bytes) else os.fspath(source))
    if not isinstance(source, bytes) and not Path(source).is_file():
        raise UserError(f"{name}: no such file")
    data = _flac_bytes(source) if not start_s and end_s is None else None
    whole = _whole_flac(data) if data else None
    samples, source_rate = whole or _any_format(source, name, start_s, end_s)
    mono = samples.mean(axis=1) if mix and samples.shape[1] > 1 else samples[:, 0]
    return resample(np.ascontiguousarray(mono, dtype=np.float32), source_rate, rate)


def _any_format(source: str | os.PathLike | bytes, name: str, start_s: float, end_s: float | None) -> Decoded:
    """Whatever libsndfile knows, or a stretch of it."""
    try:
        with soundfile.SoundFile(io.BytesIO(source) if isinstance(source, bytes) else source) as file:
            _check_header(file, name)
            start = round(start_s * file.samplerate)
            if start and start >= file.frames:
                raise UserError(f"{name}: {start_s:.2f} s lies beyond its end at {file.frames / file.samplerate:.2f} s")
            if start:
                file.seek(start)
            frames = -1 if end_s is None else max(round(end_s * file.samplerate) - start, 0)
            samples = _read_frames(file, frames)
            if len(samples) < frames - file.samplerate // 10:  # a tenth of a second is rounding; more is missing speech
                raise UserError(f"{name}: {end_s:.2f} s lies beyond its end at {file.frames / file.samplerate:.2f} s")
            if end_s is None and (len(samples) < file.frames - start or _is_cut(source)):
                raise UserError(f"{name}: is cut off: it is shorter than its header says; get the whole file again")
            source_rate = file.samplerate
    except soundfile.LibsndfileError as error:
        raise UserError(f"{name}: cannot be decoded as audio ({str(error.error_string).rstrip('.')})") from None
    except UnicodeEncodeError:  # libsndfile wants a name in UTF-8
        raise UserError(f"{name}: its name is not UTF-8; rename it") from None
    if not np.isfinite(samples).all():
        raise UserError(f"{name}: holds NaN or infinite samples; re-export it as 16-bit PCM")
    return samples, source_rate


def _check_header(file: Any, name: str) -> None:
    """Refuse what would cost far more memory than the file has bytes, or cannot be checked to be whole."""
    if file.format not in KNOWN:
        raise UserError(f"{name}: is {file.format_info}; convert it to WAV or FLAC")
    if not LOWEST_RATE <= file.samplerate <= HIGHEST_RATE:
        raise UserError(f"{name}: its sampling rate, {file.samplerate} Hz, is not from {LOWEST_RATE} to {HIGHEST_RATE}")
    if file.frames >= UNKNOWN_FRAMES:
        raise UserError(f"{name}: does not say how long it is, so nobody knows whether it is whole; encode it again")
    if file.frames > LONGEST_S * file.samplerate:
        raise UserError(f"{name}: its header says that it is longer than {LONGEST_S // 3600} hours")


def _read_frames(file: Any, frames: int) -> np.ndarray:
    """So many frames, or all for -1; a block at a time, because a header may promise more than there is."""
    left = LONGEST_S * file.samplerate if frames < 0 else frames
    most = max(1, BLOCK // file.channels)
    blocks = []
    while left > 0:
        blocks.append(file.read(min(left, most, max(file.frames, 1)), dtype="float32", always_2d=True))
        left -= len(blocks[-1])
        if len(blocks[-1]) < most:
            break
    return blocks[0] if len(blocks) == 1 else np.concatenate([np.zeros((0, file.channels), np.float32), *blocks])


def _is_cut(source: str | os.PathLike | bytes) -> bool:
    with io.BytesIO(source) if isinstance(source, bytes) else open(source, "rb") as file:
        return is_truncated(file)


def _flac_bytes(source: str | os.PathLike | bytes) -> bytes | None:
    """What may be a FLAC file and is short enough to be held; libsndfile says what is wrong with any other."""
    if isinstance(source, bytes):
        return source
    path = Path(source)
    try:
        str(path).encode()  # libsndfile wants a name in UTF-8
        small = path.suffix.lower() == ".flac" and path.stat().st_size <= MOST_FLAC_BYTES
        return path.read_bytes() if small else None
    except (OSError, UnicodeEncodeError):
        return None


def _whole_flac(data: bytes) -> Decoded | None:
    """The samples that libsndfile gives, decoded in half its time.

    None where the data is no FLAC or is damaged: then libsndfile says what is wrong.
    """
    try:
        import miniaudio
    except ImportError:  # there is no wheel for every machine
        return None
    if not data.startswith(b"fLaC"):
        return None
    try:
        info = miniaudio.flac_get_info(data)
        if info.num_frames > LONGEST_S * LOWEST_RATE or not LOWEST_RATE <= info.sample_rate <= HIGHEST_RATE:
            return None
        sound = miniaudio.flac_read_f32(data)
        if sound.num_frames != info.num_frames:  # it leaves out what it cannot decode
            return None
    except miniaudio.DecodeError:
        return None
    return np.frombuffer(sound.samples, dtype=np.float32).reshape(-1, sound.nchannels), sound.sample_rate


def resample(samples: Samples, source_rate: int, rate: int) -> Samples:
    """Band-limited conversion of a corpus or bank recording to the benchmark's rate (soxr, high quality)."""
    if source_rate == rate or not len(samples):
        return samples
    import soxr

    return soxr.resample(samples, source_rate, rate, quality="HQ")


def to_pcm16(samples: Samples) -> np.ndarray:
    """The 16-bit values that storing keeps: rounded to the nearest, and +1.0 becomes 32767."""

    pcm = np.empty(len(samples), dtype=np.int16)
    round_to_16_bits(pcm, np.ascontiguousarray(samples, dtype=np.float32))
    return pcm


def from_pcm16(pcm: np.ndarray) -> Samples:
    """16-bit values as the float32 that decoding what was stored gives."""
    return pcm.astype(np.float32) / np.float32(32768)


def encode_flac(pcm: np.ndarray, rate: int = RATE) -> bytes:
    """16-bit FLAC bytes of int16 samples."""
    buffer = io.BytesIO()
    soundfile.write(buffer, pcm, rate, format="FLAC", subtype="PCM_16")
    return buffer.getvalue()


# Formats that `write` knows, by the file name's ending.
FORMATS = {
    ".wav": ("WAV", "PCM_16"),
    ".flac": ("FLAC", "PCM_16"),
    ".ogg": ("OGG", "VORBIS"),
    ".mp3": ("MP3", "MPEG_LAYER_III"),
}


def write(path: str | os.PathLike, samples: Samples, rate: int = RATE) -> None:
    """Store a clip in the format its name ends in. It appears whole or not at all."""
    path = Path(path)
    if path.suffix.lower() not in FORMATS:
        raise UserError(f"{path}: unknown ending; write to one of {', '.join(FORMATS)}")
    container, codec = FORMATS[path.suffix.lower()]
    buffer = io.BytesIO()
    soundfile.write(buffer, to_pcm16(samples), rate, codec, format=container)
    with replacing(path) as part:
        part.write_bytes(buffer.getvalue())


MOST_CHANNELS = 16  # more than this is a batch of clips
LOUDEST = 100.0  # full scale is 1; a float beyond this holds unscaled integers
_FULL_SCALE = {"int16": 2.0**15, "int32": 2.0**31}


def channels_of(samples: Any, name: str = "samples") -> np.ndarray:
    """Float32 channels x frames from a numpy array, a torch tensor or a list; one clear error for anything else.

    Of two axes the shorter one is taken for the channels, so frames x channels (soundfile) is as good as channels x
    frames (torch, audiomentations).
    """
    array = _to_float(_to_numpy(samples, name), name)
    if array.ndim == 1:
        array = array[None]
    if array.ndim != 2:
        raise UserError(f"{name} of shape {array.shape}: one clip has the shape (frames,) or (channels, frames)")
    if array.shape[0] > array.shape[1]:
        array = array.T
    channels, frames = array.shape
    if not channels or not frames:
        raise UserError(f"{name} of shape {array.shape}: the clip holds no samples")
    if channels > MOST_CHANNELS:
        raise UserError(
            f"{name} of shape {array.shape}: {channels} channels look like a batch; give one clip at a time"
        )
    if not np.isfinite(array).all():
        raise UserError(f"{name}: NaN or infinite samples")
    peak = float(np.abs(array).max())
    if peak > LOUDEST:
        raise UserError(f"{name} reach {peak:g}, and floats lie in [-1, 1]; give int16 as it is, or divide by 32768")
    return np.ascontiguousarray(array)


def mono_at_benchmark_rate(samples: Any, rate: int) -> Samples:
    """One clip as the benchmark reads it from a file: channels averaged, 16 kHz, float32."""
    channels = channels_of(samples)
    mono = channels.mean(axis=0) if len(channels) > 1 else channels[0]
    return resample(np.ascontiguousarray(mono, dtype=np.float32), check_rate(rate), RATE)


def check_rate(rate: Any) -> int:
    """A sample rate as an int, or one clear error."""
    if isinstance(rate, bool) or not isinstance(rate, int | np.integer | float) or rate != rate or rate % 1:
        raise UserError(f"the sample rate is a whole number of Hz, not {rate!r}")
    if not 1000 <= rate <= 1_000_000:
        raise UserError(f"a sample rate of {rate:g} Hz: it lies between 1,000 and 1,000,000")
    return int(rate)


def like(samples: np.ndarray, given: Any) -> Any:
    """Samples as the kind of array that was given: a torch tensor on its device, or numpy."""
    if not _is_torch(given):
        return samples
    return sys.modules["torch"].from_numpy(np.ascontiguousarray(samples)).to(given.device)


def _is_torch(samples: Any) -> bool:
    return type(samples).__module__.split(".")[0] == "torch" and hasattr(samples, "detach")


def _to_numpy(samples: Any, name: str) -> np.ndarray:
    if _is_torch(samples):
        samples = samples.detach().cpu()
        return (samples if samples.dtype.is_floating_point is False else samples.float()).numpy()
    try:
        return np.asarray(samples)
    except ValueError:  # lists of different lengths
        raise UserError(f"{name}: not an array of numbers") from None


def _to_float(array: np.ndarray, name: str) -> np.ndarray:
    if array.dtype.kind == "f":
        return array.astype(np.float32, copy=False)
    if array.dtype.name in _FULL_SCALE:
        return (array / _FULL_SCALE[array.dtype.name]).astype(np.float32)
    if array.dtype.name == "uint8":  # as WAV files have it
        return ((array.astype(np.float32) - 128) / 128).astype(np.float32)
    raise UserError(f"{name} of type {array.dtype}: samples are float, int16, int32 or uint8")
