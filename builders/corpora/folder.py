"""Anyone's own recordings: a folder of audio files, each with a .txt of the same name, or with one manifest.

A manifest is a CSV, TSV or JSONL file with a column for the audio (`audio`, `path`, `file`, ...) and one for the text
(`text`, `transcript`, `sentence`, ...); the names are those that common tools and corpora write. Other columns that it
may have: id, language, speaker, gender, age, accent, licence, start, end. Any other column is kept under its name.

The built-in demo corpus: 48 English and 12 Spanish clips that come with the package (see builders/data/demo).
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from speech_robust_bench.builders.corpora.base import (
    AUDIO_SUFFIXES,
    CorpusInfo,
    FileAudio,
    Problem,
    Utterance,
    gender,
    known,
)
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.rows import Columns, RowDict, column_names, column_values

# field of an utterance -> the columns that hold it, in the order in which they are tried
COLUMNS: dict[str, tuple[str, ...]] = {
    "audio": ("audio", "audio_filepath", "audio_path", "path", "file", "file_name", "filename", "wav"),
    "text": ("text", "transcript", "sentence", "transcription", "reference", "normalized_text", "raw_text"),
    "id": ("id", "utterance_id", "utt_id", "segment_id", "audio_id"),
    "speaker": ("speaker", "speaker_id", "client_id"),
    "gender": ("gender", "sex"),
    "age": ("age",),
    "accent": ("accent", "accents"),
    "language": ("language", "lang", "locale"),
    "licence": ("licence", "license"),
    "start": ("start", "start_s", "start_time", "offset"),
    "end": ("end", "end_s", "end_time"),
    "duration": ("duration",),
}
# where the audio is, and not what it is: never a column of the corpus' own
_PLACES = {name for field in ("audio", "id", "start", "end", "duration") for name in COLUMNS[field]}
LONGEST_S = 1_000_000  # of a recording that clips are cut from: eleven days
_DELIMITERS = {".csv": ",", ".tsv": "\t"}
_MANIFESTS = (*_DELIMITERS, ".jsonl", ".json")


def info(name: str) -> CorpusInfo:
    """A user's own corpus: nothing is known about its terms, so what is built from it stays local."""
    return CorpusInfo(
        name=name,
        title=f"{name} (a local corpus)",
        licence="unknown",
        url="",
        citation="",
        get="audio files with .txt transcripts of the same name, or a CSV, TSV or JSONL manifest",
        derivatives_allowed=False,
    )


def read(root: Path, language: str) -> Iterator[Utterance | Problem]:
    """A manifest file, a folder with a manifest, or a folder of audio and .txt files."""
    if root.is_file():
        return read_manifest(root, language)
    manifests = sorted(path for path in root.iterdir() if path.suffix.lower() in _MANIFESTS)
    if len(manifests) > 1:
        names = ", ".join(path.name for path in manifests)
        raise UserError(f"{root} has several manifests ({names}); give the path of the one to read")
    return read_manifest(manifests[0], language) if manifests else _read_pairs(root, language)


def read_manifest(manifest: Path, language: str) -> Iterator[Utterance | Problem]:
    """The utterances that a manifest lists; its audio paths are relative to its folder."""
    rows = _rows(manifest)
    if not rows:
        raise UserError(f"{manifest}: the manifest is empty")
    columns = pick_columns(dict.fromkeys(name for _, row in rows for name in row))  # JSON rows may differ in theirs
    if "audio" not in columns:
        raise UserError(f"{manifest}: no audio column; it may be called {', '.join(COLUMNS['audio'])}")
    others = other_columns(dict.fromkeys(name for _, row in rows for name in row), columns, str(manifest))
    for line, row in rows:
        path = known(row.get(columns["audio"]))
        if path is None:
            yield Problem(f"{manifest}:{line}", "names no audio file")
        elif not (manifest.parent / path).is_file():
            yield Problem(str(manifest.parent / path), f"no such file ({manifest.name}, line {line})")
        else:
            values = {field: row.get(column) for field, column in columns.items()}
            try:
                start, end, duration = (_seconds(values.get(field)) for field in ("start", "end", "duration"))
            except ValueError as error:
                yield Problem(f"{manifest}:{line}", f"start and end must be seconds ({error})")
                continue
            if start is not None and end is None and duration is not None:
                end = start + duration  # as NeMo's manifests say it
            stem = Path(path).with_suffix("").as_posix()
            suffix = "" if start is None else f"-{round(start * 100):07}"
            source = FileAudio(str(manifest.parent / path), start or 0.0, end)
            yield utterance(values, source, values.get("id") or stem + suffix, language, column_values(row, others))


def pick_columns(row: Iterable[str]) -> dict[str, str]:
    """Which column holds which field."""
    lowered = {name.strip().lower(): name for name in row if name}
    picked = {}
    for field, names in COLUMNS.items():
        column = next((lowered[name] for name in names if name in lowered), None)
        if column is not None:
            picked[field] = column
    return picked


