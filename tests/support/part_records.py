"""Records of which a test says only what matters: the other fields are null, empty or zero."""

from __future__ import annotations

import types
import typing
from typing import Any, TypeVar

import msgspec
from msgspec import structs

from speech_robust_bench.core.result_records import RunResults

T = TypeVar("T")


def part_of(kind: type[T], given: dict[str, Any]) -> T:
    """The record with these fields, nested records as dicts of theirs."""
    return msgspec.convert(_filled(kind, given), kind)


def results(**given: Any) -> RunResults:
    """A results.json."""
    return part_of(RunResults, {"schema": 1, "model": "m", **given})


def _filled(kind: Any, given: Any) -> Any:
    kind = _bare(kind)
    if given is None or isinstance(given, msgspec.Struct):
        return given
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        fields = {field.name: field for field in structs.fields(kind)}
        filled = {name: _filled(fields[name].type, value) for name, value in given.items()}
        missing = {name: field for name, field in fields.items() if field.required and name not in given}
        return filled | {name: _nothing(field.type) for name, field in missing.items()}
    if typing.get_origin(kind) is dict and isinstance(given, dict):
        return {key: _filled(typing.get_args(kind)[1], value) for key, value in given.items()}
    return given


def _bare(kind: Any) -> Any:
    """Without what may be null and without bounds."""
    if typing.get_origin(kind) is typing.Annotated:
        return _bare(typing.get_args(kind)[0])
    if typing.get_origin(kind) in (typing.Union, types.UnionType):
        return _bare(next(each for each in typing.get_args(kind) if each is not types.NoneType))
    return kind


def _nothing(kind: Any) -> Any:
    if typing.get_origin(kind) in (typing.Union, types.UnionType):
        return None
    kind = _bare(kind)
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return _filled(kind, {})
    return (typing.get_origin(kind) or kind)()
