"""Configs that are perturbed while the recogniser works, from the corpus itself: no build, and no audio on disk.

Worker processes perturb some clips ahead of the recogniser. Rows, predictions and hashes are those of the built config:
`content_sha256` is computed from the samples as they pass. Only a bounded number of clips is in memory at a time,
whatever the size of the corpus.
"""

from __future__ import annotations

import shlex
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from speech_robust_bench.builders.banks import Banks
from speech_robust_bench.builders.build import OnError, Progress
from speech_robust_bench.builders.configs import ClipRow, masked_facts
from speech_robust_bench.builders.corpora import Problem, parse_flags
from speech_robust_bench.builders.perturbed_clips import CheckedClips, list_clips, perturb_clips, row_digests
from speech_robust_bench.builders.plan import DEMO, Job, Sources, available, clips, job_named, plan
from speech_robust_bench.builders.row_generator import make_row, reference
from speech_robust_bench.builders.scenarios import SCENARIOS, Scenario
from speech_robust_bench.builders.tts import material_of
from speech_robust_bench.core.audio import RATE, Samples, from_pcm16
from speech_robust_bench.core.engines import Processes, cores
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.names import ConfigName
from speech_robust_bench.core.row_hashes import content_digest, transcripts_digest
from speech_robust_bench.core.seeding import BENCHMARK_VERSION, later_version

# What a worker perturbs at a time, and what waits in memory for the recogniser: bounded in clips and in seconds.
CLIPS_AT_A_TIME = 64
SECONDS_AT_A_TIME = 640.0
MOST_WORKERS = 4
Chunk = tuple[int, ...]  # positions of clips of like length


def default_workers() -> int:
    """As many as leave a core to the recogniser; more than a few are never needed."""
    return min(MOST_WORKERS, max(1, cores() - 1))


@dataclass
class LiveConfigs:
    """The configs that can be made from some corpora. When pickled (for a cluster) it takes along what was checked."""

    sources: Sources
    banks: Banks = field(default_factory=Banks)
    table: Mapping[str, Scenario] = field(default_factory=lambda: SCENARIOS)
    limit: int | None = None
    tts: str | None = None
    on_error: OnError = "stop"
    workers: int = field(default_factory=default_workers)
    progress: Progress = field(default=lambda what, count: lambda done: None, repr=False)
    report: Callable[[Problem], None] = field(default=lambda problem: None, repr=False)
    _checked: dict[tuple, CheckedClips] = field(default_factory=dict, repr=False)
    _pool: Processes | None = field(default=None, repr=False)
    _early: tuple[str, dict[Chunk, Future]] = field(default=("", {}), repr=False)

    @property
    def where(self) -> str:
        """What is perturbed, as the options of the command say it."""
        corpora = [
            f"{str(ConfigName(language, '', corpus=name)).removesuffix('_')}{f'={folder}' if folder else ''}"
            for (language, name), folder in self.sources.items()
        ]
        flags = {"--noise-dir": self.banks.noise_dir, "--rir-dir": self.banks.rir_dir, "--tts": self.tts}
        words = [word for corpus in corpora for word in ("--corpus", corpus)]
        words += [str(word) for flag, value in flags.items() if value for word in (flag, value)]
        return shlex.join([*words, *(("--limit", str(self.limit)) if self.limit else ())])

    def names(self) -> list[str]:
        return [str(job.name) for job in available(self.sources, self.table)]

    def select(self, patterns: Sequence[str]) -> list[str]:
        """The configs that names and globs mean, clean speech first; without any, all that there are."""
        known = {**DEMO, **self.sources}
        jobs = plan(patterns, known, self.table) if patterns else available(self.sources, self.table)
        return [str(job.name) for job in sorted(jobs, key=lambda job: job.scenario.name != "clean")]

    def config(self, name: str) -> LiveConfig:
        job = job_named(name, self.table)
        return LiveConfig(name, job, self)

    def configs(self, names: Sequence[str]) -> list[LiveConfig]:
        """Some configs in the order in which they will be run: the next one is begun while one is still being run."""
        opened = [self.config(name) for name in names]
        for config, following in pairwise(opened):
            config.following = following
        for config in opened:
            self.clips(config.job)  # so that a broken clip is known before the first is transcribed
        return opened

    def clips(self, job: Job) -> CheckedClips:
        """The clips of a config, checked when they are first asked for."""
        if job.selection not in self._checked:
            how = {"limit": self.limit, "tts": self.tts, "on_error": self.on_error, "report": self.report}
            sources = {**DEMO, **self.sources}
            self._checked[job.selection] = list_clips(job.selection, sources, self.pool, self.progress, **how)  # type: ignore[arg-type]
        return self._checked[job.selection]

    @property
    def pool(self) -> Processes:
        if self._pool is None:
            self._pool = Processes(self.workers, ["speech_robust_bench.builders.forkserver_preload"])
        return self._pool

    def take_early(self, name: str) -> dict[Chunk, Future]:
        """What was begun for a config before it was asked for; what was begun for another is given up."""
        begun_for, futures = self._early
        self._early = "", {}
        if begun_for == name:
            return futures
        for future in futures.values():
            future.cancel()
        return {}

    def begin_early(self, config: LiveConfig, count: int) -> None:
        """Begin with a config that comes next, as far as workers would be idle."""
        if self._early[0] != config.name:
            self.take_early("")
            self._early = config.name, {}
        for chunk in config.chunks(range(len(config.rows)))[:count]:
            if chunk not in self._early[1] and len(self._early[1]) < count:
                self._early[1][chunk] = config.submit(chunk)

    def close(self) -> None:
        """Let the worker processes go."""
        self.take_early("")
        if self._pool is not None:
            self._pool.close()
            self._pool = None

    def __getstate__(self) -> dict[str, Any]:
        """Without processes and what writes to a terminal: the other side has its own, or none."""
        local = ("progress", "report")
        kept = {key: value for key, value in self.__dict__.items() if key not in local}
        return {**kept, "_pool": None, "_early": ("", {})}

    def __setstate__(self, state: dict[str, Any]) -> None:
        fresh = LiveConfigs(state["sources"])
        self.__dict__.update({**fresh.__dict__, **state})


