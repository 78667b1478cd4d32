"""Files changed at random, and what a command may make of them: it succeeds or says one line, never a traceback.

`SRB_FUZZ=1000` tries that many changes of a kind instead of the few that a test run can afford.
"""

from __future__ import annotations

import csv
import io
import json
import os
import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from speech_robust_bench.cli.main import main

ODD = [None, True, -1, 0, 1e308, 2**60, "", "x" * 3000, "\ud800", "\x1b[31m", [], {}, [[]], {"": None}, "1", 0.5]
ODD_CELLS = ["", "nan", "inf", "-1", "0", "1e999", "9" * 400, "x" * 200_000, "\x00", "\u202e", '"', "\x1b[31m", "=1+1"]
ODD_BYTES = [b"\xff\xfe", b"\x00", b"[" * 50_000, b"{" * 20_000, b'{"a":' * 20_000, b"\xed\xa0\x80", b"&a [*a]", b"- "]


def tries(usual: int) -> int:
    """How many changes to try."""
    return int(os.environ.get("SRB_FUZZ", usual))


def change_bytes(path: Path, rng: random.Random) -> None:
    """Replace a few stretches, or cut the file off."""
    data = bytearray(path.read_bytes())
    if rng.random() < 0.1:
        del data[rng.randrange(len(data) + 1) :]
    for _ in range(rng.randint(1, 4)):
        place = rng.randrange(len(data) + 1)
        new = rng.choice(ODD_BYTES) if rng.random() < 0.1 else rng.randbytes(rng.randint(0, 3))
        data[place : place + rng.randint(0, 3)] = new
    path.write_bytes(bytes(data))


def change_value(path: Path, rng: random.Random) -> None:
    """Replace, drop or add something somewhere in the file's JSON."""
    lines = path.read_text().splitlines() if path.suffix == ".jsonl" else [path.read_text()]
    index = rng.randrange(len(lines))
    content = json.loads(lines[index])
    change_inside(content, rng)
    lines[index] = json.dumps(content)
    path.write_text("\n".join(lines) + "\n")


def change_yaml(path: Path, rng: random.Random) -> None:
    """The same in YAML."""
    import yaml

    content = yaml.safe_load(path.read_text())
    change_inside(content, rng)
    path.write_text(yaml.safe_dump(content))


def change_inside(content, rng: random.Random) -> None:
    """Replace or drop a value somewhere in lists and dictionaries."""
    here = content
    while True:
        keys = list(here) if isinstance(here, dict) else list(range(len(here)))
        key = rng.choice(keys)
        if isinstance(here[key], dict | list) and here[key] and rng.random() < 0.8:
            here = here[key]
            continue
        break
    if rng.random() < 0.3:
        del here[key]
    else:
        here[key] = rng.choice(ODD)


def change_lines(path: Path, rng: random.Random) -> None:
    """Shuffle, double or drop lines."""
    lines = path.read_text().splitlines(keepends=True)
    rng.choice(
        [lambda: rng.shuffle(lines), lambda: lines.append(lines[0]), lambda: lines.pop(rng.randrange(len(lines)))]
    )()
    path.write_text("".join(lines))


def change_cells(path: Path, rng: random.Random) -> None:
    """Replace, drop or add cells of a table."""
    mark = "\t" if path.suffix == ".tsv" else ","
    rows = list(csv.reader(io.StringIO(path.read_text()), delimiter=mark))
    for _ in range(rng.randint(1, 2)):
        row = rng.choice([row for row in rows if row] or [[""]])
        place = rng.randrange(len(row))
        row[place : place + rng.randint(0, 1)] = rng.choice([[rng.choice(ODD_CELLS)], [], ["a", "b"]])
    out = io.StringIO()
    csv.writer(out, delimiter=mark, lineterminator="\n").writerows(rows)
    path.write_text(out.getvalue())


def change_parquet(path: Path, rng: random.Random) -> None:
    """Drop a column, give it another type, or change one of its cells."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pq.read_table(path)
    name = rng.choice(table.column_names)
    place = table.column_names.index(name)
    how = rng.choice(["drop", "type", "cell", "cell", "rows"])
    if how == "drop":
        table = table.drop_columns([name])
    elif how == "rows":
        table = pa.concat_tables([table, table.slice(0, 1)]) if rng.random() < 0.5 else table.slice(1)
    else:
        values = table.column(name).to_pylist()
        odd = rng.choice([None, "", "x", -1, 1.5, float("nan"), float("inf"), 2**62, b"\xff", [1], {"bytes": b"no"}])
        values = [odd] * len(values) if how == "type" else [odd if not i else value for i, value in enumerate(values)]
        try:
            column = pa.array(values, None if how == "type" else table.schema.field(name).type)
        except (pa.ArrowException, OverflowError, TypeError, ValueError):
            column = pa.nulls(len(values))
        table = table.set_column(place, name, column)
    pq.write_table(table, path)


def change_arrays(path: Path, rng: random.Random) -> None:
    """Drop an array of an .npz file, or give it another shape or type."""
    with np.load(path, allow_pickle=False) as stored:
        arrays = dict(stored)
    name = rng.choice(sorted(arrays))
    odd = [np.zeros(0), np.array("x"), np.full((2, 2), np.nan), np.array(1), np.full(len(arrays[name]), np.inf)]
    arrays[name] = rng.choice(odd)
    if rng.random() < 0.3:
        del arrays[name]
    np.savez(path, **arrays)


CHANGES = {
    ".json": [change_value, change_value, change_value],
    ".jsonl": [change_value, change_value, change_lines],
    ".yaml": [change_yaml, change_yaml],
    ".csv": [change_cells, change_cells, change_lines],
    ".tsv": [change_cells, change_cells, change_lines],
    ".parquet": [change_parquet, change_parquet],
    ".npz": [change_arrays],
}


def change_file(path: Path, rng: random.Random) -> str:
    """Change a file in a way that fits its kind; what was done."""
    change = rng.choice([change_bytes, *CHANGES.get(path.suffix, [])])
    change(path, rng)
    return f"{path.name} by {change.__name__}"


def run_command(words: Sequence[str], what: str, capsys) -> int:
    """Run a command in this process: anything but success and one line that says what is wrong fails the test."""
    capsys.readouterr()
    try:
        code = main(list(words))
    except Exception as error:
        pytest.fail(f"{what}, srb {' '.join(words)}: {type(error).__name__}: {error}")
    said = capsys.readouterr().err.strip().splitlines()
    assert code in (0, 1, 2)
    assert code != 2 or len([line for line in said if line.startswith("srb ")]) == 1, (what, words, said)
    return code
