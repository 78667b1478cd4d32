"""Quality columns for configs that are already built.

Each parquet file is written anew beside itself, one row group at a time, so that memory does not grow with the config.
Once all files of a config are ready they take the old ones' places together: a reader never meets files with different
columns. Finished files, and configs that have the columns, are not computed again, so an interrupted run continues.
"""

from __future__ import annotations

import json
import multiprocessing
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from speech_robust_bench.builders.manifests import MANIFEST, parquet_paths, read_manifest, write_card
from speech_robust_bench.builders.quality import COLUMNS, DNSMOS_COLUMNS, dnsmos, pesq
from speech_robust_bench.core import audio
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.files import locked_folder, replacing, write_atomically
from speech_robust_bench.core.untrusted_files import damage_named

CHUNK = 4  # rows of one piece of work: some seconds of it, so that the bar moves and no worker waits long for another

Work = list[tuple[bytes, "bytes | None"]]
Scores = list[dict[str, "float | None"]]
Show = Callable[[str, int], Callable[[int], None]]  # a label and a total -> what to call with each advance
Map = Callable[[Callable[[Work], Scores], Iterable[Work]], Iterable[Scores]]


def score(
    root: Path,
    configs: Iterable[str],
    show: Show,
    *,
    columns: Sequence[str] = COLUMNS,
    workers: int = 1,
) -> tuple[int, int]:
    """Add the columns that configs lack; returns the rows scored and how many configs had them all already."""
    files = {config: shards(root, config) for config in configs}
    lacking = {shard: absent for group in files.values() for shard in group if (absent := missing(shard, columns))}
    todo = {shard for shard, absent in lacking.items() if not ready(shard, absent)}
    rows = sum(pq.read_metadata(shard).num_rows for shard in todo)
    clean = CleanClips(root)
    pool: Any = nullcontext()
    if workers > 1 and rows > 1:
        # Not forked: the networks' threads and pyarrow's do not survive one.
        pool = ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn"))
    with locked_folder(root), pool as executor:
        tick = show("quality", rows)
        for group in files.values():
            for shard in group:
                if shard in todo:
                    for count in add_columns(shard, lacking[shard], clean, executor.map if executor else map):
                        tick(count)
            publish(shard for shard in group if shard in lacking)
        for config, group in files.items():
            if any(shard in lacking for shard in group):
                _record_columns(root / config, group)
        write_card(root)
    return rows, sum(not any(shard in lacking for shard in group) for group in files.values())


def shards(root: Path, config: str) -> list[Path]:
    """The parquet files of a config, after a look at whether all of it is there."""
    folder = root / config
    if not (folder / MANIFEST).is_file():
        return sorted(folder.glob("test-*.parquet"))
    return parquet_paths(folder, read_manifest(folder))


def missing(shard: Path, wanted: Sequence[str] = COLUMNS) -> list[str]:
    """The wanted columns that a file does not have yet."""
    with damage_named(shard):
        names = pq.read_schema(shard).names
    return [column for column in wanted if column not in names]


def ready(shard: Path, columns: Sequence[str]) -> bool:
    """Is the file's successor complete, and made from the file that is there now?"""
    successor = _successor(shard)
    return (
        successor.is_file()
        and successor.stat().st_mtime_ns >= shard.stat().st_mtime_ns
        and not missing(successor, columns)
    )


def add_columns(shard: Path, columns: Sequence[str], clean: CleanClips, run: Map = map) -> Iterator[int]:
    """Write the file's successor; yields the number of rows scored as it goes. `run` is `map`, or a pool's."""
    with replacing(_successor(shard)) as part, _opened(shard) as source:
        schema = _extend(source.schema_arrow, columns)
        options = {"use_dictionary": False, "write_statistics": False, "compression": _compression(source)}
        with pq.ParquetWriter(part, schema, **options) as writer:
            for group in range(source.num_row_groups):
                with damage_named(shard):
                    table = source.read_row_group(group)
                scores: Scores = []
                for done in run(_Score(tuple(columns)), _chunks(table, "pesq" in columns, clean)):
                    scores += done
                    yield len(done)
                writer.write_table(_append(table, scores, columns, schema))


def _opened(shard: Path) -> pq.ParquetFile:
    with damage_named(shard):
        return pq.ParquetFile(shard)


def publish(files: Iterable[Path]) -> None:
    """Put the successors of a config's files in their places."""
    for shard in files:
        os.replace(_successor(shard), shard)


def _record_columns(folder: Path, shards: Sequence[Path]) -> None:
    """Say in the manifest which columns there are now: the card tells caches of it."""
    if (folder / MANIFEST).is_file():
        manifest = read_manifest(folder).replace(columns=pq.read_schema(shards[0]).names)
        write_atomically(folder / MANIFEST, json.dumps(manifest.as_json(), indent=1))


