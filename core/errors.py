"""The one exception that the command line shows as a line of its own, and the names that a wrong one may have meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class UserError(ValueError):
    """Something the user can put right. The message names the thing (file, row, flag) and the way out, in one line."""


def did_you_mean(name: str, known: Iterable[str], most: int = 12) -> str:
    """For an error about an unknown name: the nearest ones, or else those that there are."""
    names = sorted(known)
    near = difflib.get_close_matches(name, names, cutoff=0.5)
    if near:
        return f"did you mean {' or '.join(near)}?"
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"there are: {', '.join(names[:most])}{more}" if names else "there are none"
