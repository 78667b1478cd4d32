"""Dataset configs wherever `--data` finds them, with one class for each kind of place.

- a folder that `srb build` filled: `<folder>/<config>/*.parquet`;
- the `datasets` cache, `<cache>/srb/*/*/*/*.arrow`, when there is no folder of that name;
- a Hub dataset of ours, `owner/name`, laid out like the folder;
- the authors' published data, on the Hub or in a local copy: `<their config>/<their split>-*.parquet`.

In the authors' data (`mshah1/speech_robust_bench_public`) a config is a corpus, a split is `<perturbation>.<severity>`
and the clean one `None.0`. Where there are several splits, their own evaluation reads `test.clean` of `accented_cv`
(640 clips with DNSMOS >= 3.4, the paper's number), and `nearfield` and `farfield` of the social sets.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Protocol

from speech_robust_bench.builders.configs import ConfigSource, StoredConfig
from speech_robust_bench.builders.manifests import MANIFEST, edition, read_manifest, shard_paths
from speech_robust_bench.core.errors import UserError, did_you_mean
from speech_robust_bench.core.names import ConfigName
from speech_robust_bench.core.records import Record, read
from speech_robust_bench.core.secrets import mask_secrets


class DatasetInfo(Record, frozen=True, kw_only=True):
    """A dataset_info.json of `datasets`."""

    config_name: str


AUTHORS_REPO = "mshah1/speech_robust_bench_public"

# their config -> (language, our corpus)
AUTHORS_CORPORA = {
    "librispeech_asr-test.clean": ("en", "librispeech"),
    "tedlium-release3_test": ("en", "tedlium"),
    "multilingual_librispeech-spanish_test": ("es", "mls"),
    "multilingual_librispeech-french_test": ("fr", "mls"),
    "multilingual_librispeech-german_test": ("de", "mls"),
}
# their (config, split) -> our config, where the split is not a perturbation
AUTHORS_RECORDINGS = {
    ("accented_cv", "test.clean"): "en_accent",
    ("accented_cv_es", "test"): "es_accent",
    ("accented_cv_fr", "test"): "fr_accent",
    ("social_ami", "nearfield"): "en_social_ami_near",
    ("social_ami", "farfield"): "en_social_ami_far",
    ("social_chime", "nearfield"): "en_social_chime_near",
    ("social_chime", "farfield"): "en_social_chime_far",
}
# their perturbation -> our scenario, where the names differ
AUTHORS_SCENARIOS = {
    "None": "clean",
    "gnoise": "gaussian",
    "env_noise": "noise",
    "env_noise_esc50": "noise_esc50",
    "env_noise_musan": "noise_musan",
    "env_noise_wham": "noise_wham",
    "universal_adv": "universal",
    "voice_conversion_vctk": "tts",
    "voice_conversion_bark": "tts",
}
_NO_SEVERITY = {"clean", "tts"}
_THEIR_CONFIGS = (*AUTHORS_CORPORA, *sorted({config for config, _ in AUTHORS_RECORDINGS}))


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
        return {read(info, DatasetInfo).config_name: info.parent for info in infos}

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
                name = our_name(file) if self.repo == AUTHORS_REPO else Path(file).parent.name
                if name:
                    shards.setdefault(name, []).append(file)
        return shards

    def names(self) -> list[str]:
        return sorted(self._files)

    def config(self, name: str) -> StoredConfig:
        from huggingface_hub.errors import EntryNotFoundError

        shards = self._files[name]
        try:
            manifest = self._fetch(f"{shards[0].rsplit('/', 1)[0]}/{MANIFEST}") if self.repo != AUTHORS_REPO else None
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


def our_name(path: str) -> str | None:
    """`librispeech_asr-test.clean/gnoise.1-00000-of-00001.parquet` -> `en_gaussian_sev1`."""
    *folders, file = path.split("/")
    split = re.sub(r"(-\d+-of-\d+)?\.parquet$", "", file)
    return next((name for folder in folders if (name := config_name(folder, split))), None)


def config_name(config: str, split: str) -> str | None:
    """Our config name for one of their splits; None for one that we have no name for."""
    if (config, split) in AUTHORS_RECORDINGS:
        return AUTHORS_RECORDINGS[config, split]
    perturbation, dot, severity = split.rpartition(".")
    if config not in AUTHORS_CORPORA or not dot or not severity.isdigit():
        return None
    language, corpus = AUTHORS_CORPORA[config]
    scenario = AUTHORS_SCENARIOS.get(perturbation, perturbation)
    return str(ConfigName(language, scenario, 0 if scenario in _NO_SEVERITY else int(severity), corpus))
