"""Anyone's own recordings: a folder, a manifest or a Hugging Face dataset; and the built-in demo corpus.

A folder holds audio files, each with a .txt of the same name, or one manifest: a CSV, TSV or JSONL file with a column
for the audio (`audio`, `path`, `file`, ...) and one for the text (`text`, `transcript`, `sentence`, ...); the names are
those that common tools and corpora write. Other columns that it may have: id, language, speaker, gender, age, accent,
licence, start, end. Any other column is kept under its name.

A Hugging Face dataset has an audio and a text column, in a folder (`save_to_disk` or parquet) or under a Hub id. Audio
is never decoded by `datasets` (that needs torchcodec): the column is read as encoded bytes. A dataset that lies in
Arrow files is referred to by file and row, so that a list of utterances stays small and each worker maps the file
itself; a streamed one carries its bytes.

The demo corpus: 48 English and 12 Spanish clips that come with the package (see builders/data/demo).
"""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from speech_robust_bench.builders.corpora.base import (
    AUDIO_SUFFIXES,
    Audio,
    BytesAudio,
    CorpusInfo,
    FileAudio,
    Problem,
    Utterance,
    gender,
    known,
)
from speech_robust_bench.core.audio import Samples
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.extensions import LazyModule
from speech_robust_bench.core.files import check_tree
from speech_robust_bench.core.rows import Columns, RowDict, column_names, column_values

if TYPE_CHECKING:
    import datasets
else:
    datasets = LazyModule("datasets")


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


_PREFIXES = {"hf": False, "hf-stream": True}


@dataclass(frozen=True)
class HubSpec:
    """`hf:<id or folder>[:config][:split]`, taken apart."""

    path: str
    config: str | None = None
    split: str | None = None
    streaming: bool = False
    follow_links: bool = False  # of a folder: read files that lie elsewhere


@dataclass(frozen=True, slots=True)
class ArrowAudio:
    """The audio of one row of an Arrow file."""

    path: str
    row: int
    column: str

    @property
    def name(self) -> str:
        return f"{self.path}, row {self.row}"

    def load(self) -> Samples:
        value = _table(self.path).column(self.column)[self.row].as_py()
        return BytesAudio(value["bytes"], value.get("path") or self.name).load()


def parse_hub(source: str) -> HubSpec | None:
    """The dataset that a `--corpus` value names, None where it is a path."""
    prefix, _, rest = source.partition(":")
    if prefix not in _PREFIXES:
        return None
    path, config, split = (*rest.split(":"), "", "")[:3]
    if rest.count(":") > 2:
        raise UserError(f"{source}: write hf:<dataset>[:config][:split]")
    return HubSpec(path, config or None, split or None, _PREFIXES[prefix])


def read_hub(spec: HubSpec, language: str) -> Iterator[Utterance | Problem]:
    """One utterance per row."""
    folder = Path(spec.path).expanduser()
    if folder.is_dir():
        check_tree(folder, spec.follow_links)
    dataset = _load(spec)
    features = dataset.features or {}
    columns = pick_columns(features)
    column = _audio_column(features)
    if column is None:
        raise UserError(f"{spec.path}: needs an audio column; it has {', '.join(features) or 'none that are known'}")
    names = {
        field: name for field, name in columns.items() if name != column and field not in ("audio", "start", "end")
    }
    others = other_columns((name for name in features if name != column), columns, spec.path)
    roots = _own_folders(spec)
    sources = _streamed(dataset, column, roots) if spec.streaming else _stored(dataset, column, roots)
    for number, (row, source) in enumerate(sources):
        if isinstance(source, Problem):
            yield replace(source, where=f"{spec.path}, row {number}")
            continue
        row |= _class_names(row, features)
        values = {field: row.get(name) for field, name in names.items()}
        clip_id = values.get("id") or _stem(row) or f"{spec.split or 'test'}-{number:06}"
        yield utterance(values | {"language": language}, source, clip_id, language, column_values(row, others))


def _class_names(row: RowDict, features: Any) -> dict[str, str | None]:
    """The values of columns of classes (`ClassLabel`), which are numbers, by name; -1 stands for none."""
    classes = {name: feature.names for name, feature in features.items() if hasattr(feature, "int2str")}
    numbers = {name: row.get(name) for name in classes}
    return {n: classes[n][i] if i is not None and 0 <= i < len(classes[n]) else None for n, i in numbers.items()}


