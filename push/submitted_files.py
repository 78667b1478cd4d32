"""The files of a stranger's submission: what the folder may hold, its three documents, and its predictions.

Nothing is unpacked, imported or executed, and nothing is followed: a submission is one flat folder of plain files whose
names are known beforehand. What does not fit into limits of size, or is not the record that it should be, is refused
with the reason.

Predictions may be packed as parquet: `<config>.parquet` unpacks to the same bytes as `<config>.jsonl`. A parquet reader
is a large program that believes what a file says about itself. So a stranger's file is judged by its footer first (flat
columns of known types, rows and sizes within limits, no Arrow or pandas schema, hence no extension types and no
pickles), and then read in a process of its own with little memory and time: a footer can lie, and a dictionary makes
gigabytes of text from one word. Format: parquet.apache.org/docs/file-format.
"""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, TypeVar

from msgspec import structs

from speech_robust_bench.core.errors import UserError, for_terminal
from speech_robust_bench.core.files import file_digest
from speech_robust_bench.core.names import parse
from speech_robust_bench.core.records import FileFacts, RunRecord, SubmissionRecord, SubmittedPrediction, SubmittedRun
from speech_robust_bench.core.result_records import SubmittedResults
from speech_robust_bench.core.rows import RowDict
from speech_robust_bench.core.untrusted_files import Refused, decode_guarded, read_object

if TYPE_CHECKING:
    import pyarrow.parquet as pq


JSON_BYTES = 20_000_000
JSONL_BYTES = 200_000_000
TOTAL_BYTES = 4_000_000_000
LINE_BYTES = 2_000_000  # a reference and a transcript of the longest that there may be
FILES = 2_000
NAME = "submission.json"
DOCUMENTS = (NAME, "run.json", "results.json")
PREDICTIONS = (".jsonl", ".parquet")
T = TypeVar("T")


def survey(folder: Path) -> tuple[list[str], list[str]]:
    """The configs in a submission's folder, and what is wrong with the folder itself."""
    problems: list[str] = []
    if folder.is_symlink() or not folder.is_dir():
        return [], [f"{shown(folder.name)}: a submission is a folder of plain files, not an archive or a link"]
    configs: list[str] = []
    total = 0
    for count, path in enumerate(sorted(folder.iterdir())):
        if count >= FILES:
            return [], [*problems, f"more than {FILES} files"]
        name, about = path.name, path.lstat()
        if stat.S_ISLNK(about.st_mode):
            problems.append(f"{shown(name)}: a link; links are not followed")
        elif not stat.S_ISREG(about.st_mode):
            problems.append(f"{shown(name)}: not a plain file")
        elif reason := _name_problem(name):
            problems.append(f"{shown(name)}: {reason}")
        elif about.st_size > (limit := JSON_BYTES if name in DOCUMENTS else JSONL_BYTES):
            problems.append(f"{name}: {about.st_size} bytes; the limit is {limit}")
        elif name not in DOCUMENTS:
            configs.append(_config(name))
        total += about.st_size
    if total > TOTAL_BYTES:
        problems.append(f"{total} bytes in all; the limit is {TOTAL_BYTES}")
    problems += [f"{name}: missing" for name in DOCUMENTS if not (folder / name).is_file()]
    problems += [f"{name}: has predictions twice, .jsonl and .parquet" for name in configs if configs.count(name) > 1]
    if not configs and not problems:
        problems.append("no predictions (<config>.jsonl)")
    return configs, problems


def _config(name: str) -> str:
    return name.removesuffix(".jsonl").removesuffix(".parquet")


def _name_problem(name: str) -> str | None:
    if name in DOCUMENTS:
        return None
    if not name.endswith(PREDICTIONS):
        return "only JSON, JSONL and parquet are taken: submission.json, run.json, results.json and <config>.jsonl"
    try:
        parse(_config(name))
    except UserError:
        return "is not named after a config"
    return None


@dataclass(frozen=True)
class SubmittedFiles:
    """The three documents of a submission; `scores` is all that results.json says, to be compared key by key."""

    submission: SubmissionRecord
    run: RunRecord
    results: SubmittedResults
    scores: Mapping[str, object]

    @classmethod
    def read(cls, folder: Path) -> SubmittedFiles:
        """Read them; a `Refused` names the file and what is wrong with it."""
        about = _document(folder, NAME, SubmissionRecord)
        run = _document(folder, "run.json", SubmittedRun)
        results = _document(folder, "results.json", SubmittedResults)
        return cls(about, run, results, read_object((folder / "results.json").read_bytes()))


