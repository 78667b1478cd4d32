"""The exception and the warning that the command line shows as one line; suggestions for a wrong name."""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Iterable


class UserError(ValueError):
    """A mistake that the user can correct: one line that names the problem (file, row, flag) and the solution."""


class Notice(UserWarning):
    """Something the user should know about what was done; the command line shows it as a line of its own."""


def warn(message: str) -> None:
    """Tell the caller of the API, or the user of the command line, something about what was done."""
    encodable = message.encode(errors="backslashreplace").decode()  # a corpus may hold halves of characters
    warnings.warn(encodable, Notice, stacklevel=3)


def did_you_mean(name: str, known: Iterable[str], most: int = 12) -> str:
    """For an error about an unknown name: the nearest ones, or else those that there are."""
    names = sorted(known)
    near = difflib.get_close_matches(name, names, cutoff=0.5)
    if near:
        return f"did you mean {' or '.join(near)}?"
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"there are: {', '.join(names[:most])}{more}" if names else "there are none"
