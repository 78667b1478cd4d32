"""`srb run` reads and decodes each clip once; what it costs beside that is measured by benchmarks/run.py."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from support.run_folders import srb_run

from speech_robust_bench.builders import configs


def test_each_clip_is_read_and_decoded_once(tones: Path, tmp_path: Path, monkeypatch) -> None:
    decoded: Counter[str] = Counter()
    reads: Counter[tuple[Path, int]] = Counter()
    decode, read_group = configs.read, configs.Group._read

    def count_decoded(data, *, name):
        decoded[name] += 1
        return decode(data, name=name)

    def count_reads(group, columns, *bound):
        reads[group.path, group.index] += "audio" in columns
        return read_group(group, columns, *bound)

    monkeypatch.setattr(configs, "read", count_decoded)
    monkeypatch.setattr(configs.Group, "_read", count_reads)
    assert srb_run("python:support.standin:count?batch_size=5", tones, tmp_path / "runs", "en-demo_clean") == 0
    assert len(decoded) == 23
    assert set(decoded.values()) == {1}
    assert len(reads) == 6  # groups of four rows
    assert set(reads.values()) == {1}
