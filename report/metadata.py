"""What is known of models beside their scores, from a CSV file: parameters, hours of training, architecture, family."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from pathlib import Path

from speech_robust_bench.core.csv_tables import csv_rows, read_text
from speech_robust_bench.core.errors import UserError

COLUMNS = {
    "model": ("model", "name"),
    "parameters": ("parameters", "params", "size"),
    "hours": ("hours", "training_hours", "data_hours"),
    "architecture": ("architecture", "arch", "type"),
    "family": ("family",),
}
_UNITS = {"": 1.0, "k": 1e3, "m": 1e6, "b": 1e9, "g": 1e9}


@dataclass(frozen=True)
class About:
    """One line of the file; None where it says nothing."""

    parameters: float | None = None
    hours: float | None = None
    architecture: str | None = None
    family: str | None = None


def read(path: str | Path) -> dict[str, About]:
    """Model -> what is known about it. `244M` and `1.5B` are understood."""
    lines = [row for _, row in csv_rows(read_text(path), (), path)]
    if not lines or _value(lines[0], "model") is None:
        raise UserError(f"--meta {path}: no column 'model'; its columns are {', '.join(COLUMNS)}")
    return {
        str(_value(line, "model")): About(
            _number(path, _value(line, "parameters")),
            _number(path, _value(line, "hours")),
            _value(line, "architecture"),
            _value(line, "family"),
        )
        for line in lines
    }


def _value(line: dict[str, str], column: str) -> str | None:
    lower = {key.lower(): value for key, value in line.items()}
    text = next((lower[name] for name in COLUMNS[column] if lower.get(name)), None)
    return text.strip() or None if text else None


def _number(path: str | Path, text: str | None) -> float | None:
    if text is None:
        return None
    match = re.fullmatch(r"([0-9][0-9_,]*\.?[0-9]*(?:e[0-9]+)?)\s*([kmbg]?)", text.lower())
    value = float(re.sub("[_,]", "", match[1])) * _UNITS[match[2]] if match else 0.0
    if not 0 < value < math.inf:
        raise UserError(f"--meta {path}: '{text}' is not a positive number such as 244M or 680000")
    return value