def _successor(shard: Path) -> Path:
    return shard.with_name(f".{shard.name}.quality")  # not `test-*`: no reader picks it up


class CleanClips:
    """The clean clips of a built folder by config and id, read one row group at a time as they are asked for."""

    def __init__(self, root: Path):
        self.root = root
        self._index: dict[str, dict[str, tuple[Path, int, int]]] = {}
        self._group = lru_cache(maxsize=2)(_audio_of_group)

    def find(self, config: str, clip_id: str) -> bytes:
        """The encoded clean clip that a row was made from."""
        if config not in self._index:
            self._index[config] = self._read_index(config)
        place = self._index[config].get(clip_id)
        if place is None:
            raise UserError(f"{self.root / config} has no clip '{clip_id}': build it from the same clips, or --no-pesq")
        path, group, row = place
        return self._group(path, group)[row].as_py()

    def _read_index(self, config: str) -> dict[str, tuple[Path, int, int]]:
        files = shards(self.root, config)
        if not files:
            raise UserError(
                f"PESQ compares with the clean clips, and {self.root / config} is not built: "
                f"srb build {config} --out {self.root}, or leave PESQ out with --no-pesq"
            )
        index = {}
        for path in files:
            with damage_named(path), pq.ParquetFile(path) as file:
                for group in range(file.num_row_groups):
                    ids = file.read_row_group(group, columns=["id"]).column("id").to_pylist()
                    index.update({clip_id: (path, group, row) for row, clip_id in enumerate(ids)})
        return index


def _audio_of_group(path: Path, group: int) -> pa.ChunkedArray:
    with damage_named(path), pq.ParquetFile(path) as file:
        return _encoded(file.read_row_group(group, columns=["audio"]))


class _Score:
    """Scores a few rows; a class and not a closure, so that it travels to other processes."""

    def __init__(self, columns: tuple[str, ...]):
        self.columns = columns

    def __call__(self, work: Work) -> Scores:
        return [self._row(*row) for row in work]

    def _row(self, encoded: bytes, clean: bytes | None) -> dict[str, float | None]:
        samples = audio.read(encoded)
        scores: dict[str, float | None] = dict.fromkeys(self.columns)
        if len(samples) and any(column in DNSMOS_COLUMNS for column in self.columns):
            scores.update(dnsmos(samples))
        if len(samples) and clean is not None:
            scores["pesq"] = pesq(samples, audio.read(clean))
        return scores


def _chunks(table: pa.Table, needs_clean: bool, clean: CleanClips) -> Iterator[Work]:
    encoded = _encoded(table)
    ids, sources = table.column("id").to_pylist(), table.column("source").to_pylist()
    for start in range(0, len(table), CHUNK):
        rows = range(start, min(start + CHUNK, len(table)))
        # A recording was made from nothing: it has no clean clip, and no PESQ.
        yield [
            (encoded[row].as_py(), clean.find(sources[row], ids[row]) if needs_clean and sources[row] else None)
            for row in rows
        ]


def _encoded(table: pa.Table) -> pa.ChunkedArray:
    return pc.struct_field(table.column("audio"), "bytes")


def _append(table: pa.Table, scores: Scores, columns: Sequence[str], schema: pa.Schema) -> pa.Table:
    for column in columns:
        values = pa.array([score[column] for score in scores], pa.float32())
        table = table.append_column(pa.field(column, pa.float32()), values)
    return table.select(schema.names).cast(schema)


def _extend(schema: pa.Schema, columns: Sequence[str]) -> pa.Schema:
    """The schema with the new columns, also in the features that `datasets` keeps in its metadata."""
    metadata: dict[bytes, Any] = dict(schema.metadata or {})
    if b"huggingface" in metadata:
        described = json.loads(metadata[b"huggingface"])
        features = described.get("info", {}).get("features")
        if features is not None:
            features.update({column: {"dtype": "float32", "_type": "Value"} for column in columns})
        metadata[b"huggingface"] = json.dumps(described).encode()
    for column in columns:
        schema = schema.append(pa.field(column, pa.float32()))
    return schema.with_metadata(metadata)


def _compression(file: pq.ParquetFile) -> dict[str, str]:
    """Each column as it was compressed before: audio is best left as it is."""
    if not file.num_row_groups:
        return {}
    group = file.metadata.row_group(0)
    columns = (group.column(number) for number in range(group.num_columns))
    codecs = {column.path_in_schema: column.compression for column in columns}
    return {path: "NONE" if codec == "UNCOMPRESSED" else codec for path, codec in codecs.items()}
