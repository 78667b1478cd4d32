"""The audio that a run reads: one kind of object for every place that `--data` can name.

- a folder that `srb build` filled: `<folder>/<config>/*.parquet`;
- the `datasets` cache, `<cache>/srb/*/*/*/*.arrow`, when there is no folder of that name;
- a Hub dataset of ours, `owner/name`, laid out like the folder;
- the authors' published data, on the Hub or in a local copy: `<their config>/<their split>-*.parquet`.

Audio is read with pyarrow and soundfile alone: the row groups of a config in turn, the other columns before them.
"""

from __future__ import annotations

import fnmatch
import hashlib
import io
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from srb.builders.audio import RATE, read
from srb.builders.errors import UserError
from srb.builders.names import parse
from srb.models import published
from srb.models.interface import Clip, did_you_mean

WINDOW_BYTES = 128 * 2**20  # of compressed audio held while its clips are sorted by length and handed out
# our column <- the first of these that the data has
COLUMNS = {
    "id": ("id",),
    "text": ("text",),
    "language": ("language",),
    "speaker": ("speaker", "speaker_id"),
    "gender": ("gender",),
    "age": ("age",),
    "accent": ("accent", "accents"),
    "duration": ("duration",),
}


@dataclass(frozen=True, slots=True)
class Row:
    """One clip of a config, without its audio."""

    position: int
    id: str
    text: str
    duration: float
    language: str | None
    speaker: str | None
    gender: str | None
    age: str | None
    accent: str | None


@dataclass(frozen=True)
class Group:
    """Rows that are read together: a parquet row group, or a record batch of an Arrow file."""

    path: Path
    index: int
    rows: int
    audio_bytes: int

    def read(self, columns: Sequence[str]) -> pa.Table:
        if self.path.suffix == ".parquet":
            with pq.ParquetFile(self.path, memory_map=True) as file:
                return file.read_row_group(self.index, columns=list(columns))
        with pa.memory_map(str(self.path)) as source:
            batch = next(batch for index, batch in enumerate(pa.ipc.open_stream(source)) if index == self.index)
            return pa.Table.from_batches([batch]).select(list(columns))


@dataclass
class Config:
    """One dataset config, wherever it lies."""

    name: str
    files: list[Path]
    manifest: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def groups(self) -> list[Group]:
        return [group for path in self.files for group in _groups(path)]

    @cached_property
    def columns(self) -> dict[str, str]:
        """Our name -> the data's name, for the columns that are there."""
        schema = _schema(self.files[0])
        found = {ours: next((name for name in names if name in schema.names), None) for ours, names in COLUMNS.items()}
        for needed in ("id", "text"):
            if not found[needed]:
                raise UserError(f"{self.files[0]}: no column '{needed}'; it has {', '.join(schema.names)}")
        return {ours: name for ours, name in found.items() if name}

    @cached_property
    def rows(self) -> list[Row]:
        """Every clip in the config's order, without audio."""
        parts = [group.read(list(self.columns.values())).to_pydict() for group in self.groups]
        columns = {ours: [value for part in parts for value in part[name]] for ours, name in self.columns.items()}
        language = parse(self.name).language if not self.columns.get("language") else None
        durations = columns.get("duration") or [frames_of(*audio) / RATE for audio in self._all_audio()]
        count = len(columns["id"])

        def column(name: str) -> list[Any]:
            return [None if v is None or v == "" else str(v) for v in columns.get(name, [None] * count)]

        ids = [str(one) for one in columns["id"]]
        if len(set(ids)) != count:
            twice = next(one for index, one in enumerate(ids) if one in ids[:index])
            raise UserError(f"{self.name}: the id '{twice}' occurs twice; predictions pair by id, so build it again")
        fields = zip(
            range(count),
            ids,
            (text or "" for text in columns["text"]),
            durations,
            (value or language for value in column("language")),
            *(column(name) for name in ("speaker", "gender", "age", "accent")),
            strict=True,
        )
        return [Row(*values) for values in fields]

    @cached_property
    def about(self) -> dict[str, Any]:
        """What the scorer needs to know of the config, from its rows, its manifest and its name."""
        first = self._first()
        name = parse(self.name)
        scenario = first.get("scenario") or name.scenario
        return {
            "language": self.rows[0].language if self.rows else name.language,
            "corpus": first.get("corpus") or name.corpus,
            "scenario": scenario,
            "severity": int(first.get("severity") or name.severity),
            "category": self.manifest.get("category") or category_of(scenario),
            "source": first.get("source") or (None if scenario == "clean" else str(name.clean)),
            "benchmark_version": self.manifest.get("benchmark_version"),
            "content_sha256": self.manifest.get("content_sha256"),
            "rows_sha256": self._rows_sha256(),
        }

    def _rows_sha256(self) -> str:
        """One hash over the ids and reference texts: tells two sets of rows apart where there is no manifest."""
        digest = hashlib.sha256()
        for row in self.rows:
            digest.update(f"{row.id}\x1f{row.text}\x1e".encode())
        return digest.hexdigest()

    def _first(self) -> dict[str, Any]:
        schema = _schema(self.files[0])
        wanted = [name for name in ("corpus", "scenario", "severity", "source") if name in schema.names]
        table = self.groups[0].read(wanted) if self.groups and wanted else None
        return table.slice(0, 1).to_pylist()[0] if table and table.num_rows else {}

    def _all_audio(self) -> Iterator[tuple[bytes | None, str | None]]:
        for group in self.groups:
            audio = group.read(["audio"]).column("audio").combine_chunks()
            for item in audio:
                yield _audio_of(item)

    def windows(self, wanted: set[int]) -> Iterator[Window]:
        """Neighbouring row groups of at most WINDOW_BYTES of audio, for the positions that are wanted."""
        start, taken = 0, 0
        groups: list[Group] = []
        position = 0
        for group in self.groups:
            if groups and taken + group.audio_bytes > WINDOW_BYTES:
                yield Window(self, groups, start, wanted)
                groups, start, taken = [], position, 0
            groups.append(group)
            taken += group.audio_bytes
            position += group.rows
        if groups:
            yield Window(self, groups, start, wanted)


