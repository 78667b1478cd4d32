"""Files that are never half-written, folders that one process at a time works in, and arrays read from disk."""

from __future__ import annotations

import glob
import hashlib
import os
import re
import shutil
import stat
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import filelock
import numpy as np

from speech_robust_bench.core.errors import UserError

# What `replacing` calls a file that is not complete; no other program uses this ending.
UNFINISHED = re.compile(r"\..*\.\d+\.srb-part")
_PARTS, _PART_BYTES = 4, 1024  # of a file, for its state


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary file beside `path` to write to. It is renamed to `path` once all is written, and removed otherwise.

    Its content is on the disk before it gets the name, so that not even a power cut leaves a torn file of that name.
    """
    part = path.with_name(f".{path.name[-40:]}.{os.getpid()}.srb-part")  # short enough beside the longest name
    try:
        yield part
        _flush_to_disk(part)
        os.replace(part, path)
    except OSError as error:
        raise UserError(f"{path}: cannot be written ({error.strerror or error})") from None
    finally:
        with suppress(OSError):  # gone, or never there
            part.unlink()


def write_atomically(path: Path, data: bytes | str) -> None:
    """Write a whole file: a reader sees the old content or the new one, never a part of it."""
    with replacing(path) as part:
        part.write_bytes(data.encode() if isinstance(data, str) else data)


@contextmanager
def replacing_folder(path: Path) -> Iterator[Path]:
    """An empty folder of that name to fill. It takes the place of `path` once all is written, and is removed otherwise.

    A process that was killed leaves the old folder, or, between two renames, something that the next one puts back.
    """
    path = Path(os.path.abspath(path))
    workshop = path.with_name(f".{path.name[-40:]}.{os.getpid()}.srb-part")
    part, old = workshop / path.name, workshop / "old" / path.name
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _remove_abandoned(path)
        part.mkdir(parents=True)
        yield part
        for file in filter(Path.is_file, part.rglob("*")):
            _flush_to_disk(file)
        if path.exists():
            old.parent.mkdir()
            os.replace(path, old)
        os.replace(part, path)
    except OSError as error:
        raise UserError(f"{path}: cannot be written ({error.strerror or error})") from None
    finally:
        if old.exists() and not path.exists():  # between the two renames
            os.replace(old, path)
        shutil.rmtree(workshop, ignore_errors=True)


def _remove_abandoned(path: Path) -> None:
    for workshop in path.parent.glob(f".{glob.escape(path.name[-40:])}.*.srb-part"):
        owner = workshop.suffixes[-2].removeprefix(".")
        if UNFINISHED.fullmatch(workshop.name) and not _is_running(int(owner)):
            old = workshop / "old" / path.name
            if old.exists() and not path.exists():
                os.replace(old, path)
            shutil.rmtree(workshop, ignore_errors=True)


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # somebody else's
        return True
    return process != os.getpid()


def _flush_to_disk(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def file_state(path: str | os.PathLike) -> str:
    """Size and time of a file, and a hash of four parts of it, which is quick to compute.

    Another recording in its place has other bytes in every part, even where size and time were kept.
    """
    try:
        with open(path, "rb", buffering=0) as file:
            state = os.fstat(file.fileno())
            digest = hashlib.sha256()
            for part in range(_PARTS):
                file.seek(max(0, state.st_size - _PART_BYTES) * part // (_PARTS - 1))
                digest.update(file.read(_PART_BYTES))
    except OSError:
        return "none"
    return f"{state.st_size} {state.st_mtime_ns} {digest.hexdigest()[:16]}"


def file_digest(path: Path) -> str:
    """SHA-256 of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def path_inside(root: Path, path: str, name: str) -> Path:
    """`path`, taken from data, as a file below `root`; one that leads out of it is refused.

    A dataset made by somebody else may name any file of this machine.
    """
    if "\0" in path:
        raise UserError(f"{name}: its audio path {path[:80]!r} is no path")
    whole = (root / path).resolve()
    if not whole.is_relative_to(root.resolve()):
        raise UserError(f"{name}: its audio path '{path}' lies outside the dataset, so it is not read")
    return whole


def check_tree(root: Path, follow_links: bool = False) -> None:
    """Refuse a folder with links that leave it, or with a pipe or a device, which a reader would wait for forever.

    A build publishes what it reads, so a link in somebody else's corpus would publish a file of this machine.
    """
    top = os.path.realpath(root)
    check_regular(top)
    waiting, seen = [top] if os.path.isdir(top) else [], {top}
    while waiting:
        with suppress(PermissionError), os.scandir(waiting.pop()) as entries:  # whoever reads it names it
            for entry in entries:
                real = entry.path
                if entry.is_symlink():
                    real = os.path.realpath(entry.path)
                    if not follow_links:
                        check_link(top, entry.path)
                if entry.is_dir() and real not in seen:
                    seen.add(real)
                    waiting.append(real)
                elif not entry.is_file():
                    check_regular(entry.path)


def check_link(root: str | os.PathLike, path: str) -> None:
    """Refuse a path below `root` that a link leads out of it."""
    top, real = os.path.realpath(root), os.path.realpath(path)
    below = os.path.abspath(path).startswith((os.path.join(os.path.abspath(root), ""), os.path.join(top, "")))
    if below and real != top and not real.startswith(os.path.join(top, "")):
        raise UserError(
            f"{path}: is a link to {real}, outside the corpus, and would be published with it; "
            "copy it there, or allow such links with --follow-links (links:PATH in Python)"
        )


def check_regular(path: str | os.PathLike) -> None:
    """Refuse a pipe or a device."""
    with suppress(FileNotFoundError):  # a link to nothing is whoever reads it to name
        mode = os.stat(path).st_mode
        if stat.S_ISFIFO(mode) or stat.S_ISCHR(mode) or stat.S_ISBLK(mode):
            raise UserError(f"{path}: is a pipe or a device; give a regular file")


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


# what numpy raises for bytes that are no array of its own
DAMAGED_ARRAYS: tuple[type[Exception], ...] = (
    OSError,
    ValueError,
    LookupError,
    TypeError,
    SyntaxError,
    EOFError,
    MemoryError,
    OverflowError,
    NotImplementedError,
    zipfile.BadZipFile,
    zlib.error,
)


def read_array(path: Path) -> np.ndarray | None:
    """The array of floats in a file; None where there is none, or it is damaged."""
    try:
        array = np.load(path, allow_pickle=False)
    except DAMAGED_ARRAYS:
        return None
    return array if isinstance(array, np.ndarray) and array.dtype.kind == "f" and np.isfinite(array).all() else None
