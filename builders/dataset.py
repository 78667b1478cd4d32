"""The `datasets` builder: one config per name, made on the spot.

    SpeechRobustBench(config_name="en_noise_sev3", data_dir="LibriSpeech").download_and_prepare(num_proc=2)

`to_cache` puts what `srb build` made into the standard cache, so that `load_dataset("srb", ...)` works from any folder.
`keep_in_cache` does it for configs that were built in the cache's own folder, and keeps no parquet. The cache finds a
config by its folder alone, and no names of configs: those are in the card of the folder.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, is_dataclass
from functools import cache, cached_property, wraps
from pathlib import Path
from typing import Any

import datasets
import pyarrow as pa

from speech_robust_bench.builders.banks import Banks
from speech_robust_bench.builders.corpora import Corpus, Utterance, as_sources
from speech_robust_bench.builders.custom import load_table
from speech_robust_bench.builders.manifests import (
    CACHE_MARKER,
    MANIFEST,
    edition,
    edition_folder,
    make_card,
    manifests,
    read_manifest,
    shard_paths,
)
from speech_robust_bench.builders.plan import (
    DEMO,
    LIBRARIES,
    Job,
    Listing,
    clips,
    config_inputs,
    config_names,
    fingerprint,
    job_named,
    library_version,
)
from speech_robust_bench.builders.row_generator import ROWS_PER_GROUP, RowGenerator, batches, own_columns, schema_with
from speech_robust_bench.builders.tts import material_of
from speech_robust_bench.core.errors import UserError, did_you_mean
from speech_robust_bench.core.files import file_state, replacing, write_atomically
from speech_robust_bench.core.names import ConfigName, parse
from speech_robust_bench.core.records import Manifest
from speech_robust_bench.core.seeding import BENCHMARK_VERSION
from speech_robust_bench.core.untrusted_files import read_schema, row_groups

VERSION = datasets.Version(f"{BENCHMARK_VERSION}.0.0")
SMALLEST_SPLIT = 16  # parts that a small corpus is divided into, so that `num_proc` has something to share out


@dataclass
class SrbConfig(datasets.BuilderConfig):
    """Where the clips, noises and rooms of a config come from.

    `corpora` maps corpora to their folders, as in {"en": "LibriSpeech", "en-mine": FOLDER}; `data_dir` is the folder of
    the config's own corpus. Both also take "hf:..." datasets. The demo corpus is built in.
    """

    version: datasets.Version = VERSION
    corpora: Mapping[str, str | os.PathLike | None] | None = None
    noise_dir: str | os.PathLike | None = None  # noises to draw from; the built-in ones otherwise
    rir_dir: str | os.PathLike | None = None  # room impulse responses; the built-in ones otherwise
    limit: int | None = None  # only the first clips
    tts: str | None = None  # the engine of `*_tts` configs
    scenario_file: str | os.PathLike | None = None  # a YAML file with scenarios of your own

    @cached_property
    def job(self) -> Job:
        """The config's scenario and severity; an unknown name raises an error with the nearest ones."""
        table = load_table(self.scenario_file)
        try:
            return job_named(self.name, table)
        except UserError as error:
            if "did you mean" in str(error) or _is_config_name(self.name):
                raise
            raise UserError(f"{error}; {did_you_mean(self.name, config_names())}") from None

    @cached_property
    def banks(self) -> Banks:
        return Banks(_absolute(self.noise_dir), _absolute(self.rir_dir))

    def list_clips(self) -> tuple[Corpus, list[Utterance]]:
        """The corpus and its clips; a missing corpus raises an error that says how to get it."""
        own = self.job.selection.data
        sources = {**DEMO, **as_sources(self.corpora), **as_sources(self.data_dir, own)}
        try:
            return clips(self.job.selection, sources, self.limit, self.tts)
        except UserError as error:
            if sources.get(own) or own in DEMO:
                raise
            key = str(ConfigName(own[0], "", corpus=own[1])).removesuffix("_")
            raise UserError(f'{error}; in Python data_dir=PATH or corpora={{"{key}": PATH}}') from None


def _absolute(folder: str | os.PathLike | None) -> str | None:
    return os.path.abspath(os.path.expanduser(folder)) if folder else None  # a worker may run elsewhere


def _is_config_name(name: str) -> bool:
    try:
        return bool(parse(name))
    except UserError:
        return False