def _load(spec: HubSpec) -> Any:
    folder = Path(spec.path).expanduser()
    split = spec.split or "test"
    try:
        if (folder / "state.json").is_file() or (folder / "dataset_dict.json").is_file():
            loaded = datasets.load_from_disk(os.fspath(folder))
            if not isinstance(loaded, datasets.DatasetDict):
                return loaded.to_iterable_dataset() if spec.streaming else loaded
            if split not in loaded:
                raise UserError(f"{spec.path} has no split '{split}'; it has {', '.join(loaded)}")
            return loaded[split].to_iterable_dataset() if spec.streaming else loaded[split]
        where = os.fspath(folder) if folder.is_dir() else spec.path
        return datasets.load_dataset(where, spec.config, split=split, streaming=spec.streaming)
    except UserError:
        raise
    except (OSError, ValueError, RuntimeError) as error:  # what `datasets` raises for a wrong name, split or connection
        reason = " ".join(str(error).split())[:300]
        raise UserError(f"the dataset {spec.path} cannot be opened: {reason}") from None


def _audio_column(features: Any) -> str | None:
    typed = [name for name, feature in features.items() if isinstance(feature, datasets.Audio)]
    return typed[0] if typed else "audio" if "audio" in features else None


def _own_folders(spec: HubSpec) -> list[Path]:
    """Where the files of a dataset may lie: in its folder, or in the caches that its download went to."""
    from huggingface_hub import constants

    folder = Path(spec.path).expanduser()
    if folder.is_dir():
        return [folder.resolve(), *([Path(folder.anchor or "/")] if spec.follow_links else [])]
    caches = (datasets.config.HF_DATASETS_CACHE, datasets.config.DOWNLOADED_DATASETS_PATH, constants.HF_HUB_CACHE)
    return [Path(cache).resolve() for cache in caches]


def _stored(dataset: Any, column: str, roots: Sequence[Path]) -> Iterator[tuple[RowDict, Audio | Problem]]:
    """Rows and where their audio is, without reading any of it."""
    import pyarrow.compute

    places = _places(dataset, column)
    if places is None:
        yield from _streamed(dataset, column, roots)
        return
    values = _undecoded(dataset, column).data.column(column)
    paths = pyarrow.compute.struct_field(values, "path").to_pylist()
    has_bytes = pyarrow.compute.struct_field(values, "bytes").is_valid().to_pylist()
    for number, row in enumerate(dataset.remove_columns(column)):
        source = places[number] if has_bytes[number] else _source({"path": paths[number]}, str(number), roots)
        yield {"path": paths[number], **row}, source


def _streamed(dataset: Any, column: str, roots: Sequence[Path]) -> Iterator[tuple[RowDict, Audio | Problem]]:
    for number, row in enumerate(_undecoded(dataset, column)):
        value = row.pop(column) or {}
        yield {"path": value.get("path"), **row}, _source(value, str(number), roots)


def _source(value: RowDict, name: str, roots: Sequence[Path]) -> Audio | Problem:
    """The audio of a `{"bytes", "path"}` value: its bytes, or a file of the dataset's own."""
    if value.get("bytes"):
        return BytesAudio(value["bytes"], value.get("path") or name)
    if not value.get("path"):
        return Problem(name, "no audio")
    path = (roots[0] / value["path"]).resolve()
    if not any(path.is_relative_to(root) for root in roots):
        return Problem(name, f"its audio path lies outside the dataset, so it is not read: {value['path']}")
    if not path.is_file():
        return Problem(name, f"no such file: {value['path']}")
    return FileAudio(str(path))


def _undecoded(dataset: Any, column: str) -> Any:
    feature = (dataset.features or {}).get(column)
    return dataset.cast_column(column, datasets.Audio(decode=False)) if isinstance(feature, datasets.Audio) else dataset


def _places(dataset: Any, column: str) -> list[Audio] | None:
    """File and row of every row's audio; None where the dataset is in memory, filtered or shuffled."""
    files = [file["filename"] for file in dataset.cache_files]
    if not files or dataset._indices is not None:
        return None
    places: list[Audio] = [ArrowAudio(file, row, column) for file in files for row in range(len(_table(file)))]
    return places if len(places) == len(dataset) else None


@lru_cache(maxsize=8)
def _table(path: str) -> Any:
    import pyarrow

    return pyarrow.ipc.open_stream(pyarrow.memory_map(path)).read_all()


def _stem(row: RowDict) -> str | None:
    path = row.get("path") or row.get("file")
    return Path(path).stem if isinstance(path, str) and path else None
