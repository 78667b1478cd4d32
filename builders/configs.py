"""Dataset configs as everything that reads them sees them: the clips in order, what is known of each, and their audio.

A config is stored, in parquet or Arrow files, or perturbed on the fly (`live_config`). Stored audio is read with
pyarrow and soundfile alone: the row groups of a config in turn, the other columns before them.
"""

from __future__ import annotations

import io
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.parquet as pq
import soundfile

from speech_robust_bench.builders.scenarios import SCENARIOS
from speech_robust_bench.core.audio import RATE, Samples, read
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.files import path_inside
from speech_robust_bench.core.names import is_language_code, parse
from speech_robust_bench.core.records import ConfigData, Manifest, SpeakerTurn
from speech_robust_bench.core.rows import (
    RESERVED,
    Columns,
    Parameters,
    column_names,
    column_problem,
    column_values,
    content_digest,
    transcripts_digest,
)
from speech_robust_bench.core.untrusted_files import damage_named, read_row_group, read_schema


@dataclass(frozen=True, slots=True)
class ClipRow:
    """One clip of a config, without its audio."""

    position: int
    id: str
    text: str | None  # None where nobody has transcribed the clip
    duration: float
    language: str | None
    speaker: str | None
    gender: str | None
    age: str | None
    accent: str | None
    facts: Mapping[str, Any] = field(default_factory=dict)  # of how the clip was made, told to the prediction
    columns: Columns = ()  # what else the corpus says: region, domain, device, ...


class Window(Protocol):
    """Some clips of a config whose audio is in memory together."""

    @property
    def rows(self) -> Sequence[ClipRow]: ...

    def decode(self, row: ClipRow) -> Samples:
        """The clip's samples at the benchmark's rate; the error of a clip that has none is raised here."""


class Config(Protocol):
    """One dataset config, wherever its audio comes from."""

    @property
    def name(self) -> str: ...

    @property
    def rows(self) -> list[ClipRow]:
        """Every clip in the config's order."""

    @property
    def about(self) -> ConfigData:
        """What run.json says of the config and a score depends on."""

    def content_sha256(self, known: ConfigData, changed: bool) -> str | None:
        """The hash of the config's content, if it can be known.

        `known` is what run.json has of an earlier run, `changed` whether this one transcribed anything.
        """

    def stored_audio(self, ids: set[str]) -> list[tuple[str, bytes]]:
        """The FLAC files of some clips, as the config stores them."""

    def windows(self, wanted: set[int]) -> Iterator[Window]:
        """The clips at the wanted positions, some at a time."""


class ConfigSource(Protocol):
    """A place that holds configs."""

    def names(self) -> list[str]:
        """The configs that are there, by our names."""

    def config(self, name: str) -> Config:
        """Open the config of that name."""


def clip_facts(names: Iterable[str], value_of: Callable[[str], Any]) -> dict[str, str]:
    """What the prediction of a row is told of how its clip was made (`Scenario.facts`): lists of places, as texts."""
    values = {name: value_of(name) for name in names}
    return {
        name: " ".join(str(int(v)) for v in value) for name, value in values.items() if isinstance(value, list | tuple)
    }


def reference_turns(segments: Iterable[Sequence[Any]]) -> dict[str, list[SpeakerTurn]]:
    """Who spoke when in a recording (start, end, speaker, text), where that were several people."""
    turns = [SpeakerTurn(str(speaker), start, end, text) for start, end, speaker, text in segments if speaker]
    return {"turns": turns} if len({turn.speaker for turn in turns}) > 1 else {}


def category_of(scenario: str) -> str | None:
    """The category of a scenario in the table, None if it has no row."""
    return SCENARIOS[scenario].category if scenario in SCENARIOS else None


WINDOW_BYTES = 128 * 2**20  # of compressed audio held while its clips are sorted by length
MOST_TEXT_BYTES = 500_000_000  # of a config's other columns, in memory
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
ATTACK_FACTS = ("target", "snr_db", "above_threshold")  # of a row of an adversarial config, told to its prediction
_NOT_LABELS = ("file", "path")  # of the authors' data: where a clip was


