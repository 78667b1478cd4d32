"""What a JSON file must look like, put together from small checks: not even a file that we wrote yesterday is trusted.

A shape takes a value and says what is wrong with it, or None. Keys that a shape does not name may hold anything.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from speech_robust_bench.core.errors import UserError

Shape = Callable[[Any], str | None]
_ABSENT = object()  # what an object's shape shows its checks for a key that is not there


def anything(value: Any) -> str | None:
    """Whatever JSON holds."""
    return "is missing" if value is _ABSENT else None


def text(value: Any) -> str | None:
    """A string."""
    return None if isinstance(value, str) else "is not text"


def number(value: Any) -> str | None:
    """A number; `read_object` has seen to it that it is finite."""
    return None if isinstance(value, int | float) and not isinstance(value, bool) else "is not a number"


def integer(value: Any) -> str | None:
    """A whole number that other programs can hold too."""
    whole = isinstance(value, int) and not isinstance(value, bool) and abs(value) <= 2**53
    return None if whole else "is not a whole number"


def truth(value: Any) -> str | None:
    """True or false."""
    return None if isinstance(value, bool) else "is neither true nor false"


def maybe(shape: Shape) -> Shape:
    """Absent or null, or of that shape."""
    return lambda value: None if value is None or value is _ABSENT else shape(value)


def nullable(shape: Shape) -> Shape:
    """Null, or of that shape."""
    return lambda value: None if value is None else shape(value)


def list_of(shape: Shape) -> Shape:
    """A list of such values."""

    def check(value: Any) -> str | None:
        if not isinstance(value, list):
            return "is not a list"
        return next((problem for inner in value if (problem := shape(inner))), None)

    return check


def fixed_list(*shapes: Shape) -> Shape:
    """A list of as many values as there are shapes, each of its own."""

    def check(value: Any) -> str | None:
        if not isinstance(value, list) or len(value) != len(shapes):
            return f"is not a list of {len(shapes)}"
        return next((problem for inner, shape in zip(value, shapes, strict=True) if (problem := shape(inner))), None)

    return check


def dict_of(shape: Shape) -> Shape:
    """An object from any names to such values."""

    def check(value: Any) -> str | None:
        if not isinstance(value, dict):
            return "is not an object"
        return next((f"'{key}' {problem}" for key, inner in value.items() if (problem := shape(inner))), None)

    return check


def object_of(**shapes: Shape) -> Shape:
    """An object with these keys; one whose shape is `maybe` may be absent."""

    def check(value: Any) -> str | None:
        if not isinstance(value, dict):
            return "is not an object"
        problems = ((key, shape(value.get(key, _ABSENT))) for key, shape in shapes.items())
        return next((f"'{key}' {problem}" for key, problem in problems if problem), None)

    return check


def read_object(path: Path, shape: Shape) -> Any:
    """The content of a JSON file of that shape, which can be written again; anything else is a `UserError`."""
    return parse_object(path.read_bytes(), shape, path)


def parse_object(data: str | bytes, shape: Shape, where: str | Path) -> Any:
    """The same of the content of a file."""
    try:
        value = json.loads(data if isinstance(data, str) else data.decode("utf-8"))
        json.dumps(value, allow_nan=False, ensure_ascii=False).encode()  # no infinities, no halves of characters
        problem = shape(value)
    except RecursionError:
        problem = "is nested too deeply"
    except ValueError as error:
        problem = f"is no proper JSON ({error})"
    if problem:
        raise UserError(f"{where}: {problem}")
    return value
