"""Rows of a dataset config: one clip under one scenario, stored as 16-bit FLAC with all that is known about it.

`srb build`, the `datasets` builder, `srb.load` and `srb run --corpus` make their rows here and nowhere else:
`RowGenerator.rows` gives a clip to `apply`, which gives it to the scenario's function. A build's unit of work is a
shard of a corpus, decoded once and written out as that shard of many configs.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from speech_robust_bench.builders.apply import Perturbed, apply
from speech_robust_bench.builders.banks import Banks
from speech_robust_bench.builders.corpora import Utterance
from speech_robust_bench.builders.plan import CheckedClip, Job
from speech_robust_bench.core.audio import RATE, Samples, encode_flac, from_pcm16, to_pcm16
from speech_robust_bench.core.engines import Engine
from speech_robust_bench.core.files import file_digest, replacing, write_atomically
from speech_robust_bench.core.rows import COLUMNS, STRINGS, Parameters, RowDict, row_digest
from speech_robust_bench.core.seeding import clip_rng

ROWS_PER_GROUP = 100
PRIVATE_LOSS_DB = (0.3, 2.0)  # what a private edition takes off the level of a clip
PRIVATE_LEAD_IN_MS = (20.0, 120.0)  # and how much it puts before it
AT_ONCE = 25  # clips whose rows are gathered into a table while they are still in the processor's cache


def schema_with(columns: Iterable[str]) -> pa.Schema:
    """The columns for parquet, those of a corpus last, with what `datasets` reads to know that the struct is sound."""
    kinds = COLUMNS | dict.fromkeys(columns, "string")
    encoded = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    fields = [(name, encoded if kind == "audio" else pa.type_for_alias(kind)) for name, kind in kinds.items()]
    features = {
        name: {"sampling_rate": RATE, "_type": "Audio"} if kind == "audio" else {"dtype": kind, "_type": "Value"}
        for name, kind in kinds.items()
    }
    return pa.schema(fields, metadata={"huggingface": json.dumps({"info": {"features": features}})})


SCHEMA = schema_with(())


def own_columns(utterances: Iterable[Utterance]) -> tuple[str, ...]:
    """The columns that a corpus adds to those of every row: all that any of its clips has."""
    return tuple(dict.fromkeys(name for utterance in utterances for name, _ in utterance.columns))


def reference(job: Job, utterance: Utterance) -> str | None:
    """The transcript of a row; that of a clip without speech is empty, and None is one that is not known."""
    return utterance.text if job.scenario.has_speech else ""


@dataclass(frozen=True, slots=True)
class Row:
    """One clip in one config: its 16-bit samples, and what was drawn for them."""

    job: Job
    utterance: Utterance
    perturbed: Perturbed
    pcm: np.ndarray

    @property
    def sha256(self) -> str:
        return row_digest(self.utterance.id, reference(self.job, self.utterance), self.pcm)

    def with_audio(self, audio: RowDict) -> RowDict:
        """The columns of the row in their order, with its audio in some form; those of the corpus come last."""
        job, utterance, perturbed = self.job, self.utterance, self.perturbed
        return {
            "id": utterance.id,
            "audio": {**audio, "path": f"{utterance.id}.flac"},
            **{name: getattr(utterance, name) for name in STRINGS},
            "text": reference(job, utterance),
            "duration": len(self.pcm) / RATE,
            "source": job.source and str(job.source),
            "scenario": job.scenario.name,
            "severity": job.severity,
            "parameters": json.dumps(perturbed.parameters),
            "snr_db": perturbed.snr_db,
            "clipped": perturbed.clipped,
            "sha256": self.sha256,
            **dict(utterance.columns),
        }

    def stored(self) -> RowDict:
        """The row as parquet keeps it, its audio as FLAC."""
        return self.with_audio({"bytes": encode_flac(self.pcm)})

    def decoded(self) -> RowDict:
        """The row with its audio as an array."""
        return self.with_audio({"array": from_pcm16(self.pcm), "sampling_rate": RATE})


@dataclass(frozen=True)
class RowGenerator:
    """Makes the rows of some configs. Severities of one scenario share the analysis of a clip."""

    jobs: tuple[Job, ...]
    banks: Banks
    seed: str = ""  # of a private edition

    def rows(self, utterance: Utterance, samples: Samples) -> list[Row]:
        """A clip's row in each of the configs."""
        drawn: Parameters = {}
        if self.seed and len(samples):
            samples, drawn = private_clip(samples, clip_rng(utterance.corpus, utterance.id, "private", 0, self.seed))
        rows, analyses = [], {}
        for job in self.jobs:
            scenario = job.scenario
            if not scenario.perturbs:
                perturbed = _as_recorded(utterance, samples)
            else:
                if (prepare := scenario.prepare) and prepare not in analyses:
                    analyses[prepare] = prepare(samples)
                rng = clip_rng(utterance.corpus, utterance.id, scenario.rng_key, job.severity, self.seed)
                analysis = analyses[prepare] if prepare else None
                perturbed = apply(scenario, job.severity, samples, rng, self.banks, analysis)
            perturbed = replace(perturbed, parameters=perturbed.parameters | drawn) if drawn else perturbed
            rows.append(Row(job, utterance, perturbed, to_pcm16(perturbed.samples)))
        return rows

    def tables(self, clips: Sequence[tuple[Utterance, Samples]], columns: Sequence[str] = ()) -> list[pa.Table]:
        """The rows of some clips, a table for each config, with `columns` of the corpus' own."""
        schema = schema_with(columns) if columns else SCHEMA
        pieces = []
        for start in range(0, len(clips), AT_ONCE):
            stored = [
                [row.stored() for row in self.rows(utterance, samples)]
                for utterance, samples in clips[start : start + AT_ONCE]
            ]
            pieces.append([_table(config, schema) for config in zip(*stored, strict=True)])
        return [pa.concat_tables(config) for config in zip(*pieces, strict=True)]


