"""Terms that a recogniser is told to expect (`?terms=FILE`): names, products, commands, one on each line of a file."""

from __future__ import annotations

import hashlib
from pathlib import Path

from speech_robust_bench.core.errors import UserError

MOST = 1_000


def read_terms(file: str | Path) -> list[str]:
    """The terms of a file in its order, each once; empty lines and lines that begin with # are passed over."""
    path = Path(file)
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: cannot be read as a list of terms, one on each line ({error})") from None
    terms = list(dict.fromkeys(" ".join(line.split()) for line in lines if line.strip() and not line.startswith("#")))
    if not 1 <= len(terms) <= MOST:
        raise UserError(f"{path}: has {len(terms)} terms; a list has 1 to {MOST}, one on each line")
    return terms


def fingerprint(terms: list[str]) -> str:
    """What run.json keeps of the terms of a run: how many there were, and their hash."""
    return f"{len(terms)} terms, sha256:{hashlib.sha256(chr(10).join(terms).encode()).hexdigest()[:16]}"
