"""Files that appear whole or not at all, and what can be told of a file without reading all of it."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

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


def _flush_to_disk(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def file_state(path: str | os.PathLike) -> str:
    """Size and time of a file, and a hash of four parts of it: what can be told of its content quickly.

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