class SpeechRobustBench(datasets.ArrowBasedBuilder):
    """The `datasets` builder of every config: `download_and_prepare`, `as_dataset` and `as_streaming_dataset`.

        SpeechRobustBench(config_name="en_noise_sev3", data_dir="LibriSpeech").download_and_prepare(num_proc=4)

    Args:
        config_name: any config name, such as "en_noise_sev3", "en_noise_snr-5" or "en-mine_rir_sev2".
        data_dir: the folder (or "hf:..." dataset) of the config's corpus; the demo corpus is built in.
        corpora: in place of `data_dir`, a dict such as {"en": "LibriSpeech", "en-mine": FOLDER}.
        noise_dir, rir_dir, limit, tts, scenario_file: as in `srb.load`.

    The hash in the cache's path covers the clips, their transcripts, the banks, the scenario and the versions of the
    software, so that a change of any of them makes the config anew.
    """

    BUILDER_CONFIG_CLASS = SrbConfig
    config: SrbConfig

    def __init__(
        self,
        cache_dir: str | None = None,
        dataset_name: str | None = "srb",
        config_name: str | None = None,
        **options: Any,
    ) -> None:
        if not config_name:
            raise UserError('config_name is missing; for example SpeechRobustBench(config_name="en-demo_noise_sev3")')
        source = {name: options[name] for name in _SOURCE_OPTIONS if name in options}
        config = SrbConfig(name=config_name, **source)
        self._listed = config.list_clips()
        refuse_problems(self._listed[0])
        options.setdefault("hash", content_hash(config, *self._listed))
        # The hash tells editions apart; the plain name is what `load_dataset("srb", ...)` looks for.
        super().__init__(cache_dir, dataset_name, config_name, **{"config_id": config_name, **options})

    @classmethod
    def config_names(cls, language: str | None = None) -> list[str]:
        """The names of all configs of the known corpora, of one language or of all."""
        return [name for name in config_names() if language in (None, parse(name).language)]

    def _info(self) -> datasets.DatasetInfo:
        return datasets.DatasetInfo(description="Speech Robust Bench")  # the columns are known with the clips

    @wraps(datasets.ArrowBasedBuilder.download_and_prepare)
    def download_and_prepare(self, *args: Any, **options: Any) -> None:
        try:
            super().download_and_prepare(*args, **options)
        except datasets.exceptions.DatasetGenerationError as error:
            if isinstance(error.__cause__, UserError):
                raise error.__cause__ from None
            raise
        if (place := Path(self.cache_dir)).is_dir():
            place.touch()  # of several editions `load_dataset` takes the youngest

    def _split_generators(self, dl_manager: Any) -> list[datasets.SplitGenerator]:
        _, chosen = self._listed
        size = min(ROWS_PER_GROUP, max(1, -(-len(chosen) // SMALLEST_SPLIT)))
        groups = [chosen[i : i + size] for i in range(0, len(chosen), size)]
        columns = own_columns(chosen)
        self.info.features = datasets.Features.from_arrow_schema(schema_with(columns))
        return [datasets.SplitGenerator(datasets.Split.TEST, gen_kwargs={"groups": groups, "columns": columns})]

    def _generate_tables(
        self, groups: Sequence[Sequence[Utterance]], columns: tuple[str, ...] = ()
    ) -> Iterator[tuple[tuple[int, int], pa.Table]]:
        generator = RowGenerator((self.config.job,), self.config.banks)
        for index, group in enumerate(groups):
            for part, loaded in enumerate(batches(group)):
                [table] = generator.tables(loaded, columns)
                yield (index, part), table


_SOURCE_OPTIONS = ("data_dir", "corpora", "noise_dir", "rir_dir", "limit", "tts", "scenario_file")


def refuse_problems(corpus: Corpus) -> None:
    """Raise an error that names the first clips that cannot be used, if there are any."""
    if corpus.problems:
        named = "; ".join(map(str, corpus.problems[:3]))
        raise UserError(f"{corpus.source}: {len(corpus.problems)} of the clips cannot be used ({named}); repair them")


def content_hash(config: SrbConfig, corpus: Corpus, listed: Sequence[Utterance]) -> str:
    """The hash of all that the rows depend on: clips, transcripts, banks, scenario and versions; nothing is decoded."""
    if not listed:
        raise UserError(f"{corpus.source}: holds no clips that can be used")
    state = cache(file_state)  # a long recording holds many clips
    digest = hashlib.sha256()
    for item in listed:
        digest.update(f"{item!r}{item.columns}{_audio_state(item.audio, state)}\n".encode())
    listing = Listing(digest.hexdigest(), len(listed), material_of(listed[:1]))
    inputs = config_inputs(config.job, corpus, listing, config.banks, seed="")
    return fingerprint({**inputs, "libraries": {name: library_version(name) for name in LIBRARIES}})[:32]


def _audio_state(audio: Any, state: Callable[[str], str]) -> str:
    """Size, time and hashes of the files (or the bytes) behind a clip, also where it is mixed from two or masked."""
    parts = []
    for each in fields(audio) if is_dataclass(audio) else ():
        value = getattr(audio, each.name)
        if is_dataclass(value):
            parts.append(_audio_state(value, state))
        elif isinstance(value, bytes):
            parts.append(hashlib.sha256(value).hexdigest())
        elif each.name == "path":
            parts.append(state(str(value)))
    return " ".join(parts)


class _Built(datasets.ArrowBasedBuilder):
    """Reads what `srb build` wrote."""

    VERSION = VERSION
    files: tuple[str, ...] = ()

    def _info(self) -> datasets.DatasetInfo:
        return datasets.DatasetInfo(description="Speech Robust Bench")

    def _split_generators(self, dl_manager) -> list[datasets.SplitGenerator]:
        self.info.features = datasets.Features.from_arrow_schema(read_schema(Path(self.files[0])))
        return [datasets.SplitGenerator(datasets.Split.TEST, gen_kwargs={"files": list(self.files)})]

    def _generate_tables(self, files: Sequence[str]) -> Iterator[tuple[tuple[int, int], pa.Table]]:
        for number, file in enumerate(files):
            for index, table in enumerate(row_groups(Path(file))):
                yield (number, index), table


def cache_folder() -> Path:
    """Where `datasets` looks for "srb" when it is neither a folder here nor on the Hub."""
    return Path(datasets.config.HF_DATASETS_CACHE) / "srb"


def open_cache_folder() -> Path:
    """The cache's folder, ready to be built into: what is complete there stays as Arrow alone."""
    folder = cache_folder()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / CACHE_MARKER).touch()
    return folder


def to_cache(folder: Path, config: str) -> None:
    """Put a built config into the datasets cache under the bare name `srb`."""
    manifest = read_manifest(folder / config)
    files = tuple(map(str, shard_paths(folder.resolve() / config, manifest)))
    # The hash tells editions apart; without it changed data would hide behind what the cache already has.
    builder = _Built(config_name=config, dataset_name="srb", hash=edition(manifest))
    builder.files = files  # not an option of the config, which would change its name in the cache
    datasets.disable_progress_bars()
    try:
        builder.download_and_prepare()
    finally:
        datasets.enable_progress_bars()
    Path(builder.cache_dir).touch()  # of several editions `datasets` takes the youngest
    if folder.resolve() != cache_folder().resolve():
        write_atomically(cache_folder() / config / MANIFEST, (folder / config / MANIFEST).read_text(encoding="utf-8"))


def keep_in_cache(folder: Path) -> None:
    """Turn the parquet files of a folder that is the cache's own into Arrow files, and write its card."""
    complete = manifests(folder)
    for config, manifest in complete.items():
        parquet = [path for name in manifest.files if (path := folder / config / name).exists()]
        if parquet:
            to_cache(folder, config)
            for path in parquet:
                path.unlink()
    if not complete:
        return
    card = make_card(list(complete.values()), lambda manifest: f"{_arrow_folder(manifest)}/*-test*.arrow")
    with replacing(folder / "README.md") as part:
        part.write_text(card, encoding="utf-8")
    _link_for_folder_loads(folder, complete)


def _arrow_folder(manifest: Manifest) -> str:
    return f"{manifest.config}/{edition_folder(manifest)}"


def _link_for_folder_loads(folder: Path, complete: Mapping[str, Manifest]) -> None:
    """Let `load_dataset(folder, config)` find what is there already: it looks under a hash of the card's configs."""
    place = Path(datasets.load_dataset_builder(str(folder.resolve()), next(iter(complete))).cache_dir)
    for config, manifest in complete.items():
        links = folder / config / place.parent.name
        links.mkdir(exist_ok=True)
        for old in filter(Path.is_symlink, links.iterdir()):  # of cards before this one
            old.unlink()
        with suppress(OSError):  # Windows, without the right to make links: the load makes its own copy
            (links / place.name).symlink_to(Path("..") / edition_folder(manifest), target_is_directory=True)
