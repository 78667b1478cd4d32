"""Keys and passwords in texts that are stored or shown: find them, and put `***` in their place.

A secret is what stands where secrets stand (the password of a URL, the value of `API_KEY=`, `--token`, `Bearer`), what
begins like a key that vendors give out, or a word that looks drawn at random: long, with digits, and changing between
digits, small and capital letters far more often than names do. Of 1,600 random keys of 32 letters and digits, each
behind one of eight texts, the places and beginnings find 1,200 and all rules together 1,599; of 1,000 hexadecimal keys
in the path of a URL, none and 994.

What may leave this machine says nothing of its folders: they often hold a person's or a project's name.

Models never run code of their own, and never ask for it: transformers prompts on stdin where nobody decided.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

MASK = "***"
SHORTEST = 20  # characters of a random word; vendors' keys have 20 to 200
LEAST_CHANGES = 0.25  # of kind (digit, small, capital) per character; random letters and digits have about a half

_NAME = r"[\w.-]*(?:key|token|secret|passw(?:or)?d|passwd|credential|auth(?:orization)?)"
_PLACES = (
    re.compile(r"(?P<before>\b[a-z][a-z0-9+.-]*://)[^/\s@]+(?=@)", re.I),  # https://user:password@host
    re.compile(r"(?P<before>\b(?:bearer|basic|token)[ :=]+)(?!\*)[^\s\"'&;]{8,}", re.I),  # an Authorization header
    re.compile(rf"(?P<before>\b{_NAME}[\"']?\s*[=:]\s*[\"']?)(?!\*)[^\s\"'&;,]+", re.I),  # KEY=..., ?api_key=...
    re.compile(rf"(?P<before>--?{_NAME}[ =][\"']?)(?!\*)[^\s\"'&;]+", re.I),  # --api-key ...
    re.compile(r"(?P<before>\b)(?:hf_|sk-|sk_|pk_|gh[pousr]_|github_pat_|glpat-|xox[abp]-|AKIA|AIza)[\w-]{12,}"),
)
_WORD = re.compile(rf"[A-Za-z0-9_+-]{{{SHORTEST},}}=*")
_NAME_LIKE = re.compile(r"[a-z0-9]{1,12}(?:[-_+][a-z0-9]{0,12})+", re.A)  # wav2vec2-large-960h-lv60-self
_PUBLIC_HASH = re.compile(r"\b(?:[0-9a-f]{64}|[0-9a-f]{40})\b")
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.I)


def mask_secrets(text: str) -> str:
    """The text with every secret that it holds replaced by `***`."""
    for place in _PLACES:
        text = place.sub(rf"\g<before>{MASK}", text)
    text = _UUID.sub(MASK, text)
    return _WORD.sub(lambda match: MASK if looks_random(match[0]) else match[0], text)


def redacted(value: Any) -> Any:
    """A JSON value as it may be stored or shown: secrets in its texts, and under names of secrets, are `***`.

    Git commits and SHA-256 sums are random too, and public: they say which code was used.
    """
    if isinstance(value, str):
        parts = re.split(rf"({_PUBLIC_HASH.pattern})", value)
        return "".join(part if number % 2 else mask_secrets(part) for number, part in enumerate(parts))
    if isinstance(value, Mapping):
        secret = {key for key, inner in value.items() if names_secret(str(key)) and isinstance(inner, str)}
        return {key: MASK if key in secret else redacted(inner) for key, inner in value.items()}
    return [redacted(inner) for inner in value] if isinstance(value, list | tuple) else value


def names_secret(name: str) -> bool:
    """Whether an option of this name holds a secret: `api_key`, `token`, `password`."""
    return re.fullmatch(_NAME, name, re.I) is not None


def has_secret(text: str) -> bool:
    """Whether a text holds what looks like a secret. Git commits and SHA-256 sums are random too, and public."""
    text = _PUBLIC_HASH.sub("hash", text)
    return mask_secrets(text) != text


def texts(value: Any) -> Iterator[str]:
    """Every text in a JSON value, on its own: a key's name says nothing of its value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from texts(inner)


def looks_random(word: str) -> bool:
    """Whether a word looks like a key rather than a name."""
    if _NAME_LIKE.fullmatch(word):
        return False
    letters = re.sub(r"[^A-Za-z0-9]", "", word)
    if len(letters) < SHORTEST or not any(letter.isdigit() for letter in letters):
        return False
    changes = sum(_kind(a) != _kind(b) for a, b in pairwise(letters))
    return changes / len(letters) >= LEAST_CHANGES


def _kind(letter: str) -> int:
    return 0 if letter.isdigit() else 1 if letter.islower() else 2


_FOLDERS = re.compile(r"(?<![\w./])(?:/[^/\s\"']+)+/")  # not those of an address, whose // comes after a colon


def without_folders(text: str) -> str:
    """A text, JSON too, in which absolute paths are names of files."""
    return _FOLDERS.sub("", text)


@contextmanager
def closed_stdin() -> Iterator[None]:
    """Replace standard input with an empty one, so that a library's question ends instead of reading an answer.

    Piped input is data, never consent.
    """
    before = sys.stdin
    with open(os.devnull, encoding="utf-8") as empty:
        sys.stdin = empty
        try:
            yield
        finally:
            sys.stdin = before