@dataclass
class Window:
    """A run of row groups whose audio is in memory together, once it is asked for."""

    config: Config
    groups: list[Group]
    start: int
    wanted: set[int]

    @property
    def rows(self) -> list[Row]:
        end = self.start + sum(group.rows for group in self.groups)
        return [row for row in self.config.rows[self.start : end] if row.position in self.wanted]

    @cached_property
    def _audio(self) -> pa.ChunkedArray:
        return pa.concat_tables([group.read(["audio"]) for group in self.groups]).column("audio")

    def decode(self, row: Row) -> Clip:
        """The clip's samples at the benchmark's rate."""
        data, path = _audio_of(self._audio[row.position - self.start])
        name = f"{self.config.name}/{row.id}"
        return read(data, name=name) if data is not None else read(path or name)


class Data(Protocol):
    """A place that holds configs."""

    def names(self) -> list[str]:
        """The configs that are there, by our names."""
        ...

    def config(self, name: str) -> Config:
        """Open one of them."""
        ...


@dataclass
class Folder:
    """A built folder."""

    folder: Path

    def names(self) -> list[str]:
        return sorted({path.parent.name for path in self.folder.glob("*/*.parquet")})

    def config(self, name: str) -> Config:
        folder = self.folder / name
        manifest = folder / "manifest.json"
        return Config(
            name,
            sorted(folder.glob("*.parquet")),
            json.loads(manifest.read_text(encoding="utf-8")) if manifest.is_file() else {},
        )


@dataclass
class Cache:
    """Configs that a builder prepared into the `datasets` cache."""

    folder: Path

    @cached_property
    def _prepared(self) -> dict[str, Path]:
        """Config name -> the folder of its newest preparation. The info file knows the name; the folder adds a hash."""
        infos = sorted(self.folder.glob("*/*/*/dataset_info.json"), key=lambda info: info.stat().st_mtime)
        return {json.loads(info.read_text(encoding="utf-8"))["config_name"]: info.parent for info in infos}

    def names(self) -> list[str]:
        return sorted(self._prepared)

    def config(self, name: str) -> Config:
        folder = self._prepared[name]
        files = sorted([*folder.glob("*-test*.arrow"), *folder.glob("*-test*.parquet")])
        if not files:
            raise UserError(f"{folder}: no test split in it; build {name} again")
        return Config(name, files)


@dataclass
class Published:
    """A local copy of the authors' data, in their layout."""

    folder: Path

    @cached_property
    def _files(self) -> dict[str, list[Path]]:
        found: dict[str, list[Path]] = {}
        for path in sorted(self.folder.rglob("*.parquet")):
            if name := name_of_published(path.relative_to(self.folder).as_posix()):
                found.setdefault(name, []).append(path)
        return found

    def names(self) -> list[str]:
        return sorted(self._files)

    def config(self, name: str) -> Config:
        return Config(name, self._files[name])


