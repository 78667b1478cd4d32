"""Cut an ONNX model into parts that can be run one after the other.

Only what that needs of the format (onnx.proto: ModelProto, GraphProto, NodeProto, TensorProto, ValueInfoProto) is read
here, so that scoring needs no further package. Nodes and weights are copied as they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

# Field numbers of onnx.proto.
_MODEL_GRAPH = 7
_GRAPH_NODE, _GRAPH_NAME, _GRAPH_INITIALIZER, _GRAPH_INPUT, _GRAPH_OUTPUT = 1, 2, 5, 11, 12
_NODE_INPUT, _NODE_OUTPUT, _NODE_OP = 1, 2, 4
_TENSOR_NAME = 8
_FLOAT = 1
_LENGTH = 2  # the wire type of strings and messages

Dim = int | str


@dataclass(frozen=True)
class Node:
    """One operation of a graph and the tensors that it joins."""

    op: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    raw: bytes


def nodes(model: bytes) -> list[Node]:
    """The operations of a model, in order."""
    return [_node(value) for number, _, value in _fields(_graph(model)) if number == _GRAPH_NODE]


def cut(model: bytes, start: tuple[str, Sequence[Dim]], end: tuple[str, Sequence[Dim]]) -> bytes:
    """The part of a model between two tensors, each given by name and shape (a name in a shape is free)."""
    graph = _graph(model)
    kept: list[Node] = []
    needed = {end[0]}
    for node in reversed(nodes(model)):
        if needed & set(node.outputs) and start[0] not in node.outputs:
            kept.insert(0, node)
            needed |= set(node.inputs)
    parts = [_message(_GRAPH_NODE, node.raw) for node in kept]
    for number, _, value in _fields(graph):
        if number == _GRAPH_NAME or (number == _GRAPH_INITIALIZER and _text(value, _TENSOR_NAME) in needed):
            parts.append(_message(number, value))
    parts += [_message(_GRAPH_INPUT, _value_info(*start)), _message(_GRAPH_OUTPUT, _value_info(*end))]
    whole = []
    for number, wire, value in _fields(model):
        if number == _MODEL_GRAPH:
            value = b"".join(parts)
        whole.append(_message(number, value) if wire == _LENGTH else _varint(number << 3) + _varint(int(value)))
    return b"".join(whole)


def _graph(model: bytes) -> bytes:
    return next(value for number, _, value in _fields(model) if number == _MODEL_GRAPH)


def _node(raw: bytes) -> Node:
    found = list(_fields(raw))

    def names(number: int) -> tuple[str, ...]:
        return tuple(value.decode() for field, _, value in found if field == number)

    return Node("".join(names(_NODE_OP)), names(_NODE_INPUT), names(_NODE_OUTPUT), raw)


def _text(raw: bytes, number: int) -> str:
    return next((value.decode() for field, _, value in _fields(raw) if field == number), "")


def _value_info(name: str, shape: Sequence[Dim]) -> bytes:
    """A float tensor's name and shape."""
    dims = (_message(2, dim.encode()) if isinstance(dim, str) else _varint(1 << 3) + _varint(dim) for dim in shape)
    tensor = _varint(1 << 3) + _varint(_FLOAT) + _message(2, b"".join(_message(1, dim) for dim in dims))
    return _message(1, name.encode()) + _message(2, _message(1, tensor))


def _fields(message: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Number, wire type and content of each field of a protobuf message (numbers as their decimal digits)."""
    at = 0
    while at < len(message):
        key, at = _read_varint(message, at)
        wire = key & 7
        if wire == 0:
            number, at = _read_varint(message, at)
            yield key >> 3, wire, str(number).encode()
            continue
        size = {1: 8, 5: 4}.get(wire)
        if size is None:
            size, at = _read_varint(message, at)
        yield key >> 3, wire, message[at : at + size]
        at += size


def _read_varint(message: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = message[at]
        number |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return number, at


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


def _message(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | _LENGTH) + _varint(len(content)) + content