@dataclass(frozen=True)
class Group:
    """Rows that are read together: a parquet row group, or a record batch of an Arrow file."""

    path: Path
    index: int
    rows: int
    audio_bytes: int

    def read(self, columns: Sequence[str], most_bytes: int | None = None) -> pa.Table:
        with damage_named(self.path):
            return self._read(columns, most_bytes)

    def values(self, columns: Sequence[str]) -> dict[str, list[Any]]:
        """Some columns as plain values."""
        with damage_named(self.path):
            return self._read(columns).to_pydict()

    def _read(self, columns: Sequence[str], most_bytes: int | None = None) -> pa.Table:
        if self.path.suffix == ".parquet":
            with pq.ParquetFile(self.path, memory_map=True) as file:
                return read_row_group(file, self.path, self.index, columns, most_bytes)
        with pa.memory_map(str(self.path)) as source:
            batch = next(batch for index, batch in enumerate(pa.ipc.open_stream(source)) if index == self.index)
            return pa.Table.from_batches([batch]).select(list(columns))


@dataclass
class StoredConfig:
    """One dataset config in parquet or Arrow files, wherever they lie."""

    name: str
    files: list[Path]
    manifest: Manifest | None = None

    @cached_property
    def groups(self) -> list[Group]:
        return [group for path in self.files for group in _groups(path)]

    @cached_property
    def columns(self) -> dict[str, str]:
        """Our name -> the data's name, for the columns that are there."""
        schema = _schema(self.files[0])
        present = {own: next((name for name in names if name in schema.names), None) for own, names in COLUMNS.items()}
        if not present["id"]:
            raise UserError(f"{self.files[0]}: no column 'id'; it has {', '.join(schema.names)}")
        return {own: name for own, name in present.items() if name}

    @cached_property
    def own_columns(self) -> dict[str, str]:
        """The columns of text that the corpus added: the data's name -> own."""
        schema = _schema(self.files[0])
        known = {*RESERVED, *(name for names in COLUMNS.values() for name in names), *_NOT_LABELS}
        texts = (f.name for f in schema if pa.types.is_string(f.type) or pa.types.is_large_string(f.type))
        return column_names((name for name in texts if name not in known), self.name)

    def _values(self, columns: Sequence[str]) -> list[dict[str, list[Any]]]:
        """Some columns of every row group as plain values; none of them is the audio."""
        parts, total = [], 0
        for group in self.groups:
            table = group.read(columns, MOST_TEXT_BYTES)
            total += table.nbytes
            if total > MOST_TEXT_BYTES:
                raise UserError(f"{self.name}: its rows hold more than {MOST_TEXT_BYTES / 1e6:g} MB beside the audio")
            with damage_named(group.path):
                parts.append(table.to_pydict())
        return parts

    def _own(self) -> list[Columns]:
        """What the corpus added about each clip; nothing from outside is trusted, so it is checked here too."""
        parts = self._values(list(self.own_columns))
        rows = (dict(zip(part, row, strict=True)) for part in parts for row in zip(*part.values(), strict=True))
        columns = [column_values(row, self.own_columns) for row in rows]
        if wrong := next(filter(None, map(column_problem, columns)), None):
            raise UserError(f"{self.name}: a row cannot be used, {wrong}; build it again")
        return columns

    @cached_property
    def rows(self) -> list[ClipRow]:
        """Every clip in the config's order, without audio."""
        self._check_content()
        parts = self._values(list(self.columns.values()))
        columns = {own: [value for part in parts for value in part[name]] for own, name in self.columns.items()}
        language = parse(self.name).language if not self.columns.get("language") else None
        durations = columns.get("duration") or [frames_of(audio) / RATE for audio in self._all_audio()]
        if not all(isinstance(value, int | float) and 0 <= value < math.inf for value in durations):
            raise UserError(f"{self.name}: a duration is not a number of seconds; build it again")
        count = len(columns["id"])

        def column(name: str) -> list[Any]:
            return [None if v is None or v == "" else str(v) for v in columns.get(name, [None] * count)]

        if None in columns["id"]:
            raise UserError(f"{self.name}: a row has no id; predictions pair by id, so build it again")
        ids = [str(value) for value in columns["id"]]
        if len(set(ids)) != count:
            twice = next(value for index, value in enumerate(ids) if value in ids[:index])
            raise UserError(f"{self.name}: the id '{twice}' occurs twice; predictions pair by id, so build it again")
        languages = [value or language for value in column("language")]
        for code in set(filter(None, languages)):
            if not is_language_code(code):  # it is told to recognisers, some of which are commands or servers
                raise UserError(f"{self.name}: {code[:40]!r} in its language column is not a language code")
        fields = zip(
            range(count),
            ids,
            (None if text is None else str(text) for text in columns.get("text", [None] * count)),
            durations,
            languages,
            *(column(name) for name in ("speaker", "gender", "age", "accent")),
            self._facts() or [{}] * count,
            self._own() if self.own_columns else [()] * count,
            strict=True,
        )
        return [ClipRow(*values) for values in fields]

    def _check_content(self) -> None:
        """Refuse rows that are not those of the manifest, as shards of another edition: run.json notes its hash."""
        expected = self.manifest.content_sha256 if self.manifest else None
        if not expected or "sha256" not in _schema(self.files[0]).names:
            return
        digests = [str(value) for part in self._values(["sha256"]) for value in part["sha256"]]
        if content_digest(digests) != expected:
            raise UserError(f"{self.name}: its rows are not those that its manifest was written for; build it again")

    def _facts(self) -> list[Parameters]:
        """What an attack says of each row (its target, the SNR reached, the share that is heard), or another maker.

        Of a clean recording with several speakers it is who speaks when.
        """
        needed = ["parameters", "snr_db"]
        name = parse(self.name)
        scenario = SCENARIOS.get(name.scenario)
        told = scenario.facts if scenario else ()
        clean = name.scenario == "clean"
        if not (name.model or told or clean) or not set(needed) <= set(_schema(self.files[0]).names):
            return []
        tables = self._values(needed)
        rows = [pair for table in tables for pair in zip(table["parameters"], table["snr_db"], strict=True)]
        try:
            known = [
                {**json.loads(text or "{}"), "snr_db": None if snr is None else round(float(snr), 2)}
                for text, snr in rows
            ]
            if clean:
                return [reference_turns(facts.get("segments", ())) for facts in known]
            if told:
                return [clip_facts(told, facts.get) for facts in known]
        except (ValueError, TypeError, RecursionError):
            raise UserError(f"{self.name}: what a row says of how it was made cannot be read; make it again") from None
        return [{key: facts[key] for key in ATTACK_FACTS if key in facts} for facts in known]

    @cached_property
    def about(self) -> ConfigData:
        """What the scorer needs to know of the config, from its rows, its manifest and its name."""
        first = self._first()
        name = parse(self.name)
        scenario = first.get("scenario") or name.scenario
        manifest = self.manifest
        return ConfigData(
            language=self.rows[0].language if self.rows else name.language,
            corpus=first.get("corpus") or name.corpus,
            scenario=scenario,
            severity=name.severity,
            category=manifest.category if manifest else category_of(scenario),
            source=first.get("source") or (None if scenario == "clean" else str(name.clean)),
            bank=manifest.bank if manifest else None,
            stand_in=manifest.stand_in if manifest else None,
            benchmark_version=manifest.benchmark_version if manifest else None,
            content_sha256=manifest.content_sha256 if manifest else None,
            rows_sha256=transcripts_digest((row.id, row.text) for row in self.rows),
            fingerprint=manifest.fingerprint if manifest else None,
            scenario_version=manifest.scenario_version if manifest else None,
        )

    def content_sha256(self, known: ConfigData, changed: bool) -> str | None:
        """The hash of the config's content: what the manifest says, if there is one.

        `known` is what run.json has of an earlier run, `changed` whether this one transcribed anything.
        """
        return self.manifest.content_sha256 if self.manifest else None

    def stored_audio(self, ids: set[str]) -> list[tuple[str, bytes]]:
        """The audio files of some clips, as they are stored."""
        clips = []
        for group in self.groups:
            rows = group.values([self.columns["id"], "audio"])
            for clip, audio in zip(rows[self.columns["id"]], rows["audio"], strict=True):
                if clip in ids and isinstance(audio, dict) and audio.get("bytes"):
                    clips.append((clip, audio["bytes"]))
        return clips

    def _first(self) -> dict[str, str]:
        schema = _schema(self.files[0])
        wanted = [name for name in ("corpus", "scenario", "source") if name in schema.names]
        values = self.groups[0].values(wanted) if self.groups and wanted else {}
        return {name: str(column[0]) for name, column in values.items() if column and column[0]}

    def _all_audio(self) -> Iterator[bytes]:
        for group in self.groups:
            audio = group.read(["audio"]).column("audio").combine_chunks()
            for item in audio:
                yield _bytes_of(item, group.path.parent, self.name)

    def windows(self, wanted: set[int]) -> Iterator[StoredWindow]:
        """Neighbouring row groups of at most WINDOW_BYTES of audio, for the positions that are wanted."""
        start, taken = 0, 0
        groups: list[Group] = []
        position = 0
        for group in self.groups:
            if groups and taken + group.audio_bytes > WINDOW_BYTES:
                yield StoredWindow(self, groups, start, wanted)
                groups, start, taken = [], position, 0
            groups.append(group)
            taken += group.audio_bytes
            position += group.rows
        if groups:
            yield StoredWindow(self, groups, start, wanted)


