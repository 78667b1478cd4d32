"""Rows of a dataset config: one clip under one scenario, stored as 16-bit FLAC with all that is known about it.

`srb build`, the `datasets` builder, `srb.load` and `srb run --corpus` make their rows here and nowhere else:
`RowGenerator.rows` gives a clip to `apply`, which gives it to the scenario's function.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from speech_robust_bench.builders.apply import Perturbed, apply
from speech_robust_bench.builders.banks import Banks
from speech_robust_bench.builders.corpora import Utterance
from speech_robust_bench.builders.plan import Job
from speech_robust_bench.core.audio import RATE, Samples, encode_flac, from_pcm16, to_pcm16
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