def other_columns(row: Iterable[str], picked: Mapping[str, str], where: str) -> dict[str, str]:
    """The columns that hold no field of an utterance, each with the name that it has in rows."""
    taken = set(picked.values())
    return column_names((n for n in row if n and n not in taken and n.strip().lower() not in _PLACES), where)


def utterance(
    values: Mapping[str, Any], source: Any, clip_id: object, language: str, columns: Columns = ()
) -> Utterance:
    """An utterance from a row whose columns have been given their fields' names."""
    return Utterance(
        id=str(clip_id),
        audio=source,
        text=str(values.get("text") or "").strip() or None,
        language=known(values.get("language")) or language,
        speaker=known(values.get("speaker")),
        gender=gender(values.get("gender")),
        age=known(values.get("age")),
        accent=known(values.get("accent")),
        licence=known(values.get("licence")) or "",
        columns=columns,
    )


def _rows(manifest: Path) -> list[tuple[int, RowDict]]:
    """Each row with its line number."""
    try:
        return list(_read_rows(manifest))
    except UnicodeDecodeError:
        raise UserError(f"{manifest}: not UTF-8 text") from None
    except csv.Error as error:
        raise UserError(f"{manifest}: not a table that can be read ({error})") from None


def _read_rows(manifest: Path) -> Iterator[tuple[int, RowDict]]:
    with manifest.open(newline="", encoding="utf-8-sig") as file:
        delimiter = _DELIMITERS.get(manifest.suffix.lower())
        if delimiter:
            # A tab-separated file has no quoting: sentences in Common Voice hold stray quotation marks.
            if delimiter == ",":
                reader = csv.DictReader(file)
            else:
                reader = csv.DictReader(file, delimiter=delimiter, quoting=csv.QUOTE_NONE)
            yield from ((reader.line_num, row) for row in reader)
        else:
            for number, line in enumerate(file, 1):
                if line.strip():
                    try:
                        row = json.loads(line)
                    except (ValueError, RecursionError):  # also a number of thousands of digits
                        row = None
                    if not isinstance(row, dict):
                        raise UserError(
                            f"{manifest}:{number}: not a JSON object; a JSONL manifest has one on each line"
                        )
                    yield number, row


def _read_pairs(root: Path, language: str) -> Iterator[Utterance | Problem]:
    files = sorted(path for path in root.rglob("*") if path.is_file())
    transcripts = {path.with_suffix(""): path for path in files if path.suffix.lower() == ".txt"}
    recordings = [path for path in files if path.suffix.lower() in AUDIO_SUFFIXES]
    if not recordings:
        raise UserError(f"{root}: no audio files here, and no manifest (.csv, .tsv or .jsonl) that lists any")
    for path in recordings:
        transcript = transcripts.get(path.with_suffix(""))
        clip_id = path.relative_to(root).with_suffix("").as_posix()
        if not transcripts:  # nobody has transcribed any of it
            yield Utterance(clip_id, FileAudio(str(path)), None, language)
            continue
        if transcript is None:
            yield Problem(str(path), "audio without a transcript (a .txt file of the same name)")
            continue
        try:
            text = " ".join(transcript.read_text(encoding="utf-8-sig").split())
        except UnicodeDecodeError:
            yield Problem(str(transcript), "not UTF-8 text")
        else:
            yield Utterance(clip_id, FileAudio(str(path)), text, language)
    named = {path.with_suffix("") for path in recordings}
    for stem, path in transcripts.items():
        if stem not in named:  # a README.txt beside the data is reported too: better one line too many than a lost clip
            yield Problem(str(path), "transcript without audio")


def _seconds(value: object) -> float | None:
    if known(value) is None:
        return None
    seconds = float(str(value))
    if not 0 <= seconds <= LONGEST_S:
        raise ValueError(f"{seconds:g} is not between 0 and {LONGEST_S}")
    return seconds


DEMO_FOLDER = Path(__file__).parent.parent / "data" / "demo"

DEMO = CorpusInfo(
    name="demo",
    title="The demo corpus of Speech Robust Bench",
    licence="Apache-2.0 AND MIT AND MIT-Festival",
    url="",
    citation="",
    get="it comes with this package",
    note="Mostly synthetic: 8 clips are a human reading, 52 are spoken by text-to-speech voices. It is there to show "
    "and to test, not to rank.",
)


def read_demo(root: Path, language: str) -> Iterator[Utterance | Problem]:
    """The clips of one language, the first of every voice, then the second, ...: a few of them are a fair sample."""
    lines = list(read_manifest(root / "manifest.csv", language))
    clips = [item for item in lines if isinstance(item, Utterance) and item.language == language]
    yield from (item for item in lines if isinstance(item, Problem))
    for clip in sorted(clips, key=lambda clip: (clip.id.rpartition("-")[2], clip.id)):
        yield replace(clip, columns=())  # the manifest's `kind` is there for those who make the corpus
