"""The hashes of rows and configs, computed from what docs/formats.md says of them and not by our own functions."""

import hashlib
import io
import json
import struct

import datasets
import numpy as np
import pyarrow.parquet as pq
import pytest
import soundfile

from srb.builders.banks import Banks
from srb.builders.plan import DEMO, clips, job_named
from srb.builders.rows import SCHEMA, make_row
from srb.cli.main import main
from srb.core.row_hashes import content_digest, row_digest, transcripts_digest

CONFIGS = ["en-demo_clean", "en-demo_gaussian_sev4", "en-demo_silence", "es-demo_clean"]


def digest_by_the_docs(clip_id: str, text: str, flac: bytes) -> str:
    samples, _ = soundfile.read(io.BytesIO(flac), dtype="int16")
    stored = struct.pack(f"<{len(samples)}h", *samples.tolist())
    return hashlib.sha256(clip_id.encode() + b"\x1f" + text.encode() + b"\x1f" + stored).hexdigest()


def test_built_rows_and_manifests_hold_the_hashes_that_the_docs_describe(tmp_path):
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


def test_what_a_recording_holds_beyond_full_scale_is_clipped_and_counted():
    job = job_named("en-demo_clean")
    _, (utterance,) = clips(job.selection, DEMO, 1)
    row = make_row(job, utterance, np.array([2, -1.5, 1, -1, 0.5], np.float32), Banks())
    assert row["clipped"] == 2
    samples, _ = soundfile.read(io.BytesIO(row["audio"]["bytes"]), dtype="int16")
    assert samples.tolist() == [32767, -32768, 32767, -32768, 16384]


PCM = np.array([0, 1, -2, 32767], np.int16)
# printf 'clip-1\037na\303\257ve words\037\000\000\001\000\376\377\377\177' | sha256sum
BY_SHA256SUM = "242f16569d6ab7e40f3f5142d6afade642483bb4f2c49d23ffe132e2f5711ee8"


@pytest.mark.parametrize("dtype", ["<i2", ">i2"])
def test_a_row_by_the_program_sha256sum(dtype):
    assert row_digest("clip-1", "naïve words", PCM.astype(dtype)) == BY_SHA256SUM


def test_a_config_by_the_program_sha256sum():
    # printf "$ROW$ROW" | sha256sum
    expected = "fa1a7f05dad9edd52807470fe3f4d8b02eefd9e999d12149e3cf06dc7502c7a3"
    assert content_digest([BY_SHA256SUM, BY_SHA256SUM]) == expected


@pytest.mark.parametrize(
    "other",
    [("clip-2", "words", PCM), ("clip-1", "word", PCM), ("clip-1", "words", PCM[:3]), ("clip-1", "words", PCM + 1)],
    ids=["id", "text", "length", "samples"],
)
def test_each_part_of_a_row_counts(other):
    assert row_digest(*other) != row_digest("clip-1", "words", PCM)


def test_the_order_of_rows_counts():
    assert content_digest(["a", "b"]) != content_digest(["b", "a"])


def test_ids_and_transcripts_by_the_program_sha256sum():
    """A transcript that is not known is not an empty one."""
    # printf 'clip-1\037na\303\257ve\036clip-2\037\000\036clip-3\037\036' | sha256sum
    expected = "5147f94e1bbd379ecd545c10feda66af8e912de0b1c4c43d2ec82b8454bc1491"
    assert transcripts_digest([("clip-1", "naïve"), ("clip-2", None), ("clip-3", "")]) == expected
    # printf 'clip-1\037\000\037\000\000\001\000\376\377\377\177' | sha256sum
    assert row_digest("clip-1", None, PCM) == "2e1c3f9f8001c92b880238d5c8c122a377426a2f0a00b45ca436d57d80e2783b"
