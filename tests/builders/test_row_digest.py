"""The hashes of rows and configs, computed as docs/concepts/files.md describes them, not by our own functions."""

import hashlib
import io
import json
import struct

import datasets
import numpy as np
import pyarrow.parquet as pq
import soundfile

from speech_robust_bench.builders.banks import Banks
from speech_robust_bench.builders.plan import DEMO, clips, job_named
from speech_robust_bench.builders.row_generator import SCHEMA, RowGenerator
from speech_robust_bench.cli.main import main

CONFIGS = ["en-demo_clean", "en-demo_gaussian_sev4", "en-demo_silence", "es-demo_clean"]


def digest_by_the_docs(clip_id: str, text: str, flac: bytes) -> str:
    samples, _ = soundfile.read(io.BytesIO(flac), dtype="int16")
    stored = struct.pack(f"<{len(samples)}h", *samples.tolist())
    return hashlib.sha256(clip_id.encode() + b"\x1f" + text.encode() + b"\x1f" + stored).hexdigest()


def test_rows_and_manifests_hold_the_hashes_of_the_docs(tmp_path):
    assert main(["build", *CONFIGS, "--limit", "2", "--out", str(tmp_path)]) == 0
    for config in CONFIGS:
        (path,) = (tmp_path / config).glob("*.parquet")
        rows = pq.read_table(path).to_pylist()
        digests = [digest_by_the_docs(row["id"], row["text"], row["audio"]["bytes"]) for row in rows]
        assert [row["sha256"] for row in rows] == digests
        assert len(rows) == 2
        manifest = json.loads((path.parent / "_manifest.json").read_text())
        assert manifest["content_sha256"] == hashlib.sha256("".join(digests).encode()).hexdigest()


def test_the_schema_tells_datasets_which_column_is_sound():
    features = datasets.Features.from_arrow_schema(SCHEMA)
    assert features["audio"] == datasets.Audio(sampling_rate=16_000)
    assert features["duration"] == datasets.Value("float64")


def test_samples_beyond_full_scale_are_clipped_and_counted():
    job = job_named("en-demo_clean")
    _, (utterance,) = clips(job.selection, DEMO, 1)
    [made] = RowGenerator((job,), Banks()).rows(utterance, np.array([2, -1.5, 1, -1, 0.5], np.float32))
    row = made.stored()
    assert row["clipped"] == 2
    samples, _ = soundfile.read(io.BytesIO(row["audio"]["bytes"]), dtype="int16")
    assert samples.tolist() == [32767, -32768, 32767, -32768, 16384]
