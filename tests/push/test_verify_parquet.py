"""Predictions sent as parquet: the honest file is read as its JSONL would be, a hostile one is refused unread."""

from __future__ import annotations

import json
import os
import shutil
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.built_data import make_built
from support.fake_runs import make_run

from speech_robust_bench.core.errors import UserError
from speech_robust_bench.push import expected_rows, submission, submitted_files, verified
from speech_robust_bench.push.verify import verify

NOISE = "en_noise_sev3"
CLIPS = 30
TEXT, NUMBER = pa.string(), pa.float64()


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return make_built(tmp_path_factory.mktemp("truth") / "srb", ["en_clean", NOISE], clips=CLIPS)


@pytest.fixture(scope="module")
def known(data):
    return expected_rows.load(str(data))


@pytest.fixture(scope="module")
def run(data, tmp_path_factory):
    return make_run(tmp_path_factory.mktemp("runs") / "hears", data, "hears")


@pytest.fixture(scope="module")
def original(run, tmp_path_factory):
    return submission.make(run, tmp_path_factory.mktemp("sent") / "hears", {}, parquet=True)


@pytest.fixture
def honest(original, tmp_path):
    return shutil.copytree(original, tmp_path / "hears")


def seal(folder):
    """Bring the hashes of submission.json in line, as somebody who cheats would."""
    made = json.loads((folder / "submission.json").read_text())
    files = [path for path in folder.iterdir() if path.name != "submission.json"]
    made["files"] = {path.name: submission.file_facts(path).as_json() for path in files}
    (folder / "submission.json").write_text(json.dumps(made))


def write(path, table, **how):
    pq.write_table(table, path, **{"store_schema": False, **how})


def columns(path):
    table = pq.read_table(path)
    return {name: table[name] for name in table.column_names}


def changed(**new):
    """Rewrite the file with some columns replaced, or dropped if they are None."""

    def change(path):
        made = {**columns(path), **new}
        write(path, pa.table({name: column for name, column in made.items() if column is not None}))

    return change


def repeated(value, kind=TEXT):
    return pa.array([value] * CLIPS, kind)


def pandas_index(path):
    table = pa.table(columns(path))
    with pq.ParquetWriter(path, table.schema, store_schema=False) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({"pandas": '{"index_columns": []}'})


def extension(path):
    uuids = pa.ExtensionArray.from_storage(pa.uuid(), pa.array([bytes(16)] * CLIPS, pa.binary(16)))
    write(path, pa.table({**columns(path), "id": uuids}), store_schema=True)


def decompression_bomb(path):
    """A quarter of a gigabyte of zeros in some kilobytes, as the footer says too."""
    zeros = pa.array([b"\0" * 50_000_000] * 5, pa.binary()).cast(TEXT)
    rows = {name: pa.nulls(5, NUMBER if name in submitted_files.NUMBERS else TEXT) for name in submitted_files.NEEDED}
    write(path, pa.table({**rows, "pred_text": zeros}), compression="zstd", use_dictionary=False)
    assert path.stat().st_size < 100_000


def decompression_bomb_that_lies(path):
    decompression_bomb(path)
    for size in {chunk_size(path), pq.read_metadata(path).row_group(0).total_byte_size}:
        footer_says(size, 1000)(path)
    assert chunk_size(path) == 1000


def chunk_size(path):
    group = pq.read_metadata(path).row_group(0)
    chunks = [group.column(index) for index in range(group.num_columns)]
    return next(chunk.total_uncompressed_size for chunk in chunks if chunk.path_in_schema == "pred_text")


def dictionary_bomb(path):
    """One word of fifty megabytes that every row points to: small even when it is unpacked, but not when it is read."""
    word = pa.DictionaryArray.from_arrays(pa.array([0] * CLIPS, pa.int32()), pa.array(["x" * 50_000_000]))
    how = {"compression": "zstd", "dictionary_pagesize_limit": 1 << 30, "write_statistics": False}
    write(path, pa.table({**columns(path), "pred_text": word}), **how)
    assert path.stat().st_size < 100_000
    metadata = pq.read_metadata(path)
    assert metadata.row_group(0).total_byte_size < 60_000_000


