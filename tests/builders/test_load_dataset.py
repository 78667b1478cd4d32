"""What `load_dataset` gives is what was built last, and rows decode where torchcodec is installed."""

import datasets
import numpy as np
import pyarrow.parquet as pq
import pytest

from speech_robust_bench.cli.main import main

CONFIG = "en-demo_noise_sev1"


@pytest.fixture
def load(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    return lambda: datasets.load_dataset("srb", CONFIG, split="test")


def build(*words: str) -> None:
    assert main(["build", CONFIG, "--overwrite", *words]) == 0


def hashes(dataset) -> list[str]:
    return dataset.remove_columns("audio")["sha256"][:]


def test_a_rebuild_is_not_hidden_by_the_cache(load, tmp_path):
    build("--limit", "2")
    before = hashes(load())
    (tmp_path / "secret").write_text("another edition of the noise")
    build("--limit", "2", "--secret", "secret")  # as many rows, other noise
    after = hashes(load())
    assert len(before) == len(after) == 2
    assert not set(before) & set(after)
    build("--limit", "3", "--secret", "secret")
    assert len(load()) == 3


def test_new_columns_are_not_hidden_by_the_cache(load):
    from speech_robust_bench.builders.quality_columns import score

    for package in ("speechmos", "onnxruntime"):
        pytest.importorskip(package)
    build("--limit", "1")
    assert "dnsmos_p808" not in load().column_names
    from pathlib import Path

    score(Path("srb"), [CONFIG], lambda what, total: lambda count: None, columns=("dnsmos_p808",))
    assert "dnsmos_p808" in load().column_names
    assert main(["check", "--data", "srb"]) == 0


def test_rows_decode(load):
    pytest.importorskip("torchcodec")
    build("--limit", "1")
    row = load()[0]
    samples = row["audio"].get_all_samples()
    assert samples.sample_rate == 16_000
    import io

    import soundfile

    [stored] = pq.read_table(f"srb/{CONFIG}")["audio"].to_pylist()
    np.testing.assert_allclose(samples.data[0].numpy(), soundfile.read(io.BytesIO(stored["bytes"]))[0], atol=1e-4)