def private_clip(samples: Samples, rng: np.random.Generator) -> tuple[Samples, Parameters]:
    """A clip of a private edition and what was drawn for it: a little softer, after a moment of the faintest noise.

    Effects without randomness, and clean speech, would else be the public ones sample by sample.
    """
    gain_db, lead_in_ms = -rng.uniform(*PRIVATE_LOSS_DB), rng.uniform(*PRIVATE_LEAD_IN_MS)
    lead_in = rng.integers(-1, 2, size=round(lead_in_ms * RATE / 1000)) / 2**15  # the last bit of 16
    changed = np.concatenate([lead_in.astype(np.float32), samples * np.float32(10 ** (gain_db / 20))])
    return changed, {"private": {"gain_db": round(gain_db, 3), "lead_in_ms": round(lead_in_ms, 3)}}


def _as_recorded(utterance: Utterance, samples: Samples) -> Perturbed:
    """A clip that no function changes, with the voice of synthetic speech if it was synthesised."""
    drawn = getattr(utterance.audio, "parameters", {})
    return Perturbed(np.clip(samples, -1, 1), drawn, clipped=int(np.count_nonzero(np.abs(samples) > 1)))


def _table(rows: Sequence[dict], schema: pa.Schema) -> pa.Table:
    """Rows as columns; the audio, which is nearly all there is, is copied once."""
    encoded = [row["audio"]["bytes"] for row in rows]
    ends = np.cumsum([0, *map(len, encoded)], dtype=np.int32)
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(b"".join(encoded))]
    audio = [
        pa.Array.from_buffers(pa.binary(), len(rows), buffers),
        pa.array([row["audio"]["path"] for row in rows], pa.string()),
    ]
    columns = [
        pa.StructArray.from_arrays(audio, fields=list(field.type))
        if field.name == "audio"
        else pa.array([row.get(field.name) for row in rows], field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


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


def _write(files: Sequence[pq.ParquetWriter], tables: Sequence[pa.Table]) -> None:
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
