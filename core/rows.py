"""The columns of a row that a corpus brings, the text in it, and the hash of its content."""

from __future__ import annotations

import hashlib
import math
import re
import unicodedata
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from speech_robust_bench.core.errors import UserError

RowDict = dict[str, Any]  # a row as `datasets` and pyarrow have it: a value for each column
Parameters = dict[str, Any]  # what was drawn for a clip, as its row says it
_NO_TEXT = "\x00"  # what stands for a transcript that is not known; no text of a row has the character


def row_digest(clip_id: str, text: str | None, pcm: np.ndarray) -> str:
    """Hash of what a recogniser and a scorer see: id, transcript and 16-bit samples, however they are encoded."""
    digest = hashlib.sha256(f"{clip_id}\x1f{_NO_TEXT if text is None else text}\x1f".encode())
    digest.update(np.ascontiguousarray(pcm, dtype="<i2").data)
    return digest.hexdigest()


def content_digest(row_digests: Iterable[str]) -> str:
    """Hash of a config (`content_sha256`): of its rows' hashes, in order."""
    return hashlib.sha256("".join(row_digests).encode()).hexdigest()


def transcripts_digest(pairs: Iterable[tuple[str, str | None]]) -> str:
    """Hash over the ids and transcripts of a config's rows, in order (`rows_sha256`): it needs no audio."""
    digest = hashlib.sha256()
    for clip_id, text in pairs:
        digest.update(f"{clip_id}\x1f{_NO_TEXT if text is None else text}\x1e".encode())
    return digest.hexdigest()


# characters, of each field of a row that comes from a corpus
LONGEST = {
    "id": 300,
    "text": 200_000,  # of a meeting of an hour: some 60,000
    "language": 35,
    "speaker": 200,
    "gender": 100,
    "age": 100,
    "accent": 300,
    "licence": 300,
}
FORBIDDEN = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def forbidden_character(text: str) -> str | None:
    """The first character that may not stand in a row, as `U+001B`; None where there is none."""
    match = FORBIDDEN.search(text)
    return f"U+{ord(match[0]):04X}" if match else None


# Between the transcripts of two people who talk at once: serialised output training (Kanda et al. 2020) writes it so.
TALKER_CHANGE = "<sc>"


def talkers(text: str) -> tuple[str, str]:
    """The transcripts of two talkers, taken apart; the second is empty where there is one. Further marks are dropped.

    >>> talkers("good morning <sc> is it you"), talkers("good morning")
    (('good morning', 'is it you'), ('good morning', ''))
    """
    first, _, second = text.partition(TALKER_CHANGE)
    return one_talker(first).strip(), one_talker(second).strip()


def one_talker(text: str) -> str:
    """A text without the mark between talkers."""
    return text.replace(TALKER_CHANGE, " ") if TALKER_CHANGE in text else text


def join_talkers(*texts: str) -> str:
    """What several talkers said as one text; those who said nothing leave no mark.

    >>> join_talkers("good morning", "", "is it you")
    'good morning <sc> is it you'
    """
    return f" {TALKER_CHANGE} ".join(text for text in texts if text.strip())


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
    stored: set[str] = set()
    for column in given:
        plain = re.sub(r"\W+", "_", unicodedata.normalize("NFKC", column)).strip("_").lower()
        if not plain:  # as the index that a data frame leaves in a CSV file
            continue
        if len(plain) > LONGEST_NAME:
            raise UserError(f"{where}: the column '{plain[:40]}...' has a name of more than {LONGEST_NAME} characters")
        name = f"{plain}_" if plain in RESERVED else plain
        if name in stored:
            raise UserError(f"{where}: two of its columns would both be called '{name}'; rename one of them")
        names[column] = name
        stored.add(name)
    for name, same in _SAME.items():
        if name in stored and same not in stored:
            names = {column: same if other == name else other for column, other in names.items()}
    if len(names) > MOST_COLUMNS:
        raise UserError(
            f"{where}: has {len(names)} columns beside those that SRB knows; at most {MOST_COLUMNS} go along"
        )
    return names


def column_values(row: Mapping[str, Any], names: Mapping[str, str]) -> Columns:
    """The plain values that a row has, as text; lists and objects are not labels and are left out."""
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