def reopened(where: str) -> LiveConfigs:
    """The configs that `LiveConfigs.where`, as run.json keeps it, stands for."""
    given: dict[str, list[str]] = {"--corpus": [], "--noise-dir": [], "--rir-dir": [], "--tts": [], "--limit": []}
    try:
        words = shlex.split(where)
        for flag, value in zip(words[::2], words[1::2], strict=True):
            given[flag].append(value)
        corpora = parse_flags(given["--corpus"])
        noises, rooms, tts, limit = (next(iter(given[flag]), None) for flag in list(given)[1:])
        most = int(limit) if limit else None
    except (ValueError, KeyError):
        raise UserError(f"the run was made on {where!r}, which is not understood; say --corpus or --data") from None
    return LiveConfigs(corpora, Banks(noises, rooms), limit=most, tts=tts, on_error="skip")


@dataclass
class LiveWindow:
    """Some perturbed clips in memory, with their exact durations."""

    rows: list[ClipRow]
    outcomes: Mapping[int, tuple[np.ndarray, str] | Exception]

    def decode(self, row: ClipRow) -> Samples:
        """The clip's samples, as decoding the stored row would give them."""
        outcome = self.outcomes[row.position]
        if isinstance(outcome, Exception):
            raise outcome
        return from_pcm16(outcome[0])


