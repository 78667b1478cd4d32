"""Rows of a dataset config: one clip under one scenario, stored as 16-bit FLAC with all that is known about it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from speech_robust_bench.builders.apply import Perturbed, perturb_clip
from speech_robust_bench.builders.banks import Banks
from speech_robust_bench.builders.corpora import Utterance
from speech_robust_bench.builders.plan import Job
from speech_robust_bench.core.audio import RATE, Samples, encode_flac, to_pcm16
from speech_robust_bench.core.row_columns import COLUMNS, STRINGS
from speech_robust_bench.core.row_hashes import row_digest

ROWS_PER_GROUP = 100
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


def make_tables(
    jobs: Sequence[Job],
    clips: Sequence[tuple[Utterance, Samples]],
    banks: Banks,
    seed: str = "",
    columns: Sequence[str] = (),
) -> list[pa.Table]:
    """The rows of some clips in configs of one scenario: a table for each config, with `columns` of the corpus' own."""
    schema = schema_with(columns) if columns else SCHEMA
    pieces = []
    for start in range(0, len(clips), AT_ONCE):
        piece = clips[start : start + AT_ONCE]
        rows = [_rows_of_clip(jobs, utterance, samples, banks, seed) for utterance, samples in piece]
        pieces.append([_table(config, schema) for config in zip(*rows, strict=True)])
    return [pa.concat_tables(config) for config in zip(*pieces, strict=True)]


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


def _rows_of_clip(jobs: Sequence[Job], utterance: Utterance, samples: Samples, banks: Banks, seed: str) -> list[dict]:
    prepare = jobs[0].scenario.prepare
    prepared = prepare(samples) if prepare else None
    return [make_row(job, utterance, samples, banks, prepared, seed) for job in jobs]


def make_row(
    job: Job, utterance: Utterance, samples: Samples, banks: Banks, prepared: Any = None, seed: str = ""
) -> dict:
    """One clip under one config's scenario; `prepared` as in `apply`, `seed` of a private edition."""
    row, pcm = unencoded_row(job, utterance, samples, banks, prepared, seed)
    row["audio"]["bytes"] = encode_flac(pcm)
    return row


def unencoded_row(
    job: Job, utterance: Utterance, samples: Samples, banks: Banks, prepared: Any = None, seed: str = ""
) -> tuple[dict, np.ndarray]:
    """The row without its audio, and the 16-bit samples that the audio holds."""
    perturbed = _perturb(job, utterance, samples, banks, prepared, seed)
    pcm = to_pcm16(perturbed.samples)
    text = reference(job, utterance)
    row = {
        "id": utterance.id,
        "audio": {"bytes": b"", "path": f"{utterance.id}.flac"},
        **{name: getattr(utterance, name) for name in STRINGS},
        "text": text,
        "duration": len(pcm) / RATE,
        "source": job.source and str(job.source),
        "scenario": job.scenario.name,
        "severity": job.severity,
        "parameters": json.dumps(perturbed.parameters),
        "snr_db": perturbed.snr_db,
        "clipped": perturbed.clipped,
        "sha256": row_digest(utterance.id, text, pcm),
        **dict(utterance.columns),
    }
    return row, pcm


def reference(job: Job, utterance: Utterance) -> str | None:
    """The transcript of a row; that of a clip without speech is empty, and None is one that is not known."""
    return utterance.text if job.scenario.has_speech else ""


def _perturb(job: Job, utterance: Utterance, samples: Samples, banks: Banks, prepared: Any, seed: str) -> Perturbed:
    if not job.scenario.perturbs:
        drawn = getattr(utterance.audio, "parameters", {})  # the voice of synthetic speech
        return Perturbed(np.clip(samples, -1, 1), drawn, clipped=int(np.count_nonzero(np.abs(samples) > 1)))
    return perturb_clip(
        job.scenario,
        job.severity,
        samples,
        banks,
        corpus=utterance.corpus,
        clip_id=utterance.id,
        seed=seed,
        prepared=prepared,
    )
