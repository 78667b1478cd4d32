"""Parquet and Arrow files, read in parts; one that is torn, or lacks a column, is one line and not a traceback."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from speech_robust_bench.core.errors import UserError

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

MOST_GROUP_BYTES = 2_000_000_000  # of one row group in memory; ours hold at most 100 clips, and 1,000 s
MOST_BATCH_BYTES = 250_000_000


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
                yield read_row_group(file, path, index, columns or file.schema_arrow.names)
    else:
        with pa.memory_map(str(path)) as source:
            for batch in pa.ipc.open_stream(source):
                table = pa.Table.from_batches([batch])
                yield table.select(list(columns)) if columns else table


def read_row_group(file: pq.ParquetFile, path: Path, index: int, columns: Sequence[str]) -> pa.Table:
    """Some columns of a row group, as long as they take no more than `MOST_GROUP_BYTES` in memory.

    A dictionary makes gigabytes of one word, so rows are read in batches and counted. No value is larger than its
    column's chunk, which bounds a batch.
    """
    import pyarrow as pa

    group = file.metadata.row_group(index)
    chunks = [group.column(number) for number in range(group.num_columns)]
    sizes = [c.total_uncompressed_size for c in chunks if c.path_in_schema.split(".")[0] in columns]
    if sum(sizes) > MOST_GROUP_BYTES:
        raise _too_large(path, index)
    rows = min(group.num_rows, MOST_BATCH_BYTES // max(1, *sizes))
    batches, total = [], 0
    for batch in map(_decoded, file.iter_batches(max(1, rows), row_groups=[index], columns=list(columns))):
        total += batch.nbytes
        if total > MOST_GROUP_BYTES:
            raise _too_large(path, index)
        batches.append(batch)
    return pa.Table.from_batches(batches) if batches else file.read_row_group(index, columns=list(columns))


def _decoded(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Rows with plain values instead of dictionaries, so that their size is the one that a reader of values meets."""
    import pyarrow as pa

    plain = [c.dictionary_decode() if pa.types.is_dictionary(c.type) else c for c in batch.columns]
    return pa.RecordBatch.from_arrays(plain, batch.schema.names)


def _too_large(path: Path, index: int) -> UserError:
    limit = f"{MOST_GROUP_BYTES / 1e9:g} GB"
    return UserError(f"{path}: row group {index} unpacks to more than {limit}; it is damaged or made to exhaust memory")


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
