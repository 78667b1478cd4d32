"""Tables and lists that a user gives: what cannot be read is one line that names the file and what it should hold."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from pathlib import Path

from speech_robust_bench.core.errors import UserError

MOST_BYTES = 50_000_000


def read_text(path: str | Path, most_bytes: int = MOST_BYTES) -> str:
    """The content of a text file in UTF-8, with or without a byte order mark."""
    try:
        with Path(path).open("rb") as file:
            data = file.read(most_bytes + 1)  # a device has no size, and no end
        if len(data) > most_bytes:
            raise UserError(f"cannot read {path}: it is larger than {most_bytes} bytes")
        return data.decode("utf-8-sig")
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UserError(f"cannot read {path}: not UTF-8 text") from None


def csv_cells(text: str, where: str | Path) -> list[tuple[int, list[str]]]:
    """The rows of a CSV text, each with the number of its line."""
    reader = csv.reader(io.StringIO(text, newline=""))
    try:
        return [(reader.line_num, row) for row in reader]
    except csv.Error as error:
        raise UserError(f"cannot read {where}: line {reader.line_num} is not CSV ({error})") from None


def csv_rows(text: str, columns: Sequence[str], where: str | Path) -> list[tuple[int, dict[str, str]]]:
    """The rows of a CSV text by the names in its first line, which has all of `columns`; with the number of each line.

    A row that is too short has empty cells at its end.
    """
    cells = csv_cells(text, where)
    head = [name.strip() for name in cells[0][1]] if cells else []
    if lacking := next((column for column in columns if column not in head), None):
        raise UserError(f"cannot read {where}: it has no column '{lacking}'; its columns are {', '.join(columns)}")
    return [(line, dict(zip(head, [*row, *[""] * len(head)], strict=False))) for line, row in cells[1:] if row]


def finite(text: str, where: str) -> float:
    """A cell as a finite number."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise UserError(f"{where}: '{text[:40]}' is not a number")
    return value


def whole(text: str, where: str) -> int:
    """A cell as a whole number that other programs can hold too."""
    value = finite(text, where)
    if value != int(value) or abs(value) > 2**53:
        raise UserError(f"{where}: '{text[:40]}' is not a whole number")
    return int(value)
