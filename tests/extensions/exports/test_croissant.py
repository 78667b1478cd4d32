"""Croissant metadata of built data: MLCommons' own reader finds the rows by it."""

import hashlib
import io
import json

import numpy as np
import pytest
import soundfile

from speech_robust_bench.builders.manifests import MANIFEST
from speech_robust_bench.builders.row_generator import SCHEMA
from speech_robust_bench.cli.main import main


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Two configs, of two shards each."""
    out = tmp_path_factory.mktemp("croissant") / "srb"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("speech_robust_bench.builders.row_generator.ROWS_PER_SHARD", 1)
        assert main(["build", "en-demo_clean", "en-demo_gaussian_snr5", "--limit", "2", "--out", str(out)]) == 0
    assert main(["export", "croissant", "--data", str(out), "--url", "https://example.org/srb"]) == 0
    return out


def test_every_config_and_column_is_described(built):
    made = json.loads((built / "croissant.json").read_text())
    assert made["url"] == "https://example.org/srb"
    assert made["conformsTo"] == "http://mlcommons.org/croissant/1.0"
    assert [records["name"] for records in made["recordSet"]] == ["en-demo_clean", "en-demo_gaussian_snr5"]
    for records in made["recordSet"]:
        assert [field["name"] for field in records["field"]] == SCHEMA.names
        manifest = json.loads((built / records["name"] / MANIFEST).read_text())
        assert manifest["content_sha256"] in records["description"]
    for files in made["distribution"]:
        assert len(list(built.glob(files["includes"]))) == 2


def test_mlcroissant_reads_the_rows(built):
    reader = pytest.importorskip("mlcroissant")
    name = "en-demo_gaussian_snr5"
    rows = list(reader.Dataset(jsonld=str(built / "croissant.json")).records(record_set=name))
    assert len(rows) == 2
    for row in rows:
        pcm, _ = soundfile.read(io.BytesIO(row[f"{name}/audio"]), dtype="int16")
        key = row[f"{name}/id"] + b"\x1f" + row[f"{name}/text"] + b"\x1f"
        assert hashlib.sha256(key + np.asarray(pcm, "<i2").tobytes()).hexdigest().encode() == row[f"{name}/sha256"]


def test_an_empty_folder_is_named(tmp_path, capsys):
    assert main(["export", "croissant", "--data", str(tmp_path)]) == 2
    assert f"{tmp_path}: holds no built configs" in capsys.readouterr().err
