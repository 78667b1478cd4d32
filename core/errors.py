"""What users are told: errors and warnings of one line, hints, and text made safe for where it goes.

A model's name, a clip's id or a server's message is written by others. A terminal obeys escape sequences, a spreadsheet
runs a cell that begins with `=` (OWASP, "CSV Injection"), Markdown takes `|`, `<` and backticks for markup. HTML has
its own function, `report.html.tag`.
"""

from __future__ import annotations

import difflib
import re
import shlex
import unicodedata
import warnings
from collections.abc import Iterable
from pathlib import Path

from speech_robust_bench.core import DISTRIBUTION


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


_CLONE = Path(__file__).resolve().parents[1]


def install_hint(extra: str, clone: Path = _CLONE) -> str:
    """The pip command that adds an extra: `pip install -e '/home/me/srb[models]'` where SRB was installed from a clone.

    An installed wheel has no setup.cfg beside its rooms; there the name of the distribution is all that is known.
    """
    if (clone / "setup.cfg").is_file():
        return f"pip install -e {shlex.quote(f'{clone}[{extra}]')}"
    return f"pip install '{DISTRIBUTION}[{extra}]'"


_MARKDOWN = re.compile(r"([\\`*{}\[\]<>|~#]|(?<!\w)_|_(?!\w))")  # an underscore inside a word is no markup
_FORMULA = ("=", "+", "-", "@")  # also behind spaces, to which tabs and line ends are turned
_JOINERS = "\u200c\u200d"  # invisible, and part of how Persian, Indic scripts and emoji are written


def for_terminal(text: str, most: int | None = None) -> str:
    """The text on one line, with a `?` for whatever steers a terminal, cut to `most` characters.

    >>> for_terminal("a\\x1b[31m red\\nb"), for_terminal("x" * 9, most=6)
    ('a?[31m red b', 'xxx...')
    """
    line = "".join(_printable(character) for character in text)
    return line if most is None or len(line) <= most else line[: most - 3] + "..."


def _printable(character: str) -> str:
    """Control, private and unassigned characters, and marks that turn the reading direction, can steer or mislead."""
    kind = unicodedata.category(character)
    if character in "\n\t" or kind == "Zs":
        return " "
    if kind in ("Cc", "Cs", "Co", "Cn", "Zl", "Zp") or (kind == "Cf" and character not in _JOINERS):
        return "?"
    return character


def for_csv(cell: object) -> object:
    """A cell that no spreadsheet takes for a formula; numbers stay as they are.

    >>> for_csv('=HYPERLINK("http://x")'), for_csv("whisper"), for_csv(-1.5)
    ("'=HYPERLINK(\\"http://x\\")", 'whisper', -1.5)
    """
    if not isinstance(cell, str):
        return cell
    text = for_terminal(cell)
    first = unicodedata.normalize("NFKC", text.lstrip()[:1])  # Excel takes a wide `＝` for `=`, others leave out spaces
    return f"'{text}" if first in _FORMULA else text


def for_markdown(text: str) -> str:
    """The text as Markdown shows it, in a table too.

    >>> for_markdown("a|b <i>_x_</i>")
    'a\\\\|b \\\\<i\\\\>\\\\_x\\\\_\\\\</i\\\\>'
    """
    return _MARKDOWN.sub(r"\\\1", for_terminal(text))
