"""Rows of a dataset config: one clip under one scenario, stored as 16-bit FLAC with all that is known about it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa

from srb.builders.apply import Perturbed, apply
from srb.builders.audio import RATE, Samples, encode_flac, to_pcm16
from srb.builders.banks import Banks
from srb.builders.corpora import Utterance
from srb.builders.plan import Job
from srb.builders.seeding import clip_rng

ROWS_PER_GROUP = 100
AT_ONCE = 25  # clips whose rows are gathered into a table while they are still in the processor's cache

_STRINGS = ("text", "language", "speaker", "gender", "age", "accent", "corpus", "licence")
_COLUMNS = {
    "id": "string",
    "audio": "audio",
    **dict.fromkeys(_STRINGS, "string"),
    "duration": "float64",
    "source": "string",
    "scenario": "string",
    "severity": "int32",
    "parameters": "string",
    "snr_db": "float64",
    "clipped": "int64",
    "sha256": "string",
}


def _schema() -> pa.Schema:
    """The columns for parquet, with what `datasets` reads to know that the struct is sound."""
    encoded = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    fields = [(name, encoded if kind == "audio" else pa.type_for_alias(kind)) for name, kind in _COLUMNS.items()]
    features = {
        name: {"sampling_rate": RATE, "_type": "Audio"} if kind == "audio" else {"dtype": kind, "_type": "Value"}
        for name, kind in _COLUMNS.items()
    }
    return pa.schema(fields, metadata={"huggingface": json.dumps({"info": {"features": features}})})


SCHEMA = _schema()


def make_tables(jobs: Sequence[Job], clips: Sequence[tuple[Utterance, Samples]], banks: Banks) -> list[pa.Table]:
    """The rows of some configs for some clips. All severities of a clip in turn: they may share what it takes."""
    pieces = []
    for start in range(0, len(clips), AT_ONCE):
        piece = clips[start : start + AT_ONCE]
        rows = [[make_row(job, utterance, samples, banks) for job in jobs] for utterance, samples in piece]
        pieces.append([_table(config) for config in zip(*rows, strict=True)])
    return [pa.concat_tables(config) for config in zip(*pieces, strict=True)]


def _table(rows: Sequence[dict]) -> pa.Table:
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
        else pa.array([row[field.name] for row in rows], field.type)
        for field in SCHEMA
    ]
    return pa.Table.from_arrays(columns, schema=SCHEMA)


def make_row(job: Job, utterance: Utterance, samples: Samples, banks: Banks) -> dict:
    """One clip under one config's scenario."""
    made = _perturb(job, utterance, samples, banks)
    pcm = to_pcm16(made.samples)
    text = utterance.text if job.scenario.has_speech else ""  # a transcript of a clip without speech is empty
    return {
        "id": utterance.id,
        "audio": {"bytes": encode_flac(pcm), "path": f"{utterance.id}.flac"},
        **{name: getattr(utterance, name) for name in _STRINGS},
        "text": text,
        "duration": len(pcm) / RATE,
        "source": job.source and str(job.source),
        "scenario": job.scenario.name,
        "severity": job.severity,
        "parameters": json.dumps(made.parameters),
        "snr_db": made.snr_db,
        "clipped": made.clipped,
        "sha256": row_digest(utterance.id, text, pcm),
    }


def row_digest(clip_id: str, text: str, pcm: np.ndarray) -> str:
    """Hash of what a recogniser and a scorer see: id, transcript and 16-bit samples, however they are encoded."""
    digest = hashlib.sha256(f"{clip_id}\x1f{text}\x1f".encode())
    digest.update(np.ascontiguousarray(pcm, dtype="<i2").data)
    return digest.hexdigest()


def content_digest(row_digests: Iterable[str]) -> str:
    """Hash of a config: of its rows' hashes, in order."""
    return hashlib.sha256("".join(row_digests).encode()).hexdigest()


def _perturb(job: Job, utterance: Utterance, samples: Samples, banks: Banks) -> Perturbed:
    if job.scenario.function is None:
        drawn = getattr(utterance.audio, "parameters", {})  # the voice of synthetic speech
        return Perturbed(np.clip(samples, -1, 1), drawn, clipped=int(np.count_nonzero(np.abs(samples) > 1)))
    rng = clip_rng(utterance.corpus, utterance.id, job.scenario.name, job.severity)
    return apply(job.scenario, job.severity, samples, rng, banks)
