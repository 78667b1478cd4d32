"""Models never run code of their own, and never ask for it: transformers prompts on stdin where nobody decided."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def closed_stdin() -> Iterator[None]:
    """Replace standard input with an empty one, so that a library's question ends instead of reading an answer.

    What is piped into the program is data, never consent.
    """
    before = sys.stdin
    with open(os.devnull, encoding="utf-8") as empty:
        sys.stdin = empty
        try:
            yield
        finally:
            sys.stdin = before