def cut_off(path):
    os.truncate(path, path.stat().st_size // 2)


def garbage_pages(path):
    """The footer is whole, what it points to is not."""
    content = bytearray(path.read_bytes())
    content[4:200] = b"\xff" * 196
    path.write_bytes(content)


def footer_says(old, new, count=-1):
    """Change a number in the footer: thrift writes a field of type i64 (0x16) as a zigzag varint."""

    def field(value):
        value, made = value << 1, bytearray()
        while value > 0x7F:
            made.append(value & 0x7F | 0x80)
            value >>= 7
        return b"\x16" + bytes([*made, value])

    def change(path):
        content = path.read_bytes()
        start = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
        footer = content[start:-8].replace(field(old), field(new), count)
        assert footer != content[start:-8]
        path.write_bytes(content[:start] + footer + len(footer).to_bytes(4, "little") + b"PAR1")

    return change


def huge_footer(path):
    content = path.read_bytes()
    path.write_bytes(content[:-8] + (2**31).to_bytes(4, "little") + b"PAR1")


# name -> (what is done to the file of one config, what the refusal says)
BAD = {
    "a decompression bomb": (decompression_bomb, "bytes when it is unpacked; the limit is 200000000"),
    "a decompression bomb that lies": (decompression_bomb_that_lies, "takes more memory than predictions can"),
    "a bomb in a dictionary": (dictionary_bomb, "takes more memory than predictions can"),
    "an unknown column": (changed(code=repeated("import os")), "has an unknown column 'code'"),
    "a missing column": (changed(pred_text=None), "lacks the column 'pred_text'"),
    "bytes for text": (changed(pred_text=repeated(b"\x80\x04", pa.binary())), "'pred_text' must be string"),
    "numbers for text": (changed(pred_text=repeated(1.0, NUMBER)), "column 'pred_text' must be string"),
    "text for numbers": (changed(time=repeated("fast")), "column 'time' must be double"),
    "a list": (changed(pred_text=repeated(["a"], pa.list_(TEXT))), "is nested"),
    "a struct": (changed(pred_text=repeated({"a": "b"}, pa.struct({"a": TEXT}))), "column 'pred_text.a' is nested"),
    "a map": (changed(pred_text=repeated([("a", "b")], pa.map_(TEXT, TEXT))), "is nested"),
    "an extension type": (extension, "has a schema of its own (ARROW:schema)"),
    "a pandas object": (pandas_index, "has a schema of its own (pandas)"),
    "cut off": (cut_off, "not parquet, or cut off"),
    "an empty file": (lambda path: path.write_bytes(b""), "not parquet, or cut off"),
    "JSON under the name": (lambda path: path.write_text("{}\n" * 10), "not parquet, or cut off"),
    "pages of garbage": (garbage_pages, "not parquet that can be read"),
    "a footer without end": (huge_footer, "its footer claims 2147483648 bytes"),
    "a footer of noise": (lambda p: p.write_bytes(b"PAR1" + b"\xaa" * 99 + b"\x40\0\0\0PAR1"), "not parquet that can"),
    "a billion rows": (footer_says(CLIPS, 10**9), "1000000000 rows, but the config has 30 clips"),
    "more rows than clips": (
        lambda path: write(path, pa.concat_tables([pa.table(columns(path))] * 1000)),
        "30000 rows, but the config has 30 clips",
    ),
    "rows that are not there": (footer_says(CLIPS, 29, count=1), "its row groups have other rows than it says"),
    "rows that nobody wrote": (
        lambda path: (
            changed(**{name: column.slice(0, 9) for name, column in columns(path).items()})(path),
            footer_says(9, CLIPS)(path),
        ),
        "9 lines, but the config has 30 clips",
    ),
    "a thousand row groups": (
        lambda path: write(path, pa.concat_tables([pa.table(columns(path))] * 40), row_group_size=1),
        "its footer claims",
    ),
    "another codec": (
        lambda path: write(path, pa.table(columns(path)), compression="brotli"),
        "compressed with BROTLI",
    ),
    "not UTF-8": (
        changed(pred_text=pa.array([b"\xff\xfe"] * CLIPS, pa.binary()).view(TEXT)),
        "not parquet that can be read",
    ),
    "terminal codes": (changed(pred_text=repeated("\x1b[2Jaccepted")), "line 1: a control character (U+001B)"),
    "NaN": (changed(time=repeated(float("nan"), NUMBER)), "line 1: NaN is not a number"),
    "a missing id": (changed(id=repeated(None)), "line 1: 'id': expected `str`, got `null`"),
    "better predictions": (lambda path: changed(pred_text=columns(path)["text"])(path), f"{NOISE}.sha256 says"),
}


def test_the_honest_one_is_accepted_and_scored_as_its_jsonl(honest, run, known, tmp_path):
    assert not list(honest.glob("*.jsonl"))
    verdict = verify(honest, known)
    assert verdict.reasons == []
    plain = verify(submission.make(run, tmp_path / "plain", {}), known)
    assert verdict.results == plain.results
    assert verified.write(verdict, tmp_path / "a").read_bytes() == verified.write(plain, tmp_path / "b").read_bytes()


def test_packing_is_a_fraction_of_the_size_and_loses_nothing(run, tmp_path):
    source = tmp_path / f"{NOISE}.jsonl"
    shutil.copyfile(run / source.name, source)
    before = source.read_bytes()
    made = submitted_files.pack(source)
    assert not source.exists()
    assert made.stat().st_size < len(before) / 1.5
    assert submitted_files.unpack(tmp_path, tmp_path, {NOISE: CLIPS}) == {}
    assert source.read_bytes() == before


def test_one_packed_and_one_plain(honest, run, known):
    (honest / "en_clean.parquet").unlink()
    shutil.copyfile(run / "en_clean.jsonl", honest / "en_clean.jsonl")
    seal(honest)
    assert verify(honest, known).reasons == []
    shutil.copyfile(run / f"{NOISE}.jsonl", honest / f"{NOISE}.jsonl")
    seal(honest)
    assert f"{NOISE}: has predictions twice, .jsonl and .parquet" in verify(honest, known).reasons


@pytest.mark.parametrize("name", BAD)
def test_a_bad_file_is_refused_with_its_reason(name, honest, known):
    change, reason = BAD[name]
    change(honest / f"{NOISE}.parquet")
    seal(honest)
    verdict = verify(honest, known)
    assert not verdict.accepted
    assert any(reason in line for line in verdict.reasons), verdict.reasons
    assert all(line.isprintable() for line in verdict.reasons)


def test_what_follows_a_bad_file_is_still_read(honest, tmp_path):
    dictionary_bomb(honest / "en_clean.parquet")
    (tmp_path / "out").mkdir()
    refused = submitted_files.unpack(honest, tmp_path / "out", {"en_clean": CLIPS, NOISE: CLIPS})
    assert list(refused) == ["en_clean"]
    assert (tmp_path / "out" / f"{NOISE}.jsonl").stat().st_size > 0


def test_a_reader_that_dies_is_a_refusal(honest, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "executable", "/bin/false")
    assert "breaks the reader (exit code 1)" in submitted_files.unpack(honest, tmp_path, {NOISE: CLIPS})[NOISE]


def test_a_line_that_srb_run_would_not_write_is_not_packed(tmp_path):
    path = tmp_path / f"{NOISE}.jsonl"
    path.write_text('{"id": "a", "more": 1}\n')
    with pytest.raises(UserError, match="cannot be packed"):
        submitted_files.pack(path)
