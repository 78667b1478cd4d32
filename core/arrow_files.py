"""Parquet and Arrow files, read in parts; one that is torn, or lacks a column, is one line and not a traceback."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from srb.core.errors import UserError

if TYPE_CHECKING:
    import pyarrow as pa


@contextmanager
def damage_named(path: Path, way_out: str | None = None) -> Iterator[None]:
    """Whatever pyarrow says while a file is read becomes a `UserError` that names the file and the way out.

    Text in such a file is bytes until it is asked for, so that also half a character is met here.
    """
    import pyarrow as pa

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
    import pyarrow as pa
    import pyarrow.parquet as pq

    if path.suffix == ".parquet":
        with pq.ParquetFile(path) as file:
            for index in range(file.num_row_groups):
                yield file.read_row_group(index, columns=columns and list(columns))
    else:
        with pa.memory_map(str(path)) as source:
            for batch in pa.ipc.open_stream(source):
                table = pa.Table.from_batches([batch])
                yield table.select(list(columns)) if columns else table


def read_schema(path: Path) -> pa.Schema:
    """The columns of a parquet or Arrow file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if path.suffix == ".parquet":
        return pq.read_schema(path, memory_map=True)
    with pa.memory_map(str(path)) as source:
        return pa.ipc.open_stream(source).schema


def count_rows(path: Path) -> int:
    """How many rows a parquet or Arrow file holds, by its metadata."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if path.suffix == ".parquet":
        return pq.read_metadata(path).num_rows
    with pa.memory_map(str(path)) as source:
        return sum(batch.num_rows for batch in pa.ipc.open_stream(source))
