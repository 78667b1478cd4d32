"""FLAC bytes from libsndfile, written to memory by compiled callbacks.

`soundfile.write` to a `BytesIO` goes through Python for every frame, which costs a build 6 % of its time. The library
is the one that soundfile has loaded, so the bytes are the same; where it cannot be reached, soundfile is asked.
"""

from __future__ import annotations

import io
from functools import cache
from typing import Any

import numpy as np
from numba import carray, cfunc, types

from srb.builders.perturb.kernels import can_keep

_HEAD = 3  # the first words of the memory: where the library is, how much there is, how much there can be
_ROOM = 65536  # bytes, for what is not samples
_FLAC_16_BIT, _WRITE = 0x170002, 0x20  # of sndfile.h


def encode(pcm: np.ndarray, rate: int) -> bytes:
    """16-bit FLAC of int16 samples, one channel."""
    return _directly(np.ascontiguousarray(pcm), rate) or _by_soundfile(pcm, rate)


def _by_soundfile(pcm: np.ndarray, rate: int) -> bytes:
    import soundfile

    buffer = io.BytesIO()
    soundfile.write(buffer, pcm, rate, format="FLAC", subtype="PCM_16")
    return buffer.getvalue()


def _directly(pcm: np.ndarray, rate: int) -> bytes | None:
    """None where this cannot be done, or something went wrong."""
    found = _library()
    if found is None or pcm.dtype != np.int16 or pcm.ndim != 1:
        return None
    ffi, library, callbacks = found
    room = pcm.nbytes + pcm.nbytes // 64 + _ROOM  # what cannot be compressed is stored as it is
    memory = np.empty(_HEAD + room // 8, dtype=np.int64)
    memory[:_HEAD] = 0, 0, 8 * (len(memory) - _HEAD)
    info = ffi.new("SF_INFO*", {"samplerate": rate, "channels": 1, "format": _FLAC_16_BIT})
    file = library.sf_open_virtual(callbacks, _WRITE, info, ffi.cast("void*", memory.ctypes.data))
    if file == ffi.NULL:
        return None
    written = library.sf_writef_short(file, ffi.cast("short*", pcm.ctypes.data), len(pcm))
    if library.sf_close(file) or written != len(pcm):
        return None
    return memory[_HEAD:].view(np.uint8)[: memory[1]].tobytes()


@cache
def _library() -> tuple[Any, Any, Any] | None:
    """cffi's view of the loaded library, and our callbacks as it takes them."""
    try:
        from soundfile import _ffi, _snd
    except ImportError:
        return None
    where, word = types.voidptr, types.int64
    kinds: dict[str, tuple[Any, Any]] = {
        "get_filelen": (_length, word(where)),
        "seek": (_seek, word(word, types.int32, where)),
        "read": (_read, word(where, word, where)),
        "write": (_write, word(where, word, where)),
        "tell": (_tell, word(where)),
    }
    callbacks = _ffi.new("SF_VIRTUAL_IO*")
    for name, (function, signature) in kinds.items():
        compiled = cfunc(signature, cache=can_keep())(function)
        _alive.append(compiled)
        setattr(callbacks, name, _ffi.cast(_ffi.typeof(getattr(callbacks, name)), compiled.address))
    return _ffi, _snd, callbacks


_alive: list[Any] = []  # what the library calls must not be collected


def _length(memory):
    return carray(memory, _HEAD, np.int64)[1]


def _tell(memory):
    return carray(memory, _HEAD, np.int64)[0]


def _seek(offset, whence, memory):
    head = carray(memory, _HEAD, np.int64)
    head[0] = offset + (head[0] if whence == 1 else head[1] if whence == 2 else 0)
    return head[0]


def _read(target, count, memory):
    return 0


def _write(source, count, memory):
    head = carray(memory, _HEAD, np.int64)
    if head[0] + count > head[2]:
        return 0
    out = carray(memory, 8 * _HEAD + head[0] + count, np.uint8)
    data = carray(source, count, np.uint8)
    start = 8 * _HEAD + head[0]
    for i in range(count):
        out[start + i] = data[i]
    head[0] += count
    head[1] = max(head[0], head[1])
    return count
