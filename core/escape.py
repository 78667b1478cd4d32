"""Text from data, models and servers, made safe for where it goes: a terminal, a spreadsheet, a Markdown page.

A model's name, a clip's id or a server's message is written by others. A terminal obeys escape sequences, a spreadsheet
runs a cell that begins with `=` (OWASP, "CSV Injection"), Markdown takes `|`, `<` and backticks for markup. HTML has
its own function, `report.html.tag`.
"""

from __future__ import annotations

import re
import unicodedata

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
