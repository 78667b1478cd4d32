"""A folder that one command at a time writes to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import filelock

from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.files import UNFINISHED

LOCK_FILE = ".srb.lock"


@contextmanager
def locked_folder(folder: Path) -> Iterator[None]:
    """Make the folder if need be and keep other commands out of it; what the file system refuses is a UserError."""
    try:
        with locked(
            folder / LOCK_FILE, f"{folder}: another command is writing to it; wait for it, or use another folder"
        ):
            _remove_unfinished(folder)
            try:
                yield
            finally:
                _remove_unfinished(folder)
    except OSError as error:
        raise UserError(f"{error.filename or folder}: cannot be used ({error.strerror or error})") from None


@contextmanager
def locked(path: Path, refusal: str, *, wait: bool = False) -> Iterator[None]:
    """Hold a lock file against other processes. Where another holds it: wait, or say `refusal` as a UserError.

    The system lets go of the lock when a process dies.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with filelock.FileLock(path, timeout=-1 if wait else 0):
            yield
    except filelock.Timeout:
        raise UserError(refusal) from None


def _remove_unfinished(folder: Path) -> None:
    """Remove what `files.replacing` had begun in a process that was killed, and nothing else."""
    for pattern in ("*", "*/*", ".partial/*/*", ".attacks/*/*"):  # where commands write: not the whole tree below
        for path in folder.glob(pattern):
            if UNFINISHED.fullmatch(path.name) and path.is_file():
                path.unlink()
