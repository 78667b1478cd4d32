"""Dataset configs wherever `--data` finds them, with one class for each kind of place.

- a folder that `srb build` filled: `<folder>/<config>/*.parquet`;
- the `datasets` cache, `<cache>/srb/*/*/*/*.arrow`, when there is no folder of that name;
- a Hub dataset of ours, `owner/name`, laid out like the folder;
- the authors' published data, on the Hub or in a local copy: `<their config>/<their split>-*.parquet`.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Protocol

from speech_robust_bench.builders import authors_data
from speech_robust_bench.builders.configs import ConfigSource
from speech_robust_bench.builders.manifests import MANIFEST, edition, read_manifest, shard_paths
from speech_robust_bench.builders.stored_config import StoredConfig
from speech_robust_bench.core.errors import UserError, did_you_mean
from speech_robust_bench.core.json_shapes import object_of, read_object, text
from speech_robust_bench.core.secrets import mask_secrets

_PREPARED = object_of(config_name=text)  # a dataset_info.json


class StoredSource(Protocol):
    """A place that holds stored configs: a `ConfigSource` whose configs are files."""

    def names(self) -> list[str]: ...

    def config(self, name: str) -> StoredConfig: ...


@dataclass
class BuiltFolder:
    """A folder that `srb build` filled: `<config>/*.parquet`, or Arrow files if it is the `datasets` cache."""

    folder: Path

    def names(self) -> list[str]:
        files = (*self.folder.glob("*/*.parquet"), *self.folder.glob(f"*/{MANIFEST}"))
        return sorted({path.parent.name for path in files})

    def config(self, name: str) -> StoredConfig:
        folder = self.folder / name
        if not (folder / MANIFEST).is_file():
            return StoredConfig(name, sorted(folder.glob("*.parquet")))
        manifest = read_manifest(folder)
        return StoredConfig(name, shard_paths(folder, manifest), manifest)


@dataclass
class DatasetsCache:
    """Configs that a builder prepared into the `datasets` cache."""

    folder: Path

    @cached_property
    def _prepared(self) -> dict[str, Path]:
        """Config name -> the folder of its newest preparation. The info file knows the name; the folder adds a hash."""
        infos = sorted(self.folder.glob("*/*/*/dataset_info.json"), key=lambda info: info.stat().st_mtime)
        return {read_object(info, _PREPARED)["config_name"]: info.parent for info in infos}

    def names(self) -> list[str]:
        return sorted(self._prepared)

    def config(self, name: str) -> StoredConfig:
        folder = self._prepared[name].resolve()
        files = sorted([*folder.glob("*-test*.arrow"), *folder.glob("*-test*.parquet")])
        if not files:
            raise UserError(f"{folder}: no test split in it; build {name} again")
        if (self.folder / name / MANIFEST).is_file():
            manifest = read_manifest(self.folder / name)
            if edition(manifest) == folder.name:
                return StoredConfig(name, files, manifest)
        return StoredConfig(name, files)


@dataclass
class AuthorsFolder:
    """A local copy of the authors' data, in their layout."""

    folder: Path

    @cached_property
    def _files(self) -> dict[str, list[Path]]:
        files: dict[str, list[Path]] = {}
        for path in sorted(self.folder.rglob("*.parquet")):
            if name := our_name(path.relative_to(self.folder).as_posix()):
                files.setdefault(name, []).append(path)
        return files

    def names(self) -> list[str]:
        return sorted(self._files)

    def config(self, name: str) -> StoredConfig:
        return StoredConfig(name, self._files[name])


@dataclass
class HubDataset:
    """A dataset repository on the Hub, ours or the authors'; the shards of a config are fetched when it is opened."""

    repo: str
    revision: str | None = None

    @cached_property
    def _files(self) -> dict[str, list[str]]:
        import huggingface_hub

        try:
            files = huggingface_hub.HfApi().list_repo_files(self.repo, repo_type="dataset", revision=self.revision)
        except Exception as error:
            raise UserError(
                f"--data {self.repo}: neither a folder here nor a dataset that the Hub gives ({_said(error)})"
            ) from None
        shards: dict[str, list[str]] = {}
        for file in sorted(files):
            if file.endswith(".parquet"):
                name = our_name(file) if self.repo == authors_data.REPO else Path(file).parent.name
                if name:
                    shards.setdefault(name, []).append(file)
        return shards

    def names(self) -> list[str]:
        return sorted(self._files)

    def config(self, name: str) -> StoredConfig:
        from huggingface_hub.errors import EntryNotFoundError

        shards = self._files[name]
        try:
            manifest = (
                self._fetch(f"{shards[0].rsplit('/', 1)[0]}/{MANIFEST}") if self.repo != authors_data.REPO else None
            )
        except EntryNotFoundError:
            manifest = None
        files = [self._fetch(shard) for shard in shards]
        if manifest is None:
            return StoredConfig(name, files)
        about = read_manifest(manifest.parent)
        return StoredConfig(name, shard_paths(manifest.parent, about, f"see whether {self.repo} is whole"), about)

    def _fetch(self, file: str) -> Path:
        from huggingface_hub import hf_hub_download
        from huggingface_hub.errors import EntryNotFoundError

        try:
            return Path(hf_hub_download(self.repo, file, repo_type="dataset", revision=self.revision))
        except EntryNotFoundError:
            raise
        except Exception as error:  # no connection, no space, a path that leads out of the cache
            raise UserError(f"--data {self.repo}: {file} cannot be fetched ({_said(error)})") from None


def _said(error: Exception) -> str:
    """The first line of what the Hub's client says, without secrets."""
    return mask_secrets(str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__)


def open_data(where: str) -> StoredSource:
    """What `--data` names: a folder of ours or of the authors, the `datasets` cache, or a dataset on the Hub."""
    folder = Path(where)
    if folder.is_dir():
        return (
            AuthorsFolder(folder)
            if any((folder / config).is_dir() for config in _THEIR_CONFIGS)
            else BuiltFolder(folder)
        )
    if re.fullmatch(r"[\w.-]+/[\w.-]+(@[\w.-]+)?", where) and not where.startswith("."):
        repo, _, revision = where.partition("@")
        return HubDataset(repo, revision or None)
    import datasets

    cache = Path(datasets.config.HF_DATASETS_CACHE) / where
    if not where.startswith((".", "/")) and cache.is_dir():
        return DatasetsCache(cache)
    raise UserError(
        f"--data {where}: no such folder, and nothing of that name in the datasets cache; srb build makes one"
    )


def select(data: ConfigSource, patterns: Sequence[str], where: str) -> list[str]:
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


_THEIR_CONFIGS = (*authors_data.CORPORA, *sorted({config for config, _ in authors_data.RECORDINGS}))


def our_name(path: str) -> str | None:
    """`librispeech_asr-test.clean/gnoise.1-00000-of-00001.parquet` -> `en_gaussian_sev1`."""
    *folders, file = path.split("/")
    split = re.sub(r"(-\d+-of-\d+)?\.parquet$", "", file)
    return next((name for folder in folders if (name := authors_data.config_name(folder, split))), None)