@dataclass
class LiveConfig:
    """One config that is made while it is read; `duration` of its rows is that of the clean clip until then."""

    name: str
    job: Job
    origin: LiveConfigs
    following: LiveConfig | None = None
    digests: dict[int, str] = field(default_factory=dict, repr=False)  # by position, of the rows perturbed so far

    @property
    def clips(self) -> CheckedClips:
        return self.origin.clips(self.job)

    @cached_property
    def rows(self) -> list[ClipRow]:
        return [
            ClipRow(
                position,
                item.id,
                reference(self.job, item),
                clip.seconds,
                item.language or self.job.name.language,
                item.speaker or None,
                item.gender or None,
                item.age or None,
                item.accent or None,
                masked_facts(getattr(item.audio, "masked", None)),
                columns=item.columns,
            )
            for position, clip in enumerate(self.clips.clips)
            for item in (clip.utterance,)
        ]

    @cached_property
    def about(self) -> dict[str, Any]:
        """What run.json says of the config; its content's hash is only known when every clip has been perturbed."""
        name, scenario = self.job.name, self.job.scenario
        return {
            "language": self.rows[0].language,
            "corpus": self.clips.clips[0].utterance.corpus or name.corpus,
            "scenario": scenario.name,
            "severity": self.job.severity,
            "category": scenario.category,
            "source": None if scenario.name == "clean" else str(name.clean),
            "bank": self.origin.banks.describe(*scenario.banks) or material_of([self.clips.clips[0].utterance]),
            "benchmark_version": BENCHMARK_VERSION,
            "content_sha256": None,
            "rows_sha256": transcripts_digest((row.id, row.text) for row in self.rows),
            "fingerprint": self.clips.fingerprint(self.job, self.origin.banks),
            **later_version(scenario.edition),
        }

    def content_sha256(self, known: Mapping[str, Any], changed: bool) -> str | None:
        """The hash of the built config. It is kept where a run has it already, else computed from every clip.

        After an interruption the clips transcribed before are perturbed once more for it.
        """
        if not changed and known.get("content_sha256") and known.get("fingerprint") == self.about["fingerprint"]:
            return known["content_sha256"]
        remaining = [row.position for row in self.rows if row.position not in self.digests]
        for chunk, outcomes in self._results(row_digests, self.chunks(remaining)):
            for position, outcome in zip(chunk, outcomes, strict=True):
                if isinstance(outcome, Exception):
                    return None
                self.digests[position] = outcome
        return content_digest(self.digests[row.position] for row in self.rows)

    def chunks(self, positions: Sequence[int]) -> list[Chunk]:
        """Clips of like length together, the longest first, as batches want them."""
        chunks: list[list[int]] = []
        filled = 0.0
        for position in sorted(positions, key=lambda position: (-self.rows[position].duration, position)):
            seconds = self.rows[position].duration
            if not chunks or len(chunks[-1]) == CLIPS_AT_A_TIME or filled + seconds > SECONDS_AT_A_TIME:
                chunks.append([])
                filled = 0.0
            chunks[-1].append(position)
            filled += seconds
        return [tuple(chunk) for chunk in chunks]

    def submit(self, chunk: Chunk, work: Callable[..., Any] = perturb_clips) -> Future:
        """Have a worker perturb some clips."""
        chosen = [self.clips.clips[position] for position in chunk]
        return self.origin.pool.submit(work, self.job, chosen, self.origin.banks)

    def windows(self, wanted: set[int]) -> Iterator[LiveWindow]:
        """The wanted clips, some at a time, perturbed ahead of the caller by the workers."""
        for chunk, outcomes in self._results(perturb_clips, self.chunks(sorted(wanted))):
            by_position = dict(zip(chunk, outcomes, strict=True))
            rows = []
            for position, outcome in by_position.items():
                row = self.rows[position]
                if not isinstance(outcome, Exception):
                    self.digests[position] = outcome[1]
                    row = replace(row, duration=len(outcome[0]) / RATE)
                rows.append(row)
            yield LiveWindow(rows, by_position)

    def _results(self, work: Callable[..., Any], chunks: list[Chunk]) -> Iterator[tuple[Chunk, list[Any]]]:
        """What the workers make of each chunk, in order; a few chunks are under way at a time."""
        begun = self.origin.take_early(self.name) if work is perturb_clips else {}
        waiting, running = deque(chunks), deque[tuple[Chunk, Future]]()
        most = self.origin.workers + 1
        try:
            while waiting or running:
                while waiting and len(running) < most:
                    chunk = waiting.popleft()
                    running.append((chunk, begun.pop(chunk) if chunk in begun else self.submit(chunk, work)))
                if not waiting and self.following is not None:
                    self.origin.begin_early(self.following, most - len(running))
                chunk, future = running.popleft()
                yield chunk, _result(future)
        finally:
            for future in (*begun.values(), *(future for _, future in running)):
                future.cancel()

    def stored_audio(self, ids: set[str]) -> list[tuple[str, bytes]]:
        """The FLAC files that the built config has for some clips; the others are not even decoded."""
        sources = {**DEMO, **self.origin.sources}
        _, listed = clips(self.job.selection, sources, self.origin.limit, self.origin.tts)
        rows = [make_row(self.job, item, item.load(), self.origin.banks) for item in listed if item.id in ids]
        return [(row["id"], row["audio"]["bytes"]) for row in rows]


def _result(future: Future) -> Any:
    try:
        return future.result()
    except BrokenProcessPool:
        raise UserError("a worker that perturbs clips died, perhaps for want of memory; try fewer of them") from None