def _document(folder: Path, name: str, kind: type[T]) -> T:
    try:
        return decode_guarded((folder / name).read_bytes(), kind)
    except Refused as reason:
        raise Refused(f"{name}: {reason}") from None


def file_facts(path: Path) -> FileFacts:
    """A file's hash and size."""
    return FileFacts(sha256=file_digest(path), size=path.stat().st_size)


def check_listed(listed: Mapping[str, FileFacts], folder: Path) -> None:
    """Refuse a folder whose files are not those that its submission.json lists."""
    for name in listed:
        if "/" in name or "\\" in name or name in (".", ".."):
            raise Refused(f"'{shown(name)}' leads out of the folder")
    there = {path.name for path in folder.iterdir()} - {NAME}
    if odd := sorted(there ^ set(listed)):
        raise Refused(
            f"'{shown(odd[0])}' is " + ("not listed in 'files'" if odd[0] in there else "listed but not there")
        )
    for name in sorted(there):
        if listed[name] != file_facts(folder / name):
            raise Refused(f"{name} does not have the sha256 and size that 'files' says")


def read_lines(path: Path) -> Iterator[SubmittedPrediction]:
    """The predictions of a JSONL file, one after the other; no line is read further than the limit."""
    with path.open("rb") as file:
        number = 0
        while data := file.readline(LINE_BYTES + 1):
            number += 1
            if len(data) > LINE_BYTES:
                raise Refused(f"line {number}: longer than {LINE_BYTES} bytes")
            try:
                yield decode_guarded(data, SubmittedPrediction)
            except Refused as reason:
                raise Refused(f"line {number}: {reason}") from None


def shown(text: str) -> str:
    """A stranger's text in a message: printable, and short."""
    return for_terminal(text, most=80)


SUFFIX = ".parquet"
# A column for each key of a line, what is nested as JSON; what is optional is left out of a line in which it is null.
FIELDS = {field.name: field for field in structs.fields(SubmittedPrediction) if field.type is not NoneType}
NEEDED = tuple(name for name, field in FIELDS.items() if field.required)
OPTIONAL = tuple(name for name, field in FIELDS.items() if field.default is None)
NUMBERS = ("duration", "time", "loudness_dbfs", "snr_db", "above_threshold")
NESTED = ("word_confidences", "alternatives", "turns", "pred_turns", "stream", "words")
CODECS = ("UNCOMPRESSED", "SNAPPY", "GZIP", "ZSTD")
FOOTER_BYTES = 200_000
BATCH_ROWS = 100
MEMORY_BYTES = 1_000_000_000
CPU_SECONDS = 600


def pack(path: Path) -> Path:
    """Put a `.jsonl` of predictions into a `.parquet` beside it, and remove it."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    data = path.read_bytes()
    rows = [json.loads(line) for line in data.splitlines()]
    names = [name for name in FIELDS if any(name in row for row in rows)]
    schema = pa.schema([(name, pa.float64() if name in NUMBERS else pa.string()) for name in names])
    target = path.with_name(path.name.removesuffix(".jsonl") + SUFFIX)
    try:
        table = pa.Table.from_pylist([_flat(row) for row in rows], schema)
        pq.write_table(table, target, compression="zstd", store_schema=False)
        same = b"".join(lines(target, len(rows))) == data
    except (pa.ArrowException, Refused):
        same = False
    if not same:
        raise UserError(f"{path}: not as `srb run` writes it, so it cannot be packed; submit without --parquet")
    path.unlink()
    return target


def _flat(row: RowDict) -> RowDict:
    """A row with what is nested in it as text."""
    texts = {name: json.dumps(row[name], ensure_ascii=False) for name in NESTED if row.get(name) is not None}
    return {**row, **texts}


def lines(path: Path, most_rows: int) -> Iterator[bytes]:
    """The lines of the `.jsonl`; what is not such a file is refused. For a stranger's file, use `unpack`."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    _check_footer(path)
    try:
        with pq.ParquetFile(path) as file:
            _check_columns(file.metadata)
            _check_sizes(file.metadata, most_rows)
            for batch in file.iter_batches(BATCH_ROWS, use_threads=False):
                for row in batch.to_pylist():
                    yield _line(row)
    except MemoryError:
        raise Refused("takes more memory than predictions can") from None
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise Refused(f"not parquet that can be read ({shown(str(error))})") from None


