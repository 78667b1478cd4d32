"""The files of a stranger's submission: what the folder may hold, its three documents, and its predictions.

Nothing is unpacked, imported or executed, and nothing is followed: a submission is one flat folder of plain files whose
names are known beforehand. What does not fit into limits of size, or is not the record that it should be, is refused
with the reason. (Parquet is unpacked to JSONL first, by `parquet_predictions`.)
"""

from __future__ import annotations

import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from speech_robust_bench.core.errors import UserError, for_terminal
from speech_robust_bench.core.files import file_digest
from speech_robust_bench.core.names import parse
from speech_robust_bench.core.records import FileFacts, RunRecord, SubmissionRecord, SubmittedPrediction, SubmittedRun
from speech_robust_bench.core.result_records import SubmittedResults
from speech_robust_bench.core.untrusted_files import Refused, decode_guarded, read_object

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
