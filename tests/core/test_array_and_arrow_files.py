"""Arrays, parquet and Arrow files that an earlier command left: read in parts, and a damaged one is no traceback."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from speech_robust_bench.core import untrusted_files
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.files import read_array
from speech_robust_bench.core.untrusted_files import count_rows, damage_named, read_schema, row_groups

ROWS = pa.table({"id": ["a", "b", "c"], "n": [1, 2, 3]})


@pytest.fixture(params=["parquet", "arrow"])
def stored(request, tmp_path):
    """Three rows, two in the first part of the file and one in the second."""
    path = tmp_path / f"rows.{request.param}"
    if request.param == "parquet":
        pq.write_table(ROWS, path, row_group_size=2)
    else:
        with pa.ipc.new_stream(str(path), ROWS.schema) as file:
            file.write_table(ROWS, max_chunksize=2)
    return path


def test_files_are_read_in_parts(stored) -> None:
    assert [part.to_pydict() for part in row_groups(stored)] == [
        {"id": ["a", "b"], "n": [1, 2]},
        {"id": ["c"], "n": [3]},
    ]
    assert [part.to_pydict() for part in row_groups(stored, ("n",))] == [{"n": [1, 2]}, {"n": [3]}]
    assert read_schema(stored).names == ["id", "n"]
    assert count_rows(stored) == 3


@pytest.mark.parametrize("read", [lambda path: list(row_groups(path)), read_schema, count_rows])
def test_a_torn_file_is_named(stored, read) -> None:
    stored.write_bytes(stored.read_bytes()[:20])
    with pytest.raises(UserError) as told, damage_named(stored):
        read(stored)
    assert str(told.value).startswith(f"{stored}: is damaged (")
    assert str(told.value).endswith(f"build or fetch {stored.parent.name} again")
    assert "\n" not in str(told.value)


def test_damage_has_a_way_out_and_a_short_reason(tmp_path) -> None:
    with pytest.raises(UserError) as told, damage_named(tmp_path / "x", "mend it"):
        raise OSError("torn\n  " + "a" * 200)
    assert str(told.value) == f"{tmp_path / 'x'}: is damaged (torn {'a' * 115}); mend it"
    with pytest.raises(UserError, match=r"^said already$"), damage_named(tmp_path / "x"):
        raise UserError("said already")


def test_an_array_is_floats_or_nothing(tmp_path) -> None:
    path = tmp_path / "a.npy"
    assert read_array(path) is None
    np.save(path, np.array([0.5, -1.0], np.float32))
    kept = read_array(path)
    assert kept is not None
    assert kept.tolist() == [0.5, -1.0]
    path.write_bytes(path.read_bytes()[:-1])
    assert read_array(path) is None
    for other in (np.array([1, 2]), np.array([np.nan, 1.0]), np.array([{}], object)):
        np.save(path, other)
        assert read_array(path) is None
    np.savez(tmp_path / "b.npz", np.zeros(2))
    assert read_array(tmp_path / "b.npz") is None
    for content in (b"", b"PK\x03\x04 no archive"):
        path.write_bytes(content)
        assert read_array(path) is None


class Trap:
    """What a pickle runs as soon as it is read."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple:
        return Path.touch, (self.path,)


def test_a_pickle_in_an_array_is_not_run(tmp_path) -> None:
    np.save(tmp_path / "a.npy", np.array([Trap(tmp_path / "ran")], object))
    assert read_array(tmp_path / "a.npy") is None
    assert not (tmp_path / "ran").exists()
    np.load(tmp_path / "a.npy", allow_pickle=True)
    assert (tmp_path / "ran").exists()


WORD = "x" * 1_000_000
HOW = {"compression": "zstd", "dictionary_pagesize_limit": 1 << 30, "write_statistics": False}


@pytest.mark.parametrize("dictionary", [True, False])
def test_a_small_file_that_unpacks_to_gigabytes_is_one_line(tmp_path, monkeypatch, dictionary) -> None:
    """Zeros that are compressed, as the footer says, and a word that every row points to, of which it is silent."""
    monkeypatch.setattr(untrusted_files, "MOST_GROUP_BYTES", 50_000_000)
    monkeypatch.setattr(untrusted_files, "MOST_BATCH_BYTES", 10_000_000)
    words = pa.DictionaryArray.from_arrays(pa.array([0] * 60, pa.int32()), pa.array([WORD]))
    path = tmp_path / "bomb.parquet"
    pq.write_table(pa.table({"text": words, "n": range(60)}), path, use_dictionary=dictionary, **HOW)
    assert path.stat().st_size < 200_000
    before = pa.total_allocated_bytes()
    with pytest.raises(UserError, match=r"bomb\.parquet: row group 0 unpacks to more than 0\.05 GB"):
        list(row_groups(path))
    assert pa.total_allocated_bytes() - before < 100_000_000
    assert [part.to_pydict() for part in row_groups(path, ["n"])] == [{"n": list(range(60))}]


def test_rows_are_the_same_however_many_batches_they_are_read_in(tmp_path, monkeypatch) -> None:
    table = pa.table({"id": [f"clip {n}" for n in range(57)], "audio": [{"bytes": b"a" * n} for n in range(57)]})
    pq.write_table(table, tmp_path / "rows.parquet", row_group_size=20)
    monkeypatch.setattr(untrusted_files, "MOST_BATCH_BYTES", 3_000)
    parts = list(row_groups(tmp_path / "rows.parquet", ["audio", "id"]))
    assert [part.num_rows for part in parts] == [20, 20, 17]
    assert pa.concat_tables(parts) == table.select(["audio", "id"])
