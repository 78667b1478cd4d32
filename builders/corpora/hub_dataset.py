"""Any Hugging Face dataset with an audio and a text column: a folder (`save_to_disk` or parquet), or a Hub id.

Audio is never decoded by `datasets` (that needs torchcodec): the column is read as encoded bytes. A dataset that lies
in Arrow files is referred to by file and row, so that a list of utterances stays small and each worker maps the file
itself; a streamed one carries its bytes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from speech_robust_bench.builders.corpora.base import Audio, BytesAudio, FileAudio, Problem, Utterance
from speech_robust_bench.builders.corpora.folder import other_columns, pick_columns, utterance
from speech_robust_bench.builders.corpora.read_speech import MLS_LANGUAGES
from speech_robust_bench.core.audio import Samples
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.extensions import LazyModule
from speech_robust_bench.core.files import check_tree
from speech_robust_bench.core.rows import RowDict, column_values

if TYPE_CHECKING:
    import datasets
else:
    datasets = LazyModule("datasets")

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


def parse(source: str) -> HubSpec | None:
    """The dataset that a `--corpus` value names, None where it is a path."""
    prefix, _, rest = source.partition(":")
    if prefix not in _PREFIXES:
        return None
    path, config, split = (*rest.split(":"), "", "")[:3]
    if rest.count(":") > 2:
        raise UserError(f"{source}: write hf:<dataset>[:config][:split]")
    return HubSpec(path, config or None, split or None, _PREFIXES[prefix])


def standard(template: str, language: str, far: bool = False) -> HubSpec:
    """A corpus' standard Hub dataset, for a language and a microphone."""
    filled = template.format(language=language, mls=MLS_LANGUAGES.get(language, language), ami="sdm" if far else "ihm")
    spec = parse(filled)
    assert spec is not None
    return spec


def complete(spec: HubSpec, template: str | None, language: str, far: bool = False) -> HubSpec:
    """Fill in what was left out: `hf:` alone is the corpus' standard dataset, its id alone the standard config."""
    if template is None:
        if not spec.path:
            raise UserError("there is no standard Hub dataset for this corpus; write hf:<dataset>[:config][:split]")
        return spec
    usual = standard(template, language, far)
    if spec.path and spec.path != usual.path:
        return spec
    return replace(spec, path=usual.path, config=spec.config or usual.config, split=spec.split or usual.split)


def read(spec: HubSpec, language: str) -> Iterator[Utterance | Problem]:
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