def _check_footer(path: Path) -> None:
    """The end of the file: metadata, their length in four bytes, `PAR1`."""
    size = path.stat().st_size
    with path.open("rb") as file:
        file.seek(max(0, size - 8))
        length, magic = int.from_bytes(file.read(4), "little"), file.read(4)
        if size < 12 or magic != b"PAR1":
            raise Refused("not parquet, or cut off")
        if length > min(FOOTER_BYTES, size - 12):
            raise Refused(f"its footer claims {length} bytes; the limit is {FOOTER_BYTES}")
        file.seek(size - 8 - length)
        footer = file.read(length)
    for key in (b"ARROW:schema", b"pandas"):
        if key in footer:
            raise Refused(f"has a schema of its own ({key.decode()}); `srb submit --parquet` writes it without")


def _check_columns(metadata: pq.FileMetaData) -> None:
    kinds = {}
    for index in range(metadata.num_columns):
        column = metadata.schema.column(index)
        if column.path != column.name or column.max_repetition_level or column.max_definition_level > 1:
            raise Refused(f"column '{shown(column.path)}' is nested")
        kinds[column.name] = (column.physical_type, str(column.logical_type))
    for name in kinds:
        if name not in FIELDS:
            raise Refused(f"has an unknown column '{shown(name)}'")
    if len(kinds) != metadata.num_columns:
        raise Refused("a column occurs twice")
    for name in NEEDED:
        if name not in kinds:
            raise Refused(f"lacks the column '{name}'")
    for name, kind in kinds.items():
        if kind != (("DOUBLE", "None") if name in NUMBERS else ("BYTE_ARRAY", "String")):
            raise Refused(f"column '{name}' must be {'double' if name in NUMBERS else 'string'}")


def _check_sizes(metadata: pq.FileMetaData, most_rows: int) -> None:
    if metadata.num_rows > most_rows:
        raise Refused(f"{metadata.num_rows} rows, but the config has {most_rows} clips")
    groups = [metadata.row_group(index) for index in range(metadata.num_row_groups)]
    if sum(group.num_rows for group in groups) != metadata.num_rows:
        raise Refused("its row groups have other rows than it says")
    chunks = [group.column(index) for group in groups for index in range(metadata.num_columns)]
    if odd := {chunk.compression for chunk in chunks} - set(CODECS):
        raise Refused(f"compressed with {shown(min(odd))}; {', '.join(CODECS)} are taken")
    unpacked = sum(chunk.total_uncompressed_size for chunk in chunks)
    if unpacked > JSONL_BYTES:
        raise Refused(f"{unpacked} bytes when it is unpacked; the limit is {JSONL_BYTES}")


def _line(row: RowDict) -> bytes:
    kept = {name: row[name] for name in FIELDS if name in row and (name not in OPTIONAL or row[name] is not None)}
    try:
        kept |= {name: json.loads(row[name]) for name in NESTED if kept.get(name) is not None}
    except (ValueError, RecursionError):
        raise Refused("a column that holds JSON has something else") from None
    data = json.dumps(kept, ensure_ascii=False).encode() + b"\n"
    if len(data) > LINE_BYTES:
        raise Refused(f"a row of {len(data)} bytes; the limit is {LINE_BYTES}")
    return data


# --- in a process of its own -----------------------------------------------------------------------------------------


def unpack(folder: Path, out: Path, most_rows: Mapping[str, int]) -> dict[str, str]:
    """Write the `.jsonl` of each config's `.parquet` into another folder; returns why some of them are refused."""
    environment = {**os.environ, "MALLOC_ARENA_MAX": "1", "ARROW_DEFAULT_MEMORY_POOL": "system"}
    asked = json.dumps([str(folder), str(out), dict(most_rows)])
    done = subprocess.run(
        [sys.executable, "-m", "speech_robust_bench.push.submitted_files"],
        input=asked,
        env=environment,
        capture_output=True,
        text=True,
    )
    told = [json.loads(line) for line in done.stdout.splitlines()]
    refused = {config: reason for config, reason in told if reason}
    left = [config for config in most_rows if config not in dict(told)]
    if left:  # it died over the first of these
        refused[left[0]] = f"breaks the reader (exit code {done.returncode}), or takes more time than predictions can"
    return refused


def _main() -> None:
    import resource

    import pyarrow as pa
    import pyarrow.parquet

    folder, out, most_rows = json.load(sys.stdin)
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    left = TOTAL_BYTES
    for config, rows in most_rows.items():
        reason = None
        try:
            with (Path(out) / f"{config}.jsonl").open("wb") as file:
                for line in lines(Path(folder) / f"{config}{SUFFIX}", rows):
                    left -= file.write(line)
                    if left < 0 or file.tell() > JSONL_BYTES:
                        raise Refused(f"more than {JSONL_BYTES} bytes when it is unpacked, or {TOTAL_BYTES} in all")
        except Refused as problem:
            reason = str(problem)
        print(json.dumps([config, reason]), flush=True)


if __name__ == "__main__":
    _main()
