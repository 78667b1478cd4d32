"""The columns of a row, and the rules for those that a corpus adds to them (region, domain, device, ...).

A corpus' own columns are stored as text under their names, in lower case with `_` for what is no letter or digit. A
name that SRB uses itself gets a `_` at its end, so that `source` of a corpus is `source_` in a row. Names, values and
their number are bounded: they come from outside, and are printed, published and put into pages later.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable, Mapping
from typing import Any

from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.row_text import forbidden_character

STRINGS = ("text", "language", "speaker", "gender", "age", "accent", "corpus", "licence")
COLUMNS = {
    "id": "string",
    "audio": "audio",
    **dict.fromkeys(STRINGS, "string"),
    "duration": "float64",
    "source": "string",
    "scenario": "string",
    "severity": "int32",
    "parameters": "string",
    "snr_db": "float64",
    "clipped": "int64",
    "sha256": "string",
}
QUALITY_COLUMNS = ("dnsmos_p808", "dnsmos_sig", "dnsmos_bak", "dnsmos_ovrl", "pesq")
# What `--groups` and `--by` mean by themselves, and what a line of predictions says of the recogniser.
_TAKEN = ("pitch", "dataset", "pred_text", "time", "error", "loudness_dbfs", "audio_filepath", "columns")
RESERVED = frozenset({*COLUMNS, *QUALITY_COLUMNS, *_TAKEN})
_SAME = {"sentence_domain": "domain"}  # Common Voice's name for it

MOST_COLUMNS = 64
LONGEST_NAME = 64
LONGEST_VALUE = 2_000
Columns = tuple[tuple[str, str], ...]  # of one clip: name and value of those that it has


def column_names(given: Iterable[str], where: str) -> dict[str, str]:
    """The name under which each column is stored; what cannot be is one error that says `where` it is."""
    names: dict[str, str] = {}
    for column in given:
        plain = re.sub(r"\W+", "_", unicodedata.normalize("NFKC", column)).strip("_").lower()
        if not plain:  # as the index that a data frame leaves in a CSV file
            continue
        if len(plain) > LONGEST_NAME:
            raise UserError(f"{where}: the column '{plain[:40]}...' has a name of more than {LONGEST_NAME} characters")
        name = f"{plain}_" if plain in RESERVED else plain
        if name in names.values():
            raise UserError(f"{where}: two of its columns would both be called '{name}'; rename one of them")
        names[column] = name
    for name, same in _SAME.items():
        if name in names.values() and same not in names.values():
            names = {column: same if stored == name else stored for column, stored in names.items()}
    if len(names) > MOST_COLUMNS:
        raise UserError(
            f"{where}: has {len(names)} columns beside those that SRB knows; at most {MOST_COLUMNS} go along"
        )
    return names


def column_values(row: Mapping[str, Any], names: Mapping[str, str]) -> Columns:
    """The plain values that a row has, as text; lists and objects are no label and stay behind."""
    texts = ((name, _text(row.get(column))) for column, name in names.items())
    return tuple((name, text) for name, text in texts if text is not None)


def _text(value: Any) -> str | None:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and math.isnan(value):
        return None
    return str(value).strip() or None if isinstance(value, str | int | float) else None


def column_problem(columns: Columns) -> str | None:
    """Why the values of a clip may not stand in a row."""
    for name, value in columns:
        if character := forbidden_character(value):
            return f"its {name} has the control character {character}"
        if len(value) > LONGEST_VALUE:
            return f"its {name} is longer than {LONGEST_VALUE} characters"
    return None
