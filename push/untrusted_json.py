"""Reads files that a stranger sent: what is not plain JSON or JSONL of a modest size is refused, with the reason.
(Parquet is unpacked to JSONL first, by `parquet_predictions`.)

Nothing is unpacked, imported or executed, and nothing is followed: a submission is one flat folder of plain files whose
names are known beforehand. JSON is read without the extensions of Python's reader (NaN, repeated keys) and within
limits of size, depth and length, so that a file can cost no more than its size.
"""

from __future__ import annotations

import json
import math
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.escape import for_terminal
from speech_robust_bench.core.names import parse
from speech_robust_bench.core.records import SubmittedPrediction, convert
from speech_robust_bench.core.rows import forbidden_character

JSON_BYTES = 20_000_000
JSONL_BYTES = 200_000_000
TOTAL_BYTES = 4_000_000_000
LINE_BYTES = 2_000_000  # a reference and a transcript of the longest that there may be
FILES = 2_000
DEPTH = 12
DOCUMENTS = ("submission.json", "run.json", "results.json")
PREDICTIONS = (".jsonl", ".parquet")


class Refused(ValueError):
    """Why a file is not taken."""


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


def read_document(path: Path) -> dict[str, Any]:
    """One JSON object."""
    return _object(path.read_bytes())


def read_lines(path: Path) -> Iterator[SubmittedPrediction]:
    """The predictions of a JSONL file, one after the other; no line is read further than the limit."""
    with path.open("rb") as file:
        number = 0
        while data := file.readline(LINE_BYTES + 1):
            number += 1
            if len(data) > LINE_BYTES:
                raise Refused(f"line {number}: longer than {LINE_BYTES} bytes")
            try:
                yield convert(_object(data), SubmittedPrediction)
            except ValueError as reason:
                raise Refused(f"line {number}: {reason}") from None


def _object(data: bytes) -> dict[str, Any]:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise Refused("not UTF-8 text") from None
    try:
        value = json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant, parse_float=_finite)
    except Refused:
        raise
    except RecursionError:
        raise Refused(f"nested deeper than {DEPTH}") from None
    except ValueError as error:  # also an integer of thousands of digits
        raise Refused(f"not JSON ({str(error)[:80]})") from None
    if not isinstance(value, dict):
        raise Refused("not a JSON object")
    _check(value, DEPTH)
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise Refused("a key occurs twice")
    return value


def _no_constant(name: str) -> float:
    raise Refused(f"{name} is not a number that JSON has")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise Refused(f"{text[:20]} is too large a number")
    return value


def _check(value: Any, depth: int) -> None:
    if depth < 0:
        raise Refused(f"nested deeper than {DEPTH}")
    if isinstance(value, str):
        check_text(value)
    elif isinstance(value, dict):
        for key, inner in value.items():
            check_text(key)
            _check(inner, depth - 1)
    elif isinstance(value, list):
        for inner in value:
            _check(inner, depth - 1)
    elif isinstance(value, int) and not isinstance(value, bool) and abs(value) > 2**53:
        raise Refused("an integer beyond 2**53")


def check_text(text: str) -> None:
    """Refuse what the builder lets into no row either: control characters and half characters."""
    if character := forbidden_character(text):
        raise Refused(f"a control character ({character})")


def shown(text: str) -> str:
    """A stranger's text in a message: printable, and short."""
    return for_terminal(text, most=80)