@dataclass
class StoredWindow:
    """A run of row groups whose audio is in memory together, once it is asked for."""

    config: StoredConfig
    groups: list[Group]
    start: int
    wanted: set[int]

    @property
    def rows(self) -> list[ClipRow]:
        end = self.start + sum(group.rows for group in self.groups)
        return [row for row in self.config.rows[self.start : end] if row.position in self.wanted]

    @cached_property
    def _audio(self) -> pa.ChunkedArray:
        return pa.concat_tables([group.read(["audio"]) for group in self.groups]).column("audio")

    def decode(self, row: ClipRow) -> Samples:
        """The clip's samples at the benchmark's rate."""
        name = f"{self.config.name}/{row.id}"
        return read(_bytes_of(self._audio[row.position - self.start], self.groups[0].path.parent, name), name=name)


def frames_of(data: bytes) -> int:
    """The length of an audio file in samples at the benchmark's rate, from its header."""
    try:
        info = soundfile.info(io.BytesIO(data))
    except soundfile.LibsndfileError as error:
        raise UserError(f"an audio file cannot be read ({str(error.error_string).rstrip('.')})") from None
    return round(info.frames * RATE / info.samplerate)


def _bytes_of(item: pa.StructScalar, folder: Path, name: str) -> bytes:
    """An encoded clip: the row's bytes, or those of a file beside the data; a path that leads elsewhere is refused."""
    audio = item.as_py()
    data, path = (audio.get(key) for key in ("bytes", "path")) if isinstance(audio, dict) else (None, None)
    if isinstance(data, bytes):
        return data
    if not isinstance(path, str) or not path:
        raise UserError(f"{name}: the row has no audio")
    file = path_inside(folder, path, name)
    if not file.is_file():
        raise UserError(f"{name}: no such file: {path}")
    return file.read_bytes()


def _groups(path: Path) -> list[Group]:
    with damage_named(path):
        return list(_read_groups(path))


def _read_groups(path: Path) -> Iterator[Group]:
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
    with damage_named(path):
        return read_schema(path)
