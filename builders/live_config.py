"""Configs that are perturbed while the recogniser works, from the corpus itself: no build, and no audio on disk.

Worker processes perturb some clips ahead of the recogniser. Rows, predictions and hashes are those of the built config:
`content_sha256` is computed from the samples as they pass. A clip has one worker, which decodes it once for all configs
and keeps it, up to KEPT_BYTES in all. What waits for the recogniser is bounded, whatever the size of the corpus.
"""

from __future__ import annotations

import os
import shlex
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import pairwise
from typing import Any

import numpy as np

from speech_robust_bench.builders.banks import Banks
from speech_robust_bench.builders.configs import ClipRow, clip_facts, reference_turns
from speech_robust_bench.builders.corpora import Problem, Sources, Utterance, as_sources
from speech_robust_bench.builders.corpora.base import Audio
from speech_robust_bench.builders.plan import (
    DEMO,
    CheckedClip,
    CheckedClips,
    Job,
    OnError,
    Progress,
    available,
    check,
    check_clips,
    clips,
    config_inputs,
    fingerprint,
    job_named,
    material,
    plan,
)
from speech_robust_bench.builders.row_generator import RowGenerator, reference
from speech_robust_bench.builders.scenario import Scenario
from speech_robust_bench.builders.scenarios import SCENARIOS
from speech_robust_bench.core.audio import RATE, Samples, encode_flac, from_pcm16, to_pcm16
from speech_robust_bench.core.engines import Processes, cores
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.names import ConfigName
from speech_robust_bench.core.records import ConfigData, PerturbedCorpora
from speech_robust_bench.core.rows import content_digest, transcripts_digest
from speech_robust_bench.core.seeding import BENCHMARK_VERSION, later_version

# What the workers perturb at a time, and what waits in memory for the recogniser: bounded in clips and in seconds.
CLIPS_AT_A_TIME = 64
SECONDS_AT_A_TIME = 640.0
MOST_WORKERS = 4
MOST_CHUNKS = 3  # under way at a time
KEPT_BYTES = 2**30  # of decoded clips, in all workers together: nine hours of 16-bit speech
Chunk = tuple[int, ...]  # positions of clips of like length
Perturbed16 = tuple[np.ndarray, str]  # 16-bit samples, and the hash of the row
Part = tuple[Chunk, Future]  # one worker's clips of a chunk


def default_workers() -> int:
    """As many as leave a core to the recogniser; more than a few are never needed."""
    return min(MOST_WORKERS, max(1, cores() - 1))


def _memory_bytes() -> int:
    """The memory of the machine, or a guess where the system does not tell."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return 4 * 2**30


# --- in a worker -----------------------------------------------------------------------------------------------------


class KeptClips:
    """Decoded clips that a worker keeps, the first that come up to some bytes: the next config has the same clips."""

    def __init__(self) -> None:
        self.bytes = 0
        self._clips: dict[str, Samples] = {}

    def keep(self, digest: str, samples: Samples, most_bytes: int) -> None:
        """Keep a clip, as 16-bit samples if they hold all of it, while there is room."""
        if digest in self._clips or self.bytes >= most_bytes:
            return
        pcm = to_pcm16(samples)
        whole = np.array_equal(from_pcm16(pcm).view(np.int32), np.asarray(samples, np.float32).view(np.int32))
        self._clips[digest] = pcm if whole else samples
        self.bytes += self._clips[digest].nbytes

    def load(self, clip: CheckedClip, most_bytes: int) -> Samples:
        """The samples that a clip had when it was checked, from memory or else from its file."""
        kept = self._clips.get(clip.samples_digest)
        if kept is None:
            samples = clip.load()
            self.keep(clip.samples_digest, samples, most_bytes)
            return samples
        return from_pcm16(kept) if kept.dtype == np.int16 else kept


_kept = KeptClips()


def check_and_keep(
    utterances: Sequence[Utterance], tick: Callable[[int], None], *, most_bytes: int
) -> list[tuple[str, float] | Problem]:
    """Decode each clip and keep it for the configs to come."""
    return check(utterances, tick, partial(_kept.keep, most_bytes=most_bytes))


def perturb_clips(
    generator: RowGenerator, chosen: Sequence[CheckedClip], most_bytes: int
) -> list[Perturbed16 | Exception]:
    """The 16-bit samples and the hash of each clip's row; the error of a clip that has none stands in its place."""
    perturbed: list[Perturbed16 | Exception] = []
    for clip in chosen:
        try:
            [row] = generator.rows(clip.utterance, _kept.load(clip, most_bytes))
            perturbed.append((row.pcm, row.sha256))
        except Exception as error:  # a file that changed since it was checked is that clip's failure alone
            perturbed.append(error)
    return perturbed


