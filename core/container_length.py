"""Is an audio file cut off? Asked of the container, where it says how long it is or where it ends.

libsndfile reads what is there of a truncated WAV, AIFF, AU, CAF, SPHERE or Ogg file without a word, and the clip would
keep its whole transcript. FLAC says how many samples it has, and MP3 files with a Xing header how many frames: those
show when they are decoded. Containers that libsndfile knows and this module does not are not read at all.
"""

from __future__ import annotations

from typing import BinaryIO, Literal

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
