"""Built folders made by hand: rows that a build would write, with a second of noise in each, from a named corpus."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from speech_robust_bench.builders.corpora import CORPORA
from speech_robust_bench.builders.manifests import write_card
from speech_robust_bench.builders.row_generator import SCHEMA, shard_name
from speech_robust_bench.builders.scenarios import SCENARIOS
from speech_robust_bench.core.audio import encode_flac
from speech_robust_bench.core.names import parse
from speech_robust_bench.core.rows import content_digest, row_digest

WORDS = [
    "the",
    "cat",
    "sat",
    "on",
    "a",
    "mat",
    "and",
    "saw",
    "the",
    "dog",
    "run",
    "over",
    "green",
    "hills",
    "at",
    "dawn",
    "while",
    "rain",
    "fell",
]
NAMES = ("ann", "bob", "cleo", "dan", "eva", "finn", "gina", "hugo", "ida", "jon", "kim", "leo", "mia", "ned", "olga")
PEOPLE = tuple((name, "male" if place % 2 else "female") for place, name in enumerate(NAMES))  # enough for a verdict


def text_of(index: int) -> str:
    """A sentence of six words that is another one for each clip."""
    return " ".join(WORDS[(index * 5 + step * 3) % len(WORDS)] for step in range(6))


def make_config(
    folder: Path, config: str, clips: int = 6, shards: int = 1, licence: str | None = None, bank: str | None = None
) -> Path:
    """One built config."""
    name = parse(config)
    scenario = SCENARIOS[name.scenario]
    info = CORPORA[name.corpus].info if name.corpus in CORPORA else CORPORA["librispeech"].info
    place = folder / config
    place.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(sum(map(ord, config)))
    rows = []
    for index in range(clips):
        pcm = rng.integers(-500, 500, 800 + 100 * index).astype(np.int16)
        clip, speaker = f"clip-{index:04d}", PEOPLE[index % len(PEOPLE)]
        text = text_of(index) if scenario.has_speech else ""
        rows.append(
            {
                "id": clip,
                "audio": {"bytes": encode_flac(pcm), "path": f"{clip}.flac"},
                "text": text,
                "language": name.language,
                "speaker": speaker[0],
                "gender": speaker[1],
                "age": None,
                "accent": None,
                "corpus": name.corpus,
                "licence": licence if licence is not None else info.licence,
                "duration": len(pcm) / 16_000,
                "source": None if name.scenario == "clean" else str(name.clean),
                "scenario": name.scenario,
                "severity": name.severity,
                "parameters": "{}",
                "snr_db": None,
                "clipped": 0,
                "sha256": row_digest(clip, text, pcm),
            }
        )
    edges = [clips * i // shards for i in range(shards + 1)]
    files = [shard_name(i, shards) for i in range(shards)]
    for file, start, end in zip(files, edges, edges[1:], strict=False):
        pq.write_table(pa.Table.from_pylist(rows[start:end], SCHEMA), place / file)
    manifest = {
        "config": config,
        "benchmark_version": "1",
        "content_sha256": content_digest(row["sha256"] for row in rows),
        "rows": clips,
        "seconds": sum(row["duration"] for row in rows),
        "clipped": 0,
        "language": name.language,
        "scenario": name.scenario,
        "category": scenario.category,
        "severity": name.severity,
        "parameters": {},
        "source": rows[0]["source"],
        "bank": bank,
        "corpus": {
            "name": name.corpus,
            "title": info.title,
            "licence": licence if licence is not None else info.licence,
            "url": info.url,
            "citation": info.citation,
            "derivatives_allowed": info.derivatives_allowed,
            "note": info.note,
        },
        "skipped": [],
        "files": files,
        "versions": {},
        "fingerprint": "0",
    }
    (place / "_manifest.json").write_text(json.dumps(manifest, indent=1))
    return place


def make_built(folder: Path, configs: Sequence[str], **how) -> Path:
    """A built folder with a card."""
    for config in configs:
        make_config(folder, config, **how)
    write_card(folder)
    return folder


def many_configs(count: int) -> list[str]:
    """That many config names of the scenario table, `en_clean` first."""
    names = ["en_clean"]
    for scenario in SCENARIOS.values():
        if scenario.maker == "perturbation" and scenario.category != "clean":
            names += [f"en_{scenario.name}" + (f"_sev{n}" if n else "") for n in scenario.levels]
    assert len(names) >= count
    return names[:count]