def row_digests(generator: RowGenerator, chosen: Sequence[CheckedClip], most_bytes: int) -> list[str | Exception]:
    """The hash of each perturbed row, without its audio."""
    outcomes = perturb_clips(generator, chosen, most_bytes)
    return [outcome if isinstance(outcome, Exception) else outcome[1] for outcome in outcomes]


# --- in the program --------------------------------------------------------------------------------------------------


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
    _checked: dict[ConfigName, CheckedClips] = field(default_factory=dict, repr=False)
    _pool: Processes | None = field(default=None, repr=False)
    _early: tuple[str, dict[Chunk, list[Part]]] = field(default=("", {}), repr=False)

    @property
    def record(self) -> PerturbedCorpora:
        """What run.json keeps, from which `reopen` makes these configs again."""
        sources = self.sources.items()
        return PerturbedCorpora(
            corpora={
                str(ConfigName(language, "", corpus=name)).removesuffix("_"): at for (language, name), at in sources
            },
            noise_dir=_text(self.banks.noise_dir),
            rir_dir=_text(self.banks.rir_dir),
            tts=self.tts,
            limit=self.limit,
        )

    @property
    def where(self) -> str:
        """The corpora to perturb, in the words of the command's options."""
        record = self.record
        flags = {
            "--noise-dir": record.noise_dir,
            "--rir-dir": record.rir_dir,
            "--tts": record.tts,
            "--limit": record.limit,
        }
        words = [word for name, at in record.corpora.items() for word in ("--corpus", f"{name}={at}" if at else name)]
        return shlex.join([*words, *(str(word) for flag, value in flags.items() if value for word in (flag, value))])

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
            corpus, listed = clips(job.selection, {**DEMO, **self.sources}, self.limit, self.tts)
            work = partial(check_and_keep, most_bytes=self.kept_bytes)
            checked = check_clips(corpus, listed, self.pool, self.progress, work)
            for problem in checked.problems:
                self.report(problem)
            checked.refuse_unusable(self.on_error)
            if checked.untranscribed:
                self.report(checked.untranscribed)
            self._checked[job.selection] = checked
        return self._checked[job.selection]

    @property
    def pool(self) -> Processes:
        if self._pool is None:
            self._pool = Processes(self.workers, ["speech_robust_bench.builders.forkserver_preload"], pinned=True)
        return self._pool

    @property
    def kept_bytes(self) -> int:
        """How many bytes of decoded clips each worker may keep: of a small machine's memory an eighth in all."""
        return min(KEPT_BYTES, _memory_bytes() // 8) // self.workers

    def take_early(self, name: str) -> dict[Chunk, list[Part]]:
        """What was begun for a config before it was asked for; what was begun for another is given up."""
        begun_for, chunks = self._early
        self._early = "", {}
        if begun_for == name:
            return chunks
        _cancel(chunks.values())
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

    def __getstate__(self) -> dict[str, object]:
        """Without processes and what writes to a terminal: the other side has its own, or none."""
        local = ("progress", "report")
        kept = {key: value for key, value in self.__dict__.items() if key not in local}
        return {**kept, "_pool": None, "_early": ("", {})}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        fresh = LiveConfigs(state["sources"])
        self.__dict__.update({**fresh.__dict__, **state})


def reopen(record: PerturbedCorpora) -> LiveConfigs:
    """The configs that a run was made on; clips that cannot be used are left out, as far as that run allowed it."""
    banks = Banks(record.noise_dir, record.rir_dir)
    return LiveConfigs(as_sources(record.corpora), banks, limit=record.limit, tts=record.tts, on_error="skip")


def _text(path: str | os.PathLike | None) -> str | None:
    return os.fspath(path) if path else None


@dataclass
class LiveWindow:
    """Some perturbed clips in memory, with their exact durations."""

    rows: list[ClipRow]
    outcomes: Mapping[int, Perturbed16 | Exception]

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
                self._facts(item.audio),
                columns=item.columns,
            )
            for position, clip in enumerate(self.clips.clips)
            for item in (clip.utterance,)
        ]

    def _facts(self, audio: Audio) -> dict[str, Any]:
        """What the prediction of a clip is told: of its scenario, and who speaks when, unless the times move."""
        scenario = self.job.scenario
        stays = scenario.keeps_start and not scenario.stretches
        turns = reference_turns(getattr(audio, "segments", ())) if stays else {}
        return {**clip_facts(scenario.facts, lambda name: getattr(audio, name, None)), **turns}

    @cached_property
    def about(self) -> ConfigData:
        """What run.json says of the config; its content's hash is only known when every clip has been perturbed."""
        name, scenario = self.job.name, self.job.scenario
        went_in = material(self.job, self.origin.banks, self.clips.listing)
        return ConfigData(
            language=self.rows[0].language,
            corpus=self.clips.clips[0].utterance.corpus or name.corpus,
            scenario=scenario.name,
            severity=self.job.severity,
            category=scenario.category,
            source=None if scenario.name == "clean" else str(name.clean),
            bank=went_in and went_in.title,
            stand_in=went_in and went_in.stand_in,
            benchmark_version=BENCHMARK_VERSION,
            rows_sha256=transcripts_digest((row.id, row.text) for row in self.rows),
            fingerprint=self._fingerprint(),
            scenario_version=later_version(scenario.edition_with(self.origin.banks.version)),
        )

    def _fingerprint(self) -> str:
        """What `srb build` would write into the manifest of a config made from these clips."""
        checked = self.clips
        return fingerprint(config_inputs(self.job, checked.corpus, checked.listing, self.origin.banks, seed=""))

    def content_sha256(self, known: ConfigData, changed: bool) -> str | None:
        """The hash of the built config. It is kept where a run has it already, else computed from every clip.

        After an interruption the clips transcribed before are perturbed once more for it.
        """
        if not changed and known.content_sha256 and known.fingerprint == self.about.fingerprint:
            return known.content_sha256
        remaining = [row.position for row in self.rows if row.position not in self.digests]
        for chunk, outcomes in self._perturbed(row_digests, self.chunks(remaining)):
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

    def submit(self, chunk: Chunk, work: Callable[..., Any] = perturb_clips) -> list[Part]:
        """Have each clip of a chunk perturbed by the worker that keeps it."""
        origin, checked = self.origin, self.clips.clips
        generator = RowGenerator((self.job,), origin.banks)
        parts = []
        for worker in range(origin.workers):
            if positions := tuple(position for position in chunk if position % origin.workers == worker):
                chosen = [checked[position] for position in positions]
                future = origin.pool.submit(work, generator, chosen, origin.kept_bytes, worker=worker)
                parts.append((positions, future))
        return parts

    def windows(self, wanted: set[int]) -> Iterator[LiveWindow]:
        """The wanted clips, some at a time, perturbed ahead of the caller by the workers."""
        for chunk, outcomes in self._perturbed(perturb_clips, self.chunks(sorted(wanted))):
            by_position = dict(zip(chunk, outcomes, strict=True))
            rows = []
            for position, outcome in by_position.items():
                row = self.rows[position]
                if not isinstance(outcome, Exception):
                    self.digests[position] = outcome[1]
                    row = replace(row, duration=len(outcome[0]) / RATE)
                rows.append(row)
            yield LiveWindow(rows, by_position)

    def _perturbed(self, work: Callable[..., Any], chunks: list[Chunk]) -> Iterator[tuple[Chunk, list[Any]]]:
        """What the workers make of each chunk, in order; a few chunks are under way at a time."""
        begun = self.origin.take_early(self.name) if work is perturb_clips else {}
        waiting, running = deque(chunks), deque[tuple[Chunk, list[Part]]]()
        most = min(MOST_CHUNKS, self.origin.workers + 1)
        try:
            while waiting or running:
                while waiting and len(running) < most:
                    chunk = waiting.popleft()
                    running.append((chunk, begun.pop(chunk) if chunk in begun else self.submit(chunk, work)))
                if not waiting and self.following is not None:
                    self.origin.begin_early(self.following, most - len(running))
                chunk, parts = running.popleft()
                yield chunk, _results_of(chunk, parts)
        finally:
            _cancel((*begun.values(), *(parts for _, parts in running)))

    def stored_audio(self, ids: set[str]) -> list[tuple[str, bytes]]:
        """The FLAC files that the built config has for some clips; the others are not even decoded."""
        sources = {**DEMO, **self.origin.sources}
        _, listed = clips(self.job.selection, sources, self.origin.limit, self.origin.tts)
        generator = RowGenerator((self.job,), self.origin.banks)
        rows = [row for item in listed if item.id in ids for row in generator.rows(item, item.load())]
        return [(row.utterance.id, encode_flac(row.pcm)) for row in rows]


def _cancel(chunks: Iterable[list[Part]]) -> None:
    for parts in chunks:
        for _, future in parts:
            future.cancel()


def _results_of(chunk: Chunk, parts: list[Part]) -> list[Any]:
    """What the workers made of a chunk, in its order."""
    try:
        results = {place: one for places, future in parts for place, one in zip(places, future.result(), strict=True)}
    except BrokenProcessPool:
        raise UserError("a worker that perturbs clips died, perhaps for want of memory; try fewer of them") from None
    return [results[place] for place in chunk]
