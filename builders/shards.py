"""The unit of work: one shard of a corpus, decoded once and written out as that shard of many configs."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from srb.builders.audio import RATE, Samples, file_state, replacing
from srb.builders.banks import Banks
from srb.builders.banks.recording import ByteCache, frozen
from srb.builders.corpora import Problem, Utterance
from srb.builders.errors import UserError
from srb.builders.plan import Job
from srb.builders.rows import ROWS_PER_GROUP, SCHEMA, make_tables

if TYPE_CHECKING:
    from pyarrow import Table
    from pyarrow.parquet import ParquetWriter

ROWS_PER_SHARD = 200
SAMPLES_PER_GROUP = 1000 * RATE  # so that memory does not grow with the length of the clips
# FLAC does not compress any further, the other columns do.
COMPRESSION = {name: "zstd" for name in SCHEMA.names if name != "audio"} | {"audio.bytes": "none", "audio.path": "zstd"}
T = TypeVar("T")


@dataclass(frozen=True)
class Shard:
    """Some clips of a corpus, and where each config's rows of them go."""

    utterances: tuple[Utterance, ...]
    targets: tuple[tuple[Job, Path], ...]
    banks: Banks

    @property
    def rows(self) -> int:
        return len(self.utterances) * len(self.targets)


def split(utterances: Sequence[T]) -> list[tuple[T, ...]]:
    """A corpus in shards of about equal size. It depends on the number of clips alone, never on who builds them."""
    count = max(1, -(-len(utterances) // ROWS_PER_SHARD))
    edges = [len(utterances) * i // count for i in range(count + 1)]
    return [tuple(utterances[start:end]) for start, end in itertools.pairwise(edges)]


def shard_name(index: int, count: int) -> str:
    return f"test-{index:05d}-of-{count:05d}.parquet"


def write_shard(shard: Shard, tick: Callable[[int], None]) -> None:
    """Write the shard's files, each of which appears whole or not at all; `tick` counts the rows as they are made."""
    import pyarrow.parquet as pq

    with ExitStack() as stack:
        writers = []
        for job, path in shard.targets:
            part = stack.enter_context(replacing(path))
            writer = pq.ParquetWriter(
                part, SCHEMA, compression=COMPRESSION, use_dictionary=False, write_statistics=False
            )
            writers.append((job, stack.enter_context(writer)))
        # The disk is written to while the next rows are made.
        background = stack.enter_context(ThreadPoolExecutor(1))
        written: Future = background.submit(int)
        for clips in batches(shard.utterances):
            for _, group in itertools.groupby(writers, key=lambda pair: pair[0].scenario.name):
                jobs, files = zip(*group, strict=True)
                tables = make_tables(jobs, clips, shard.banks)
                written.result()
                written = background.submit(_write, files, tables)
                tick(len(jobs) * len(clips))
        written.result()


def batches(utterances: Iterable[Utterance]) -> Iterator[list[tuple[Utterance, Samples]]]:
    """The clips with their samples, as many at a time as go into a row group: fewer where they are long."""
    batch: list[tuple[Utterance, Samples]] = []
    size = 0
    for item in utterances:
        samples = _load(item)
        if batch and (len(batch) == ROWS_PER_GROUP or size + len(samples) > SAMPLES_PER_GROUP):
            yield batch
            batch, size = [], 0
        batch.append((item, samples))
        size += len(samples)
    if batch:
        yield batch


# The clips decoded last: in a small corpus they come again, for other configs.
_decoded = ByteCache(128 * 2**20)


def _load(item: Utterance) -> Samples:
    key = item, file_state(getattr(item.audio, "path", ""))
    samples = _decoded.get(key)
    if samples is None:
        samples = frozen(item.load())
        _decoded.put(key, samples)
    return samples


def _write(files: Sequence[ParquetWriter], tables: Sequence[Table]) -> None:
    for file, table in zip(files, tables, strict=True):
        file.write_table(table)


def check(utterances: Sequence[Utterance], tick: Callable[[int], None]) -> list[Problem | None]:
    """Decode each clip and say what is wrong with it, or None."""
    found: list[Problem | None] = []
    for item in utterances:
        try:
            _load(item)  # in a small corpus for good: it stays decoded
            found.append(None)
        except UserError as error:
            where, _, what = str(error).partition(": ")
            found.append(Problem(where, f"{what} (id {item.id})"))
        tick(1)
    return found