@dataclass
class Hub:
    """A dataset repository on the Hub, ours or the authors'; the shards of a config are fetched when it is opened."""

    repo: str
    revision: str | None = None

    @cached_property
    def _files(self) -> dict[str, list[str]]:
        import huggingface_hub

        try:
            files = huggingface_hub.HfApi().list_repo_files(self.repo, repo_type="dataset", revision=self.revision)
        except Exception as error:
            reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
            raise UserError(
                f"--data {self.repo}: neither a folder here nor a dataset that the Hub gives ({reason})"
            ) from None
        found: dict[str, list[str]] = {}
        for file in sorted(files):
            if file.endswith(".parquet"):
                name = name_of_published(file) if self.repo == published.REPO else file.split("/")[-2]
                if name:
                    found.setdefault(name, []).append(file)
        return found

    def names(self) -> list[str]:
        return sorted(self._files)

    def config(self, name: str) -> Config:
        import huggingface_hub

        def fetch(file: str) -> Path:
            return Path(huggingface_hub.hf_hub_download(self.repo, file, repo_type="dataset", revision=self.revision))

        shards = self._files[name]
        manifest: dict[str, Any] = {}
        if self.repo != published.REPO:
            try:
                manifest = json.loads(fetch(f"{shards[0].rsplit('/', 1)[0]}/manifest.json").read_text(encoding="utf-8"))
            except huggingface_hub.errors.EntryNotFoundError:
                manifest = {}
        return Config(name, [fetch(shard) for shard in shards], manifest)


def open_data(where: str) -> Data:
    """What `--data` names: a folder of ours or of the authors, the `datasets` cache, or a dataset on the Hub."""
    folder = Path(where)
    if folder.is_dir():
        return Published(folder) if any((folder / config).is_dir() for config in _THEIR_CONFIGS) else Folder(folder)
    if re.fullmatch(r"[\w.-]+/[\w.-]+(@[\w.-]+)?", where) and not where.startswith("."):
        repo, _, revision = where.partition("@")
        return Hub(repo, revision or None)
    import datasets

    cache = Path(datasets.config.HF_DATASETS_CACHE) / where
    if not where.startswith((".", "/")) and cache.is_dir():
        return Cache(cache)
    raise UserError(
        f"--data {where}: no such folder, and nothing of that name in the datasets cache; srb build makes one"
    )


def select(data: Data, patterns: Sequence[str], where: str) -> list[str]:
    """The configs that the patterns name, in the order given, each once; no pattern means all."""
    names = data.names()
    if not names:
        raise UserError(f"--data {where}: no configs there (<config>/*.parquet); srb build makes them")
    chosen: dict[str, None] = {}
    for pattern in patterns or ["*"]:
        matching = fnmatch.filter(names, pattern)
        if not matching:
            raise UserError(f"no config '{pattern}' in {where}; {did_you_mean(pattern, names)}")
        chosen.update(dict.fromkeys(matching))
    return list(chosen)


_THEIR_CONFIGS = (*published.CORPORA, *sorted({config for config, _ in published.RECORDINGS}))


def name_of_published(path: str) -> str | None:
    """`librispeech_asr-test.clean/gnoise.1-00000-of-00001.parquet` -> `en_gaussian_sev1`."""
    *folders, file = path.split("/")
    split = re.sub(r"(-\d+-of-\d+)?\.parquet$", "", file)
    return next((name for folder in folders if (name := published.ours(folder, split))), None)


def category_of(scenario: str) -> str | None:
    """The category of a scenario in the table, None if it has no row."""
    from srb.builders import scenarios

    table = getattr(scenarios, "SCENARIOS", {})
    return table[scenario].category if scenario in table else None


def frames_of(data: bytes | None, path: str | None) -> int:
    """The length of an audio file in samples at the benchmark's rate, from its header."""
    import soundfile

    info = soundfile.info(io.BytesIO(data) if data is not None else path)
    return round(info.frames * RATE / info.samplerate)


def _audio_of(item: pa.StructScalar) -> tuple[bytes | None, str | None]:
    return item["bytes"].as_py(), item["path"].as_py()


def _groups(path: Path) -> Iterator[Group]:
    if path.suffix == ".parquet":
        with pq.ParquetFile(path, memory_map=True) as file:
            for index in range(file.num_row_groups):
                group = file.metadata.row_group(index)
                columns = (group.column(number) for number in range(group.num_columns))
                size = sum(column.total_compressed_size for column in columns if column.path_in_schema == "audio.bytes")
                yield Group(path, index, group.num_rows, size)
    else:
        with pa.memory_map(str(path)) as source:
            for index, batch in enumerate(pa.ipc.open_stream(source)):
                yield Group(path, index, batch.num_rows, batch.column("audio").field("bytes").nbytes)


def _schema(path: Path) -> pa.Schema:
    if path.suffix == ".parquet":
        return pq.read_schema(path, memory_map=True)
    with pa.memory_map(str(path)) as source:
        return pa.ipc.open_stream(source).schema
