"""`srb.build` materialises scenarios as dataset configs, `srb.check` hashes them again,
`srb.add_quality` adds columns about how they sound.

`srb.load` gives a dataset config whose rows are perturbed as they are read.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

from speech_robust_bench.builders.banks import Banks
from speech_robust_bench.builders.build import BuildSettings
from speech_robust_bench.builders.build import build as build_jobs
from speech_robust_bench.builders.corpora import Corpora, Utterance, as_sources, dev_splits
from speech_robust_bench.builders.custom import load_table
from speech_robust_bench.builders.dataset import open_cache_folder, to_cache
from speech_robust_bench.builders.manifests import CACHE_MARKER, MANIFEST, check_configs, matching_configs
from speech_robust_bench.builders.plan import (
    DEMO,
    Job,
    available,
    check_limit,
    clips,
    job_named,
    lacking_clean,
    plan,
    tts_without_engine,
    uninstalled,
)
from speech_robust_bench.builders.quality import COLUMNS, DNSMOS_COLUMNS
from speech_robust_bench.builders.quality_columns import score as score_quality
from speech_robust_bench.builders.row_generator import RowGenerator, own_columns
from speech_robust_bench.core.engines import open_engine
from speech_robust_bench.core.errors import UserError, install_hint, warn
from speech_robust_bench.core.progress import tasks
from speech_robust_bench.core.rows import RowDict
from speech_robust_bench.core.seeding import read_secret
from speech_robust_bench.options import BuildOptions, DataOptions, Folder, Place
from speech_robust_bench.perturbation import open_banks

if TYPE_CHECKING:
    import datasets

    from speech_robust_bench.builders.plan import Job
    from speech_robust_bench.builders.row_generator import BuildSize


@dataclass(frozen=True)
class BuildResult:
    """Result of a build: the folder, the configs that were built and those that were there, and clips left out."""

    folder: Path
    built: list[str]
    already_there: list[str]
    problems: list[Any] = field(default_factory=list)

    def __str__(self) -> str:
        skipped = f", {len(self.problems)} clips left out" if self.problems else ""
        return f"{self.folder}: {len(self.built)} configs built, {len(self.already_there)} already there{skipped}"


def build(
    configs: str | Sequence[str] = (),
    *,
    corpus: Corpora = None,
    limit: int | None = None,
    out: Place | None = None,
    data_options: DataOptions = DataOptions(),
    build_options: BuildOptions = BuildOptions(),
    progress: bool = True,
) -> BuildResult:
    """Build dataset configs; a build that was interrupted continues where it stopped.

    Args:
        configs: names or patterns, "en_noise_sev3" or "en-demo_*_sev3"; `BuildOptions(all=True)` builds all.
        corpus: where corpora are, {"en": "LibriSpeech"}; the demo corpus is built in.
        limit: only the first clips of each corpus.
        out: folder for the configs; "srb" by default, so that `load_dataset("srb", CONFIG)` finds them.
        data_options: where noises, rooms, voices and scenarios of your own come from, and what to do about bad clips.
        build_options: workers and engine, the split, a private edition, quality columns, the datasets cache.
        progress: show progress, and how large the build will be.
    """
    patterns = [configs] if isinstance(configs, str) else list(configs)
    if build_options.all == bool(patterns):
        raise UserError("say which configs: names, globs such as 'en-demo_*_sev3', or --all")
    check_limit(limit)
    table, given = load_table(data_options.scenario_file), as_sources(corpus, follow_links=data_options.follow_links)
    if build_options.split == "dev":
        given, patterns = dev_splits(given, patterns)
    sources = {**DEMO, **given}
    jobs = available(given or DEMO, table) if build_options.all else plan(patterns, sources, table)
    _warn_left_out(["*"] if build_options.all else patterns, given or DEMO, table)
    folder, copy_to_cache = _places(out, build_options.to_cache)
    there = {manifest.parent.name for manifest in folder.glob(f"*/{MANIFEST}")}
    if lacking := lacking_clean([str(job.name) for job in jobs], there):
        warn(f"no WERD without {', '.join(lacking)}, which the others are compared with: build it too")
    banks = Banks(data_options.noise_dir, data_options.rir_dir)  # listed anew: a recording may be new
    secret = read_secret(Path(build_options.secret)) if build_options.secret else b""
    settings = BuildSettings(limit, data_options.tts, data_options.on_error, build_options.overwrite, secret)
    engine = open_engine(
        build_options.engine,
        build_options.workers,
        build_options.address,
        preload=["speech_robust_bench.builders.forkserver_preload"],
    )

    def announce(size: BuildSize) -> None:
        if progress:
            _announce(size, folder, copy_to_cache, jobs, banks)

    names = [str(job.name) for job in jobs]
    with tasks(not progress) as show:
        try:
            done = build_jobs(
                jobs, sources, folder, engine, show, banks, settings, lambda problem: warn(str(problem)), announce
            )
        finally:
            engine.close()
        if build_options.quality:
            score_quality(folder, names, show, workers=build_options.workers)
        if copy_to_cache:
            _copy_to_cache(folder, names, show)
    return BuildResult(folder, done.made, done.reused, list(done.problems))


def check(
    configs: str | Sequence[str] = (), *, data: Place = "srb", workers: int = 1, progress: bool = True
) -> dict[str, str | None]:
    """Verify the hashes of built configs: returns the problem of each config, or None.

    Args:
        configs: names or patterns; without any, all.
        data: the folder with the built configs.
        workers: processes.
        progress: show progress.
    """
    names = matching_configs(Path(data), [configs] if isinstance(configs, str) else list(configs))
    engine = open_engine("local", workers)
    with tasks(not progress) as show:
        try:
            wrong = check_configs(Path(data), names, engine, show)
        finally:
            engine.close()
    return {name: wrong.get(name) for name in names}


@dataclass(frozen=True)
class QualityResult:
    """The number of rows scored, and of configs that already had the columns."""

    rows: int
    already_there: int
    configs: int

    def __str__(self) -> str:
        return f"{self.rows} rows scored; {self.already_there} of {self.configs} configs had their columns already"


def add_quality(
    configs: str | Sequence[str] = (),
    *,
    data: Place = "srb",
    pesq: bool = True,
    workers: int | None = None,
    progress: bool = True,
) -> QualityResult:
    """Add DNSMOS and PESQ columns to built configs.

    Args:
        configs: names or patterns; without any, all.
        data: the folder with the built configs.
        pesq: also PESQ, which needs the clean clips.
        workers: processes; one per core by default.
        progress: show progress.
    """
    names = matching_configs(Path(data), [configs] if isinstance(configs, str) else list(configs))
    columns = COLUMNS if pesq else DNSMOS_COLUMNS
    with tasks(not progress) as show:
        rows, done = score_quality(Path(data), names, show, columns=columns, workers=workers or os.cpu_count() or 1)
    return QualityResult(rows, done, len(names))


def _announce(size: BuildSize, folder: Path, copy_to_cache: bool, jobs: Sequence[Job], banks: Banks) -> None:
    again = ", and as much again in the datasets cache" if copy_to_cache else ""
    print(f"{folder}: {size}{again}", file=sys.stderr, flush=True)
    if any((went_in := banks.material(*job.scenario.banks)) and went_in.stand_in for job in jobs):
        print("noises or rooms are of the built-in bank, not the paper's: --noise-dir, --rir-dir", file=sys.stderr)


def _warn_left_out(patterns: list[str], sources: Any, table: Any) -> None:
    """Name what patterns match but a build leaves out: configs that need a voice, or packages that are missing."""
    for name in tts_without_engine(patterns, sources):
        warn(f"not {name}, which needs a voice: srb build {name} --tts ENGINE (docs/how-to/get-speech-and-noise.md)")
    if left_out := uninstalled(patterns, sources, table):
        warn(f"not {', '.join(left_out)}, which need more packages: {install_hint('codecs')}")


def _copy_to_cache(folder: Path, names: list[str], show: Any) -> None:

    advance = show("to the datasets cache", len(names))
    for name in names:
        to_cache(folder, name)
        advance(1)


def _places(given: Place | None, to_cache: bool) -> tuple[Path, bool]:
    """Where the configs go, and whether the `datasets` cache gets a copy of them.

    With `to_cache` and no folder, the cache itself is where they go, and `./srb` a link to it: so the names of its
    configs can be listed here.
    """
    out = Path(given or "srb")
    links_to_a_cache = out.is_symlink() and (out / CACHE_MARKER).is_file()
    if given or not to_cache or (out.is_dir() and not links_to_a_cache):
        return out, to_cache

    folder = open_cache_folder()
    try:
        if links_to_a_cache:
            if not out.samefile(folder):
                warn(f"srb: is a link to {folder} from now on; before, it was to {out.readlink()}")
            out.unlink()
        out.symlink_to(folder.absolute(), target_is_directory=True)
    except OSError:  # no links here
        return folder, False
    return out, False


@dataclass(frozen=True)
class LazyRows:
    """Makes rows of one config when they are read; small when pickled, so that workers of a data loader can have it."""

    job: Job
    noise_dir: Folder
    rir_dir: Folder
    decode: bool
    columns: tuple[str, ...] = ()  # of the corpus' own

    def row(self, item: Utterance) -> RowDict:
        """The row of one clip, its audio as an array or as the bytes that are stored."""
        [row] = RowGenerator((self.job,), open_banks(self.noise_dir, self.rir_dir)).rows(item, item.load())
        made = row.decoded() if self.decode else row.stored()
        return made | {column: made.get(column) for column in self.columns}


@dataclass(frozen=True)
class RowsById:
    """A transform for `Dataset.set_transform`: the rows of the clips whose ids are read."""

    maker: LazyRows
    clips: Mapping[str, Utterance]

    def __call__(self, batch: Mapping[str, Sequence[str]]) -> dict[str, list[Any]]:
        rows = [self.maker.row(self.clips[clip]) for clip in batch["id"]]
        return {column: [row[column] for row in rows] for column in rows[0]} if rows else {}


def _generate(items: Sequence[Utterance], maker: LazyRows) -> Iterator[RowDict]:
    for item in items:
        yield maker.row(item)


@overload
def load(
    config: str,
    corpus: str | os.PathLike | Corpora = None,
    *,
    streaming: Literal[True] = True,
    decode: bool = True,
    limit: int | None = None,
    noise_dir: Folder = None,
    rir_dir: Folder = None,
    tts: str | None = None,
    scenario_file: Folder = None,
) -> datasets.IterableDataset: ...
@overload
def load(
    config: str,
    corpus: str | os.PathLike | Corpora = None,
    *,
    streaming: Literal[False],
    decode: bool = True,
    limit: int | None = None,
    noise_dir: Folder = None,
    rir_dir: Folder = None,
    tts: str | None = None,
    scenario_file: Folder = None,
) -> datasets.Dataset: ...
def load(
    config: str,
    corpus: str | os.PathLike | Corpora = None,
    *,
    streaming: bool = True,
    decode: bool = True,
    limit: int | None = None,
    noise_dir: Folder = None,
    rir_dir: Folder = None,
    tts: str | None = None,
    scenario_file: Folder = None,
) -> datasets.IterableDataset | datasets.Dataset:
    """Load a dataset config, perturbed as it is read; rows and hashes equal those of `srb build`.

    Args:
        config: a name such as "en_noise_sev3" or "en-mine_rir_sev2".
        corpus: the folder (or "hf:..." dataset) of the config's corpus, or a dict {"en-mine": FOLDER}; the demo corpus
            is built in.
        streaming: a `datasets.IterableDataset`; with False a `datasets.Dataset`, each row perturbed when it is indexed.
        decode: audio as {"array", "sampling_rate", "path"}; with False as {"bytes", "path"}, the FLAC that is stored.
        limit: only the first clips.
        noise_dir, rir_dir, scenario_file: as in `srb.perturb`.
        tts: the engine of `*_tts` configs.
    """
    import datasets

    job = job_named(config, load_table(scenario_file))
    sources = {**DEMO, **as_sources(corpus, job.selection.data)}
    _, items = clips(job.selection, sources, limit, tts)
    maker = LazyRows(job, noise_dir, rir_dir, decode, own_columns(items))
    if streaming:
        return datasets.IterableDataset.from_generator(_generate, gen_kwargs={"items": items, "maker": maker})
    dataset = datasets.Dataset.from_dict({"id": [item.id for item in items]})
    dataset.set_transform(RowsById(maker, {item.id: item for item in items}))
    return dataset
