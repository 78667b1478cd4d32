"""How a model writes a transcript: with capitals or without, with punctuation or without, as its tokens allow."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable

from speech_robust_bench.core.errors import UserError


def writable_spelling(text: str, writable: Callable[[str], bool], name: str) -> str:
    """The spelling nearest to the text that a model has tokens for; an error that names what it cannot write."""
    plain = "".join(char for char in text if unicodedata.category(char)[0] != "P")
    ways = [way(spelling) for spelling in (text, plain) for way in (str, str.lower, str.upper)]
    written = next((spelling for spelling in ways if writable(spelling)), None)
    if written is None:
        odd = [c for c in dict.fromkeys(plain) if not (writable(c.lower()) or writable(c.upper()))]
        raise UserError(f"its transcript has characters that {name} cannot write: {' '.join(odd)}")
    return written
