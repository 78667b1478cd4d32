"""JSON that a stranger wrote: what the decoder of records does not check.

Types, ranges and unknown keys are what a record says (`core.records`). Before that, this reader refuses what JSON has
no one meaning for (NaN, a key twice, half a character), what no text of ours holds (control characters), and whatever
costs more than its size: deep nesting, and numbers that other programs cannot hold.
"""

from __future__ import annotations

import json
import math
import re
from typing import TypeVar

import msgspec

from speech_robust_bench.core.records import convert
from speech_robust_bench.core.rows import FORBIDDEN, forbidden_character

DEPTH = 12
MOST_INTEGER = 2**53
# Only a text with one of these can hold a forbidden character or too large an integer; the others need no second look.
_SUSPICIOUS = re.compile(rf"{FORBIDDEN.pattern}|\\[bfu]|\d{{16}}")
T = TypeVar("T")


class Refused(ValueError):
    """Why a file is not taken."""


def decode_guarded(data: bytes, kind: type[T]) -> T:
    """The record in a JSON object; a `Refused` says why it is not taken."""
    if _is_plain(data):
        try:
            return msgspec.json.decode(data, type=kind)
        except (msgspec.DecodeError, UnicodeDecodeError):
            pass  # the reader below says what is wrong
    try:
        return convert(read_object(data), kind)
    except Refused:
        raise
    except ValueError as reason:
        raise Refused(str(reason)) from None


def _is_plain(data: bytes) -> bool:
    """Whether the decoder of records can read a text alone: no key twice, nothing forbidden, hardly nested.

    Without a backslash every quotation mark begins or ends a string, and a string before a colon is a key.
    """
    if b"\\" in data or data.count(b"{") + data.count(b"[") > DEPTH:
        return False
    try:
        if _SUSPICIOUS.search(data.decode("utf-8")):
            return False
    except UnicodeDecodeError:
        return False
    parts = data.split(b'"')
    keys = [text for text, after in zip(parts[1::2], parts[2::2], strict=False) if after.lstrip()[:1] == b":"]
    return len(keys) == len(set(keys))


def read_object(data: bytes) -> dict[str, object]:
    """One JSON object as plain values."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise Refused("not UTF-8 text") from None
    try:
        value = json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant, parse_float=_finite)
    except Refused:
        raise
    except RecursionError:
        raise Refused(f"nested deeper than {DEPTH}") from None
    except ValueError as error:  # also an integer of thousands of digits
        raise Refused(f"not JSON ({str(error)[:80]})") from None
    if not isinstance(value, dict):
        raise Refused("not a JSON object")
    if _SUSPICIOUS.search(text) or text.count("{") + text.count("[") > DEPTH:
        _check(value, DEPTH)
    return value


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise Refused("a key occurs twice")
    return value


def _no_constant(name: str) -> float:
    raise Refused(f"{name} is not a number that JSON has")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise Refused(f"{text[:20]} is too large a number")
    return value


def _check(value: object, depth: int) -> None:
    if depth < 0:
        raise Refused(f"nested deeper than {DEPTH}")
    if isinstance(value, str):
        if character := forbidden_character(value):
            raise Refused(f"a control character ({character})")
    elif isinstance(value, dict):
        for key, inner in value.items():
            _check(key, depth)
            _check(inner, depth - 1)
    elif isinstance(value, list):
        for inner in value:
            _check(inner, depth - 1)
    elif isinstance(value, int) and abs(value) > MOST_INTEGER:
        raise Refused("an integer beyond 2**53")
