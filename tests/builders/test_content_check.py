"""`srb check` finds what has changed since a config was built, and readers notice what is missing."""

import io
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import soundfile

from speech_robust_bench.builders.config_sources import BuiltFolder
from speech_robust_bench.builders.row_generator import SCHEMA
from speech_robust_bench.cli.main import main
from speech_robust_bench.core.audio import RATE
from speech_robust_bench.core.errors import UserError

CONFIG = "en-demo_gain_sev1"


@pytest.fixture
def built(tmp_path):
    out = tmp_path / "srb"
    assert main(["build", CONFIG, "en-demo_clean", "--limit", "3", "--out", str(out)]) == 0
    return out


def change(out, **columns):
    """Write the shard again with other values."""
    path = out / CONFIG / "test-00000-of-00001.parquet"
    rows = pq.read_table(path).to_pylist()
    rows[1] |= columns
    pq.write_table(pa.Table.from_pylist(rows, SCHEMA), path)


def silence() -> dict:
    buffer = io.BytesIO()
    soundfile.write(buffer, [0.0] * RATE, RATE, format="FLAC")
    return {"bytes": buffer.getvalue(), "path": "x.flac"}


def test_what_was_built_is_sound(built, capsys):
    assert main(["check", "--data", str(built)]) == 0
    assert "2 of 2 configs are as they were built" in capsys.readouterr().out


@pytest.mark.parametrize("changed", [{"text": "other words"}, {"audio": silence()}, {"audio": {"bytes": b"x"}}])
def test_changed_rows_are_found(built, capsys, changed):
    change(built, **changed)
    assert main(["check", "--data", str(built), "--workers", "1"]) == 1
    printed = capsys.readouterr()
    assert f"{CONFIG}/test-00000-of-00001.parquet" in printed.err
    assert "1 of 2 configs" in printed.out


def test_a_config_of_other_rows_is_found(built, capsys):
    path = built / CONFIG / "test-00000-of-00001.parquet"
    pq.write_table(pq.read_table(path).take([2, 1, 0]), path)
    assert main(["check", "--data", str(built), CONFIG]) == 1
    assert "not those that its manifest was written for" in capsys.readouterr().err


def test_a_flipped_bit_is_found(built):
    path = built / CONFIG / "test-00000-of-00001.parquet"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    assert main(["check", "--data", str(built), CONFIG]) == 1


@pytest.mark.parametrize("damage", ["missing", "cut", "manifest"])
def test_a_run_over_a_damaged_config_is_refused(built, damage):
    path = built / CONFIG / "test-00000-of-00001.parquet"
    if damage == "missing":
        path.unlink()
        path.with_name("test-00000-of-00002.parquet").write_bytes(b"")
    elif damage == "cut":
        path.write_bytes(path.read_bytes()[:-9])
    else:
        manifest = path.with_name("_manifest.json")
        manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {"rows": 4}))
    with pytest.raises(UserError, match=CONFIG):
        BuiltFolder(built).config(CONFIG)
    assert main(["check", "--data", str(built), CONFIG]) == 1


def test_pandas_reads_a_config(built):
    pandas = pytest.importorskip("pandas")
    assert len(pandas.read_parquet(built / CONFIG)) == 3


@pytest.mark.parametrize("path", ["/etc/hostname", "../../secret.wav"])
def test_a_path_that_leads_out_of_the_data_is_not_read(built, path):
    change(built, audio={"bytes": None, "path": path})
    config = BuiltFolder(built).config(CONFIG)
    [window] = config.windows({1})
    with pytest.raises(UserError, match="lies outside the dataset"):
        window.decode(config.rows[1])


@pytest.mark.parametrize("path", ["/etc/hostname", "../outside.flac"])
def test_a_dataset_cannot_name_files_of_this_machine(tmp_path, capsys, path):
    (tmp_path / "outside.flac").write_bytes(silence()["bytes"])
    rows = [{"audio": silence(), "text": "one"}, {"audio": {"bytes": None, "path": path}, "text": "two"}]
    (tmp_path / "set").mkdir()
    schema = pa.schema([SCHEMA.field("audio"), SCHEMA.field("text")])
    pq.write_table(pa.Table.from_pylist(rows, schema), tmp_path / "set" / "test.parquet")
    words = ["--corpus", f"en-mine=hf:{tmp_path / 'set'}", "--on-error", "skip", "--out", str(tmp_path / "srb")]
    assert main(["build", "en-mine_clean", *words]) == 0
    assert "lies outside the dataset" in capsys.readouterr().err
    assert pq.read_table(tmp_path / "srb" / "en-mine_clean").num_rows == 1
