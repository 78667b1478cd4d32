"""`srb build`: corpora in, dataset configs out.

Shards are written to `<out>/.partial/<config>-<fingerprint>/` and a config moves to its place when it is complete, so
that nothing half-made is ever visible and a killed build goes on at the shards it was in.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib import metadata
from pathlib import Path
from typing import Any, Literal

from srb.builders.audio import file_state, replacing
from srb.builders.banks import Banks
from srb.builders.card import write_card
from srb.builders.corpora import Corpus, Problem, Utterance
from srb.builders.corpora.base import BytesAudio
from srb.builders.engines import Engine
from srb.builders.errors import UserError
from srb.builders.manifests import MANIFEST, read_manifest
from srb.builders.plan import Job, Sources, clips
from srb.builders.public import without_folders
from srb.builders.rows import content_digest
from srb.builders.scenarios import SCENARIOS
from srb.builders.seeding import BENCHMARK_VERSION
from srb.builders.shards import Shard, check, shard_name, split, write_shard
from srb.builders.workplace import held

OnError = Literal["stop", "skip"]
Progress = Callable[[str, int], Callable[[int], None]]  # (what, how many) -> advance by n
LIBRARIES = ("speech-robust-bench", "numpy", "scipy", "numba", "soundfile", "soxr", "pyarrow")
CLIPS_PER_CHECK = 50
MOST_OPEN_FILES = 200


@dataclass
class Built:
    """What a build did."""

    made: list[str] = field(default_factory=list)
    reused: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)


@dataclass(frozen=True)
class _Config:
    """One config of a group: where it is made, where it goes, and the fingerprint of everything that goes into it."""

    job: Job
    out: Path
    inputs: dict[str, Any]

    @property
    def place(self) -> Path:
        return self.out / str(self.job.name)

    @property
    def partial(self) -> Path:
        return _partial(self.out.absolute()) / f"{self.job.name}-{self.fingerprint[:16]}"  # for workers elsewhere

    @cached_property
    def fingerprint(self) -> str:
        return hashlib.sha256(json.dumps(self.inputs, sort_keys=True, default=str).encode()).hexdigest()


def build(
    jobs: Sequence[Job],
    sources: Sources,
    out: Path,
    engine: Engine,
    progress: Progress,
    *,
    banks: Banks,
    limit: int | None = None,
    tts: str | None = None,
    on_error: OnError = "stop",
    overwrite: bool = False,
    report: Callable[[Problem], None] = lambda problem: None,
) -> Built:
    """Build the configs of `jobs` into `out`, or finish a build that was cut off."""
    built = Built()
    with held(out):
        _partial(out).mkdir(exist_ok=True)
        for selection in dict.fromkeys(job.selection for job in jobs):
            group = [job for job in jobs if job.selection == selection]
            corpus, listed = clips(selection, sources, limit, tts)
            utterances, problems = _usable(corpus, listed, out, engine, progress)
            for problem in problems:
                if problem not in built.problems:  # the same clips may serve two groups
                    report(problem)
                    built.problems.append(problem)
            if not utterances:
                raise UserError(f"{corpus.source}: holds no clips that can be used")
            if problems and on_error == "stop":
                raise UserError(
                    f"{corpus.source}: {len(problems)} of the clips cannot be used (named above); mend them, "
                    "or leave them out with --on-error skip"
                )
            listing = _listing(utterances)
            configs = [_Config(job, out, _inputs(job, corpus, [listing, len(utterances)], banks)) for job in group]
            todo = [config for config in configs if not _is_done(config, overwrite)]
            built.reused += [str(config.job.name) for config in configs if config not in todo]
            for config in todo:
                config.partial.mkdir(exist_ok=True)
            shards = split(utterances)
            tasks = list(_tasks(todo, shards, banks, engine.workers))
            engine.map(write_shard, tasks, progress(f"building {corpus.name}", sum(task.rows for task in tasks)))
            for config in todo:
                _finish(config, corpus, len(shards), problems)
                built.made.append(str(config.job.name))
            write_card(out)
        shutil.rmtree(_partial(out))
    return built


@cache
def _version(library: str) -> str:
    return metadata.version(library)  # parses a file each time


def _partial(out: Path) -> Path:
    return out / ".partial"


def _usable(
    corpus: Corpus, utterances: list[Utterance], out: Path, engine: Engine, progress: Progress
) -> tuple[list[Utterance], list[Problem]]:
    """The clips that can be decoded, and all that is wrong with the others. What was checked once is remembered."""
    remembered = _partial(out) / f"checked-{_listing(utterances)[:16]}.json"
    if remembered.exists():
        found = [Problem(*item) if item else None for item in json.loads(remembered.read_text())]
    else:
        parts = [utterances[i : i + CLIPS_PER_CHECK] for i in range(0, len(utterances), CLIPS_PER_CHECK)]
        checked = engine.map(check, parts, progress(f"checking {corpus.name}", len(utterances)))
        found = [problem for part in checked for problem in part]
        with replacing(remembered) as part:
            part.write_text(json.dumps([problem and [problem.where, problem.what] for problem in found]))
    good = [item for item, problem in zip(utterances, found, strict=True) if problem is None]
    return good, [*corpus.problems, *(problem for problem in found if problem)]


def _listing(utterances: Sequence[Utterance]) -> str:
    """Hash of a list of clips and of the state of their files."""
    digest = hashlib.sha256()
    for item in utterances:
        digest.update(f"{item!r}{_state(item.audio)}\n".encode())
    return digest.hexdigest()


def _state(audio: Any) -> str:
    """What tells one edition of a clip's audio from another, without decoding it."""
    if isinstance(audio, BytesAudio):
        return hashlib.sha256(audio.data).hexdigest()
    path = getattr(audio, "path", None)  # synthetic speech has none: what it depends on shows in its repr
    return file_state(path) if path else ""


