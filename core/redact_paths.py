"""What may leave this machine says nothing of its folders: they often hold a person's or a project's name."""

from __future__ import annotations

import re

_FOLDERS = re.compile(r"(?<![\w./])(?:/[^/\s\"']+)+/")  # not those of an address, whose // comes after a colon


def without_folders(text: str) -> str:
    """A text, JSON too, in which absolute paths are names of files."""
    return _FOLDERS.sub("", text)
