"""The unit of work: one shard of a corpus, decoded once and written out as that shard of many configs.

How large a build will be, before it starts: a few clips under each scenario say how well the corpus compresses.
"""

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
from speech_robust_bench.core.audio import RATE, Samples, encode_flac
from speech_robust_bench.core.engines import Engine
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


SAMPLED_CLIPS = 3


@dataclass(frozen=True)
class BuildSize:
    """What a group of configs will take."""

    configs: int
    clips: int
    hours: float  # of the corpus
    audio_bytes: int  # of all configs together, an estimate

    def __str__(self) -> str:
        size = _readable(self.audio_bytes)
        return f"{self.configs} configs of {self.clips} clips ({self.hours:.2f} h each): about {size}"


def _readable(size: float) -> str:
    """
    >>> _readable(6_700_000_000), _readable(12), _readable(2.5e6)
    ('6.7 GB', '12 bytes', '2.5 MB')
    """
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} TB"


@dataclass(frozen=True)
class _Sample:
    """One severity of a scenario, which stands for all of them, and the clips to try it on."""

    job: Job
    clips: tuple[CheckedClip, ...]
    banks: Banks


def estimate_size(jobs: Sequence[Job], clips: Sequence[CheckedClip], banks: Banks, engine: Engine) -> BuildSize:
    """The bytes of FLAC that the configs will take, within some tens of per cent."""
    by_length = sorted(clips, key=lambda clip: clip.seconds)
    places = (len(clips) * (2 * i + 1) // (2 * SAMPLED_CLIPS) for i in range(SAMPLED_CLIPS))
    chosen = tuple(by_length[place] for place in sorted(set(places)))
    groups: dict[str, list[Job]] = {}
    for job in jobs:
        groups.setdefault(job.scenario.name, []).append(job)
    samples = [_Sample(group[len(group) // 2], chosen, banks) for group in groups.values()]
    rates = engine.map(_bytes_per_second, samples, lambda count: None)
    seconds = sum(clip.seconds for clip in clips)
    total = sum(rate * seconds * len(group) for rate, group in zip(rates, groups.values(), strict=True))
    return BuildSize(len(jobs), len(clips), seconds / 3600, round(total))


def _bytes_per_second(sample: _Sample, tick: Callable[[int], None]) -> float:
    """Stored bytes for each second of the clean clips."""
    generator = RowGenerator((sample.job,), sample.banks)
    rows = (row for clip in sample.clips for row in generator.rows(clip.utterance, clip.load()))
    size = sum(len(encode_flac(row.pcm)) for row in rows)
    return size / sum(clip.seconds for clip in sample.clips)
