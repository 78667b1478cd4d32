"""Arrays that an earlier command left on the disk (`.npy`, `.npz`): a damaged one is made anew, never a traceback."""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path

import numpy as np

# what numpy raises for bytes that are no array of its own
DAMAGED_ARRAYS: tuple[type[Exception], ...] = (
    *(OSError, ValueError, EOFError, KeyError, TypeError, SyntaxError, MemoryError, OverflowError),
    *(NotImplementedError, zipfile.BadZipFile, zlib.error),
)


def read_array(path: Path) -> np.ndarray | None:
    """The array of floats in a file; None where there is none, or it is damaged."""
    try:
        array = np.load(path, allow_pickle=False)
    except DAMAGED_ARRAYS:
        return None
    return array if isinstance(array, np.ndarray) and array.dtype.kind == "f" and np.isfinite(array).all() else None
