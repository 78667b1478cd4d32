"""Files that others wrote, each read within bounds: JSON, CSV, YAML, and Arrow or parquet.

Of JSON, types, ranges and unknown keys are what a record says (`core.records`). Before that, `read_object` refuses what
JSON has no one meaning for (NaN, a key twice, half a character), what no text of ours holds (control characters), and
whatever costs more than its size: deep nesting, and numbers that other programs cannot hold.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.extensions import LazyModule
from speech_robust_bench.core.records import convert
from speech_robust_bench.core.rows import FORBIDDEN, forbidden_character

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq
else:
    pa = LazyModule("pyarrow")
    pq = LazyModule("pyarrow.parquet")

MOST_BYTES = 50_000_000


def read_text(path: str | Path, most_bytes: int = MOST_BYTES) -> str:
    """The content of a text file in UTF-8, with or without a byte order mark."""
    try:
        with Path(path).open("rb") as file:
            data = file.read(most_bytes + 1)  # a device has no size, and no end
        if len(data) > most_bytes:
            raise UserError(f"cannot read {path}: it is larger than {most_bytes} bytes")
        return data.decode("utf-8-sig")
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UserError(f"cannot read {path}: not UTF-8 text") from None


def csv_cells(text: str, where: str | Path) -> list[tuple[int, list[str]]]:
    """The rows of a CSV text, each with the number of its line."""
    reader = csv.reader(io.StringIO(text, newline=""))
    try:
        return [(reader.line_num, row) for row in reader]
    except csv.Error as error:
        raise UserError(f"cannot read {where}: line {reader.line_num} is not CSV ({error})") from None


def csv_rows(text: str, columns: Sequence[str], where: str | Path) -> list[tuple[int, dict[str, str]]]:
    """The rows of a CSV text by the names in its first line, which has all of `columns`; with the number of each line.

    A row that is too short has empty cells at its end.
    """
    cells = csv_cells(text, where)
    head = [name.strip() for name in cells[0][1]] if cells else []
    if lacking := next((column for column in columns if column not in head), None):
        raise UserError(f"cannot read {where}: it has no column '{lacking}'; its columns are {', '.join(columns)}")
    return [(line, dict(zip(head, [*row, *[""] * len(head)], strict=False))) for line, row in cells[1:] if row]


def finite(text: str, where: str) -> float:
    """A cell as a finite number."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise UserError(f"{where}: '{text[:40]}' is not a number")
    return value


def whole(text: str, where: str) -> int:
    """A cell as a whole number that other programs can hold too."""
    value = finite(text, where)
    if value != int(value) or abs(value) > 2**53:
        raise UserError(f"{where}: '{text[:40]}' is not a whole number")
    return int(value)


MOST_YAML_BYTES = 200_000
MOST_NODES = 50_000  # with each alias counted as a copy of what it stands for
MOST_OPEN_BRACKETS = 100
LONGEST_SCALAR = 5_000  # `1:2:3:...` is one number in YAML 1.1, which takes quadratic time


def read_yaml(path: str | Path) -> Any:
    """The content of a YAML file, as plain values."""
    import yaml

    text = read_text(path, MOST_YAML_BYTES)
    _check_nesting(text, path)
    try:
        root = yaml.compose(text, yaml.SafeLoader)
        _check_size(root, path)
        return yaml.safe_load(text)
    except UserError:
        raise
    except RecursionError:
        raise UserError(f"{path}: is nested too deeply") from None
    except (yaml.YAMLError, ValueError, LookupError, TypeError, AttributeError) as error:  # `!!int ""`, `!!timestamp x`
        raise UserError(f"{path}: is not YAML ({' '.join(str(error).split())[:200]})") from None


def _check_nesting(text: str, path: str | Path) -> None:
    """Refuse brackets in brackets without end: the scanner looks at all open ones for each that follows."""
    depth = 0
    for bracket in re.findall(r"[][{}]", text):
        depth += 1 if bracket in "[{" else -1
        if depth > MOST_OPEN_BRACKETS:
            raise UserError(f"{path}: is nested too deeply")


