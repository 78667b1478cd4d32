"""The unit of work: one shard of a corpus, decoded once and written out as that shard of many configs."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from speech_robust_bench.builders.banks import Banks
from speech_robust_bench.builders.checked_clips import CheckedClip
from speech_robust_bench.builders.corpora import Utterance
from speech_robust_bench.builders.plan import Job
from speech_robust_bench.builders.row_generator import ROWS_PER_GROUP, RowGenerator, schema_with
from speech_robust_bench.core.audio import RATE, Samples
from speech_robust_bench.core.files import file_digest, replacing, write_atomically

if TYPE_CHECKING:
    from pyarrow import Table
    from pyarrow.parquet import ParquetWriter

ROWS_PER_SHARD = 200
SAMPLES_PER_GROUP = 1000 * RATE  # so that memory does not grow with the length of the clips
T = TypeVar("T")


@dataclass(frozen=True)
class Shard:
    """Some clips of a corpus, and where each config's rows of them go."""

    clips: tuple[CheckedClip, ...]
    targets: tuple[tuple[Job, Path], ...]
    banks: Banks
    seed: str = ""  # of a private edition
    columns: tuple[str, ...] = ()  # of the corpus' own

    @property
    def rows(self) -> int:
        return len(self.clips) * len(self.targets)


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

    schema = schema_with(shard.columns)
    # FLAC does not compress any further, the other columns do.
    compression = dict.fromkeys((*schema.names, "audio.path"), "zstd") | {"audio.bytes": "none"}
    del compression["audio"]
    with ExitStack() as stack:
        writers = []
        for job, path in shard.targets:
            part = stack.enter_context(replacing(path))
            writer = pq.ParquetWriter(
                part, schema, compression=compression, use_dictionary=False, write_statistics=False
            )
            writers.append((job, stack.enter_context(writer)))
        # The disk is written to while the next rows are made.
        background = stack.enter_context(ThreadPoolExecutor(1))
        written: Future = background.submit(int)
        for clips in batches(shard.clips):
            for _, group in itertools.groupby(writers, key=lambda pair: pair[0].scenario.name):
                jobs, files = zip(*group, strict=True)
                tables = RowGenerator(jobs, shard.banks, shard.seed).tables(clips, shard.columns)
                written.result()
                written = background.submit(_write, files, tables)
                tick(len(jobs) * len(clips))
        written.result()
    for _, path in shard.targets:
        write_atomically(digest_path(path), file_digest(path))


def batches(clips: Iterable[CheckedClip | Utterance]) -> Iterator[list[tuple[Utterance, Samples]]]:
    """The clips with their samples, as many at a time as go into a row group: fewer where they are long."""
    batch: list[tuple[Utterance, Samples]] = []
    size = 0
    for clip in clips:
        samples = clip.load()
        if batch and (len(batch) == ROWS_PER_GROUP or size + len(samples) > SAMPLES_PER_GROUP):
            yield batch
            batch, size = [], 0
        batch.append((clip.utterance if isinstance(clip, CheckedClip) else clip, samples))
        size += len(samples)
    if batch:
        yield batch


def _write(files: Sequence[ParquetWriter], tables: Sequence[Table]) -> None:
    for file, table in zip(files, tables, strict=True):
        file.write_table(table)


def digest_path(shard: Path) -> Path:
    """Where the hash of an unfinished config's shard is kept until the config is complete."""
    return shard.with_name(f"{shard.name}.sha256")


def is_whole(shard: Path) -> bool:
    """Whether a shard that an interrupted build left is there and has the bytes that were written."""
    try:
        return digest_path(shard).read_text(encoding="ascii") == file_digest(shard)
    except (OSError, ValueError):
        return False
