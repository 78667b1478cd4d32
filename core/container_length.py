"""Is an audio file cut off? Asked of the container, where it says how long it is or where it ends.

libsndfile reads what is there of a truncated WAV, AIFF, AU or Ogg file without a word, and the clip would keep its
whole transcript. FLAC says how many samples it has, and MP3 files with a Xing header how many frames: those show when
they are decoded.
"""

from __future__ import annotations

from typing import BinaryIO, Literal

UNKNOWN = 0x7FFF_F000  # what programs write that stream to a pipe and do not know the length
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
