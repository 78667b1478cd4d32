"""The `datasets` builder: one config per name, made on the spot.

    SpeechRobustBench(config_name="en-demo_noise_sev3").download_and_prepare("out", file_format="parquet", num_proc=2)

`to_cache` puts what `srb build` made into the standard cache, so that `load_dataset("srb", ...)` works from any folder.
`keep_in_cache` does it for configs that were built in the cache's own folder, and keeps no parquet. The cache finds a
config by its folder alone, and no names of configs: those are in the card of the folder.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import datasets
import pyarrow as pa

from srb.builders.banks import Banks
from srb.builders.corpora import Utterance
from srb.builders.dataset_card import make_card
from srb.builders.manifests import (
    CACHE_MARKER,
    MANIFEST,
    edition,
    edition_folder,
    manifests,
    read_manifest,
    shard_paths,
)
from srb.builders.plan import DEMO, available, clips, job_named
from srb.builders.rows import ROWS_PER_GROUP, make_tables, own_columns, schema_with
from srb.core.arrow_files import read_schema, row_groups
from srb.core.files import replacing, write_atomically
from srb.core.seeding import BENCHMARK_VERSION

VERSION = datasets.Version(f"{BENCHMARK_VERSION}.0.0")


@dataclass
class SrbConfig(datasets.BuilderConfig):
    """Where a config's clips, noises and rooms come from."""

    version: datasets.Version = VERSION
    corpora: dict[tuple[str, str], str | None] = field(default_factory=lambda: dict(DEMO))
    noise_dir: str | None = None
    rir_dir: str | None = None
    limit: int | None = None
    tts: str | None = None


class SpeechRobustBench(datasets.ArrowBasedBuilder):
    """Makes a config's rows from its corpus, shard by shard."""

    BUILDER_CONFIG_CLASS = SrbConfig
    BUILDER_CONFIGS: ClassVar = [SrbConfig(name=str(job.name)) for job in available(DEMO)]

    def __init__(self, cache_dir: str | None = None, config_name: str | None = None, **options):
        options.setdefault("dataset_name", "srb")
        super().__init__(cache_dir, config_name=config_name, **options)

    def _info(self) -> datasets.DatasetInfo:
        return datasets.DatasetInfo(description="Speech Robust Bench")  # the columns are known with the clips

    def _split_generators(self, dl_manager) -> list[datasets.SplitGenerator]:
        selection = job_named(self.config.name).selection
        _, chosen = clips(selection, self.config.corpora, self.config.limit, self.config.tts)
        groups = [chosen[i : i + ROWS_PER_GROUP] for i in range(0, len(chosen), ROWS_PER_GROUP)]
        columns = own_columns(chosen)
        self.info.features = datasets.Features.from_arrow_schema(schema_with(columns))
        return [datasets.SplitGenerator(datasets.Split.TEST, gen_kwargs={"groups": groups, "columns": columns})]

    def _generate_tables(
        self, groups: Sequence[Sequence[Utterance]], columns: tuple[str, ...] = ()
    ) -> Iterator[tuple[int, pa.Table]]:
        job = job_named(self.config.name)
        banks = Banks(self.config.noise_dir, self.config.rir_dir)
        for index, group in enumerate(groups):
            yield index, make_tables([job], [(item, item.load()) for item in group], banks, columns=columns)[0]


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
        parquet = [path for name in manifest["files"] if (path := folder / config / name).exists()]
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


def _arrow_folder(manifest: dict[str, Any]) -> str:
    return f"{manifest['config']}/{edition_folder(manifest)}"


def _link_for_folder_loads(folder: Path, complete: Mapping[str, dict[str, Any]]) -> None:
    """Let `load_dataset(folder, config)` find what is there already: it looks under a hash of the card's configs."""
    place = Path(datasets.load_dataset_builder(str(folder.resolve()), next(iter(complete))).cache_dir)
    for config, manifest in complete.items():
        links = folder / config / place.parent.name
        links.mkdir(exist_ok=True)
        for old in filter(Path.is_symlink, links.iterdir()):  # of cards before this one
            old.unlink()
        (links / place.name).symlink_to(Path("..") / edition_folder(manifest), target_is_directory=True)
