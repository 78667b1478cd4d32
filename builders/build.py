"""`srb build`: corpora in, dataset configs out.

Shards are written to `<out>/.partial/<config>-<fingerprint>/` and a config moves to its place when it is complete, so
that nothing half-made is ever visible and a killed build goes on at the shards it was in. A build replaces and removes
only what a build has made; where something else is in its way, it says so and stops.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import pyarrow.parquet as pq
from msgspec import structs

from speech_robust_bench.builders.banks import Banks
from speech_robust_bench.builders.corpora import Problem, Sources
from speech_robust_bench.builders.dataset import keep_in_cache
from speech_robust_bench.builders.manifests import (
    CACHE_MARKER,
    MANIFEST,
    check_card_place,
    read_manifest,
    shard_paths,
    write_card,
)
from speech_robust_bench.builders.plan import (
    LIBRARIES,
    CheckedClip,
    CheckedClips,
    Job,
    OnError,
    Progress,
    check_clips,
    clips,
    config_inputs,
    fingerprint,
    library_version,
    material,
)
from speech_robust_bench.builders.row_generator import (
    SCHEMA,
    BuildSize,
    Shard,
    digest_path,
    estimate_size,
    is_whole,
    own_columns,
    shard_name,
    split,
    write_shard,
)
from speech_robust_bench.core.engines import Engine
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.files import UNFINISHED, locked_folder, write_atomically
from speech_robust_bench.core.records import ConfigOrigin, CorpusFacts, Manifest, Settings
from speech_robust_bench.core.rows import RowDict, content_digest
from speech_robust_bench.core.secrets import without_folders
from speech_robust_bench.core.seeding import (
    BENCHMARK_VERSION,
    FIRST_VERSION,
    edition_version,
    later_version,
    secret_seed,
)
from speech_robust_bench.core.untrusted_files import damage_named

MOST_OPEN_FILES = 200
TASKS_PER_WORKER = 6
# Other files that our commands leave in a config's folder: shards of another count, unfinished ones, quality columns
_OWN_FILES = re.compile(r"\.?test-\d{5}-of-\d{5}\.parquet(\.quality|\.sha256)?|" + UNFINISHED.pattern)
_EDITIONS = re.compile(r"\d+\.0\.0")  # of a config in the `datasets` cache
MARKER = "made-by-srb-build"  # in `.partial`: the folder is a build's own and may be removed


@dataclass(frozen=True)
class BuildSettings:
    """What a build may be told beside its configs, corpora and banks."""

    limit: int | None = None  # only the first clips of each corpus
    tts: str | None = None  # the engine that speaks *_tts configs
    on_error: OnError = "stop"  # what to do about clips that cannot be used
    overwrite: bool = False  # build anew what was built from something else
    secret: bytes = b""  # for a private edition: mixed into everything that is drawn, and changes every clip a little


@dataclass
class Built:
    """What a build did: names of configs, and the clips that could not be used."""

    made: list[str] = field(default_factory=list)
    reused: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)


@dataclass(frozen=True)
class _Config:
    """One config of a group: where it is made, where it goes, and the fingerprint of everything that goes into it."""

    job: Job
    out: Path
    inputs: Settings

    @property
    def place(self) -> Path:
        return self.out / str(self.job.name)

    @property
    def partial(self) -> Path:
        return _partial(self.out.absolute()) / f"{self.job.name}-{self.fingerprint[:16]}"  # for workers elsewhere

    @cached_property
    def fingerprint(self) -> str:
        return fingerprint(self.inputs)


def build(
    jobs: Sequence[Job],
    sources: Sources,
    out: Path,
    engine: Engine,
    progress: Progress,
    banks: Banks,
    options: BuildSettings | None = None,
    report: Callable[[Problem], None] = lambda problem: None,
    announce: Callable[[BuildSize], None] | None = None,
) -> Built:
    """Build the configs of `jobs` into `out`, or finish a build that was cut off.

    `report` is told of every clip that cannot be used; `announce` how large each group of configs will be.
    """
    options = options or BuildSettings()
    built = Built()
    with locked_folder(out):
        check_card_place(out)
        for job in jobs:
            _check_place(out / str(job.name))
        _open_partial(out)
        for selection in dict.fromkeys(job.selection for job in jobs):
            group = [job for job in jobs if job.selection == selection]
            _build_group(group, sources, _Run(out, engine, progress, banks, options, report, announce), built)
            complete_folder(out)
        shutil.rmtree(_partial(out))
    return built


def complete_folder(out: Path) -> None:
    """Write the card of the configs that are complete in a folder; in the `datasets` cache they become Arrow first."""
    if not (out / CACHE_MARKER).is_file():
        return write_card(out)

    keep_in_cache(out)


@dataclass(frozen=True)
class _Run:
    """What all groups of one build share."""

    out: Path
    engine: Engine
    progress: Progress
    banks: Banks
    options: BuildSettings
    report: Callable[[Problem], None]
    announce: Callable[[BuildSize], None] | None


def _build_group(group: Sequence[Job], sources: Sources, run: _Run, built: Built) -> None:
    """Build the configs that are made from the same clips."""
    seed = secret_seed(run.options.secret)
    spoken = _partial(run.out.absolute()) / "spoken"
    corpus, listed = clips(group[0].selection, sources, run.options.limit, run.options.tts, spoken=spoken, seed=seed)
    checked = check_clips(corpus, listed, run.engine, run.progress)
    for problem in checked.problems:
        if problem not in built.problems:  # the same clips may serve two groups
            run.report(problem)
            built.problems.append(problem)
    checked.refuse_unusable(run.options.on_error)
    if checked.untranscribed:
        run.report(checked.untranscribed)
    inputs = (config_inputs(job, corpus, checked.listing, run.banks, seed) for job in group)
    configs = [_Config(job, run.out, each) for job, each in zip(group, inputs, strict=True)]
    todo = [config for config in configs if not _is_done(config, run.options.overwrite)]
    built.reused += [str(config.job.name) for config in configs if config not in todo]
    if todo and run.announce:
        run.announce(estimate_size([config.job for config in todo], checked.clips, run.banks, run.engine))
    for config in todo:
        config.partial.mkdir(exist_ok=True)
    shards = split(checked.clips)
    tasks = list(_tasks(todo, shards, run, seed, own_columns(clip.utterance for clip in checked.clips)))
    show = run.progress(f"building {corpus.name}", sum(task.rows for task in tasks))
    run.engine.map(write_shard, tasks, show)
    for config in todo:
        _finish(config, checked, len(shards), run.banks, seed)
        built.made.append(str(config.job.name))


def _partial(out: Path) -> Path:
    return out / ".partial"


def _open_partial(out: Path) -> None:
    """Make the folder for unfinished work; one that no build made is not touched."""
    folder = _partial(out)
    if folder.exists() and not (folder / MARKER).is_file() and any(folder.iterdir()):
        raise UserError(f"{folder}: was not made by this version of `srb build`; move it away or use another --out")
    folder.mkdir(exist_ok=True)
    (folder / MARKER).touch()


def _check_place(place: Path) -> None:
    """Refuse to replace what no build made: a folder without a manifest, or files of the user's beside the config's."""
    if not place.exists() or (place.is_dir() and not any(place.iterdir())):
        return
    if not (place / MANIFEST).is_file():
        if (place.parent / CACHE_MARKER).is_file() and all(_EDITIONS.fullmatch(path.name) for path in place.iterdir()):
            return
        raise UserError(f"{place}: is in the way and was not made by `srb build`; move it away or use another --out")
    try:
        files = set(read_manifest(place).files)
    except UserError:
        return  # `_is_done` says that it is damaged
    files.add(MANIFEST)
    for path in place.iterdir():
        if path.name not in files and not _OWN_FILES.fullmatch(path.name) and not _EDITIONS.fullmatch(path.name):
            raise UserError(f"{path}: was not made by `srb build`; move it out of the config's folder")


def _is_done(config: _Config, overwrite: bool) -> bool:
    """Whether the config is complete; one that was built from something else stays unless it may be overwritten."""
    if not (config.place / MANIFEST).exists():
        return False
    try:
        manifest = read_manifest(config.place)
    except UserError:
        if overwrite:
            return False
        raise
    if manifest.fingerprint != config.fingerprint:
        if not overwrite:
            raise UserError(f"{config.place}: was built from other clips, noises or settings; --overwrite replaces it")
        return False
    try:
        shard_paths(config.place, manifest)
    except UserError:  # a file of it is missing or damaged: it is made anew
        return False
    return True


def _tasks(
    todo: list[_Config], shards: list[tuple[CheckedClip, ...]], run: _Run, seed: str, columns: tuple[str, ...]
) -> Iterator[Shard]:
    """The shards that are still missing; where they are few, the configs are divided so that every worker has some."""
    divisions = -(-len(todo) // MOST_OPEN_FILES)
    if run.engine.workers > 1:
        divisions = max(divisions, -(-TASKS_PER_WORKER * run.engine.workers // len(shards)))
    for index, shard in enumerate(shards):
        name = shard_name(index, len(shards))
        missing = [config for config in todo if not is_whole(config.partial / name)]
        # The severities of a scenario stay together, if there are scenarios enough, because they share work.
        groups = [list(group) for _, group in itertools.groupby(missing, key=lambda config: config.job.scenario.name)]
        if len(groups) < divisions:
            groups = [[config] for config in missing]
        for division in range(min(divisions, len(groups))):
            chosen = [(config.job, config.partial / name) for group in groups[division::divisions] for config in group]
            yield Shard(shard, tuple(chosen), run.banks, seed, columns)


def _finish(config: _Config, checked: CheckedClips, shards: int, banks: Banks, seed: str) -> None:
    """Say what the config is, and finish it."""
    scenario, corpus = config.job.scenario, checked.corpus
    went_in = material(config.job, banks, checked.listing)
    about = ConfigOrigin(
        config=str(config.job.name),
        language=config.job.name.language,
        scenario=scenario.name,
        category=scenario.category,
        severity=config.job.severity,
        parameters=scenario.parameters_at(config.job.severity),
        source=str(config.job.source) if config.job.source else None,
        bank=went_in and went_in.title,
        stand_in=went_in and went_in.stand_in,
        corpus=CorpusFacts(
            name=corpus.name,
            title=corpus.info.title,
            licence=corpus.licence,
            url=corpus.url,
            citation=corpus.citation,
            derivatives_allowed=corpus.derivatives_allowed,
            note=corpus.info.note,
        ),
        skipped=[str(problem).replace(f"{corpus.source}/", "") for problem in checked.problems],
        fingerprint=config.fingerprint,
        scenario_version=later_version(edition_version(config.inputs.get("scenario_version", FIRST_VERSION), seed)),
        private=True if seed else None,
    )
    finish(config.partial, config.place, shards, about)


def finish(partial: Path, place: Path, shards: int, about: ConfigOrigin, libraries: Sequence[str] = ()) -> None:
    """Write the manifest of a config whose shards are complete in `partial`, and move it to its place."""
    names = [shard_name(index, shards) for index in range(shards)]
    rows = [row for name in names for row in _measured_rows(partial / name)]
    stored = pq.read_schema(partial / names[0]).names
    manifest = Manifest(
        **structs.asdict(about),
        benchmark_version=BENCHMARK_VERSION,
        content_sha256=content_digest(row["sha256"] for row in rows),
        rows=len(rows),
        seconds=sum(row["duration"] for row in rows),
        clipped=sum(row["clipped"] for row in rows),
        files=names,
        versions={name: library_version(name) for name in (*LIBRARIES, *libraries)},
        columns=None if stored == SCHEMA.names else stored,  # the corpus may have columns of its own
    )
    write_atomically(partial / MANIFEST, without_folders(json.dumps(manifest.as_json(), indent=1)))
    for name in names:
        digest_path(partial / name).unlink(missing_ok=True)
    _move(partial, place)


def _measured_rows(shard: Path) -> list[RowDict]:
    """What the manifest sums up; a shard that is not what a build writes is forgotten, so that it is made anew."""
    columns = ["duration", "clipped", "sha256"]
    try:
        with damage_named(shard, "run the same command again, which makes it anew"):
            table = pq.read_table(shard, columns=columns)
            for name in columns:
                if table.column(name).type != SCHEMA.field(name).type or table.column(name).null_count:
                    raise KeyError(name)
            return table.to_pylist()
    except UserError:
        digest_path(shard).unlink(missing_ok=True)
        raise


def _move(partial: Path, place: Path) -> None:
    """Put a finished folder in its place; an older one there goes first, as a whole."""
    if place.exists():
        _check_place(place)
        old = partial.with_name(f"{partial.name}.old")
        shutil.rmtree(old, ignore_errors=True)
        os.replace(place, old)
    os.replace(partial, place)
