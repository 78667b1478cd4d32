"""A folder that one command at a time writes to, and that no cut-off writer leaves its scraps in."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from srb.builders.errors import UserError


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Make the folder if need be and keep other commands out of it; what the file system refuses is a UserError."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _locked(folder):
            _clear(folder)
            try:
                yield
            finally:
                _clear(folder)
    except OSError as error:
        raise UserError(f"{error.filename or folder}: cannot be used ({error.strerror or error})") from None


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """The lock is on the folder itself, so it leaves no file, and the system lets go of it when the process dies."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        raise UserError(f"{folder}: another command is writing to it; wait for it, or use another folder") from None
    try:
        yield
    finally:
        os.close(handle)


def _clear(folder: Path) -> None:
    """Remove what `audio.replacing` had begun in a process that was killed."""
    for part in folder.rglob(".*.part"):
        part.unlink()
