"""Fixtures of the attacks' tests: a small clean config in the language of tones, and one torch thread.

They are imported by name, because `conftest` means the one in tests/ to other tests."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    torch = pytest.importorskip("torch")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def write_clean(folder: Path, name: str, clips: list[tuple[str, str, np.ndarray]]) -> Path:
    """`folder/name` as `srb build` lays it out, from (id, text, samples)."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from speech_robust_bench.builders.manifests import write_card
    from speech_robust_bench.builders.row_generator import SCHEMA
    from speech_robust_bench.core.audio import encode_flac, to_pcm16
    from speech_robust_bench.core.rows import content_digest, row_digest

    rows = []
    for clip_id, text, samples in clips:
        pcm = to_pcm16(samples)
        row = {
            "id": clip_id,
            "audio": {"bytes": encode_flac(pcm), "path": f"{clip_id}.flac"},
            "text": text,
            "language": "en",
            "speaker": "one",
            "corpus": "tones",
            "licence": "CC0-1.0",
            "duration": len(pcm) / 16_000,
            "scenario": "clean",
            "severity": 0,
            "parameters": "{}",
            "clipped": 0,
            "sha256": row_digest(clip_id, text, pcm),
        }
        rows.append(row)
    place = folder / name
    place.mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist(rows, SCHEMA), place / "test-00000-of-00001.parquet")
    corpus = {"name": "tones", "title": "Tones", "licence": "CC0-1.0", "url": "", "citation": "", "note": ""}
    manifest = {
        "config": name,
        "benchmark_version": "1",
        "content_sha256": content_digest(row["sha256"] for row in rows),
        "rows": len(rows),
        "files": ["test-00000-of-00001.parquet"],
        "seconds": sum(row["duration"] for row in rows),
        "language": "en",
        "scenario": "clean",
        "category": "clean",
        "severity": 0,
        "parameters": {},
        "source": None,
        "bank": None,
        "corpus": {**corpus, "derivatives_allowed": True},
        "fingerprint": "",
    }
    (place / "_manifest.json").write_text(json.dumps(manifest))
    write_card(folder)
    return place


@pytest.fixture
def tone_data(tmp_path: Path) -> Path:
    """`srb/en-tones_clean` with 10 clips of three lengths, and `srb/en-toned_clean` with 6 others."""
    from support.tones import clip_of

    for name, seeds in (("en-tones_clean", range(10)), ("en-toned_clean", range(100, 106))):
        clips = [clip_of(seed, words=1 + seed % 3) for seed in seeds]
        write_clean(tmp_path / "srb", name, [(clip.id, clip.text, clip.samples) for clip in clips])
    return tmp_path / "srb"