def _inputs(job: Job, corpus: Corpus, clips: list[str | int], banks: Banks) -> dict[str, Any]:
    """Everything that a config's content depends on, as far as it can change between two runs."""
    scenario = job.scenario
    return {
        "benchmark_version": BENCHMARK_VERSION,
        "software": _version("speech-robust-bench"),
        "config": str(job.name),
        "value": scenario.value(job.severity),
        "transform": None if scenario.name in SCENARIOS else repr(scenario.function),
        "bank": banks.describe(scenario.bank) if scenario.bank else None,
        "recordings": banks.fingerprint(scenario.bank) if scenario.bank else None,
        "corpus": corpus.name,
        "clips": clips,
    }


def _is_done(config: _Config, overwrite: bool) -> bool:
    """Whether the config is complete; one that was built from something else stays unless it may be overwritten."""
    if not (config.place / MANIFEST).exists():
        return False
    same = read_manifest(config.place).get("fingerprint") == config.fingerprint
    if not same and not overwrite:
        raise UserError(f"{config.place}: was built from other clips or settings; --overwrite builds it anew")
    return same


def _tasks(todo: list[_Config], shards: list[tuple[Utterance, ...]], banks: Banks, workers: int) -> Iterator[Shard]:
    """The shards that are still missing; in a small corpus the configs are dealt out so that every worker has some."""
    deals = -(-len(todo) // MOST_OPEN_FILES)
    if workers > 1:
        deals = max(deals, -(-12 * workers // len(shards)))
    for index, utterances in enumerate(shards):
        name = shard_name(index, len(shards))
        missing = [config for config in todo if not (config.partial / name).exists()]
        # The severities of a scenario stay together, if there are scenarios enough, because they share work.
        hands = [list(group) for _, group in itertools.groupby(missing, key=lambda config: config.job.scenario.name)]
        if len(hands) < deals:
            hands = [[config] for config in missing]
        for deal in range(min(deals, len(hands))):
            chosen = [(config.job, config.partial / name) for hand in hands[deal::deals] for config in hand]
            yield Shard(utterances, tuple(chosen), banks)


def _finish(config: _Config, corpus: Corpus, shards: int, problems: list[Problem]) -> None:
    """Say what the config is, and finish it."""
    scenario = config.job.scenario
    about = {
        "config": str(config.job.name),
        "language": config.job.name.language,
        "scenario": scenario.name,
        "category": scenario.category,
        "severity": config.job.severity,
        "parameters": {scenario.parameter: scenario.value(config.job.severity)} if scenario.parameter else {},
        "source": config.job.source and str(config.job.source),
        "bank": config.inputs["bank"],
        "corpus": {
            "name": corpus.name,
            "title": corpus.info.title,
            "licence": corpus.licence,
            "url": corpus.url,
            "citation": corpus.citation,
            "derivatives_allowed": corpus.derivatives_allowed,
            "note": corpus.info.note,
        },
        "skipped": [str(problem).replace(f"{corpus.source}/", "") for problem in problems],
        "fingerprint": config.fingerprint,
    }
    finish(config.partial, config.place, shards, about)


def finish(partial: Path, place: Path, shards: int, about: dict[str, Any], libraries: Sequence[str] = ()) -> None:
    """Write the manifest of a config whose shards are complete in `partial`, and move it to its place."""
    import pyarrow.parquet as pq

    names = [shard_name(index, shards) for index in range(shards)]
    columns = [pq.read_table(partial / name, columns=["duration", "clipped", "sha256"]) for name in names]
    rows = [row for table in columns for row in table.to_pylist()]
    manifest = {
        **about,
        "benchmark_version": BENCHMARK_VERSION,
        "content_sha256": content_digest(row["sha256"] for row in rows),
        "rows": len(rows),
        "seconds": sum(row["duration"] for row in rows),
        "clipped": sum(row["clipped"] for row in rows),
        "files": names,
        "versions": {name: _version(name) for name in (*LIBRARIES, *libraries)},
    }
    with replacing(partial / MANIFEST) as part:
        part.write_text(without_folders(json.dumps(manifest, indent=1)))
    _move(partial, place)


def _move(partial: Path, place: Path) -> None:
    """Put a finished folder in its place; an older one there goes first, as a whole."""
    if place.exists():
        old = partial.with_name(f"{partial.name}.old")
        shutil.rmtree(old, ignore_errors=True)
        os.replace(place, old)
    os.replace(partial, place)