def _check_size(root: Any, path: str | Path) -> None:
    waiting, count = [root], 0
    while waiting and count <= MOST_NODES:
        value = waiting.pop().value if waiting[-1] else ""
        count += 1
        if isinstance(value, str) and len(value) > LONGEST_SCALAR:
            raise UserError(f"{path}: has a value of more than {LONGEST_SCALAR} characters")
        for child in value if isinstance(value, list) else ():
            waiting += child if isinstance(child, tuple) else [child]
    if waiting:
        raise UserError(f"{path}: has more than {MOST_NODES} values once its aliases are expanded")


MOST_GROUP_BYTES = 2_000_000_000  # of one row group in memory; ours hold at most 100 clips, and 1,000 s
MOST_BATCH_BYTES = 250_000_000


@contextmanager
def damage_named(path: Path, way_out: str | None = None) -> Iterator[None]:
    """Whatever pyarrow says while a file is read becomes a `UserError` that names the file and says what to do.

    Text in such a file is bytes until it is asked for, so that also half a character is met here.
    """
    try:
        yield
    except UserError:
        raise
    except (pa.ArrowException, OSError, StopIteration, UnicodeDecodeError, KeyError) as error:
        reason = " ".join(str(error).split())[:120]
        way_out = way_out or f"build or fetch {path.parent.name} again"
        raise UserError(f"{path}: is damaged ({reason}); {way_out}") from None


def row_groups(path: Path, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
    """The row groups of a parquet file, or the record batches of an Arrow file, one in memory at a time."""
    if path.suffix == ".parquet":
        with pq.ParquetFile(path) as file:
            for index in range(file.num_row_groups):
                yield read_row_group(file, path, index, columns or file.schema_arrow.names)
    else:
        with pa.memory_map(str(path)) as source:
            for batch in pa.ipc.open_stream(source):
                table = pa.Table.from_batches([batch])
                yield table.select(list(columns)) if columns else table


def read_row_group(
    file: pq.ParquetFile, path: Path, index: int, columns: Sequence[str], most_bytes: int | None = None
) -> pa.Table:
    """Some columns of a row group, as long as they take no more than `most_bytes` (MOST_GROUP_BYTES) in memory.

    A dictionary makes gigabytes of one word, so rows are read in batches and counted. No value is larger than its
    column's chunk, which bounds a batch.
    """
    most_bytes = most_bytes or MOST_GROUP_BYTES
    group = file.metadata.row_group(index)
    chunks = [group.column(number) for number in range(group.num_columns)]
    sizes = [c.total_uncompressed_size for c in chunks if c.path_in_schema.split(".")[0] in columns]
    if sum(sizes) > most_bytes:
        raise _too_large(path, index, most_bytes)
    rows = min(group.num_rows, MOST_BATCH_BYTES // max(1, *sizes))
    batches, total = [], 0
    for batch in map(_decoded, file.iter_batches(max(1, rows), row_groups=[index], columns=list(columns))):
        total += batch.nbytes
        if total > most_bytes:
            raise _too_large(path, index, most_bytes)
        batches.append(batch)
    return pa.Table.from_batches(batches) if batches else file.read_row_group(index, columns=list(columns))


def _decoded(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Rows with plain values instead of dictionaries, so that their size is the one that a reader of values meets."""
    plain = [c.dictionary_decode() if pa.types.is_dictionary(c.type) else c for c in batch.columns]
    return pa.RecordBatch.from_arrays(plain, batch.schema.names)


def _too_large(path: Path, index: int, most_bytes: int) -> UserError:
    limit = f"{most_bytes / 1e9:g} GB"
    return UserError(f"{path}: row group {index} unpacks to more than {limit}; it is damaged or made to exhaust memory")


def read_schema(path: Path) -> pa.Schema:
    """The columns of a parquet or Arrow file."""
    if path.suffix == ".parquet":
        return pq.read_schema(path, memory_map=True)
    with pa.memory_map(str(path)) as source:
        return pa.ipc.open_stream(source).schema


def count_rows(path: Path) -> int:
    """How many rows a parquet or Arrow file holds, by its metadata."""
    if path.suffix == ".parquet":
        return pq.read_metadata(path).num_rows
    with pa.memory_map(str(path)) as source:
        return sum(batch.num_rows for batch in pa.ipc.open_stream(source))


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
