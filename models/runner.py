"""Run a recogniser over dataset configs and store its predictions. A run that was killed continues where it stopped.

`srb run --engine ray` spreads configs over a Ray cluster, one loaded model per worker. The predictions folder and the
data must be on a file system that every node sees, or on the Hub. One worker does a config from beginning to end, so
the files are the same as those of a local run.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import structs

from speech_robust_bench.builders.config_sources import open_data
from speech_robust_bench.builders.configs import ClipRow, Config, ConfigSource
from speech_robust_bench.core.engines import RayActors
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.names import parse
from speech_robust_bench.core.progress import progress
from speech_robust_bench.core.records import Prediction, RunConfig, parse_line
from speech_robust_bench.models.environments import open_in_environment
from speech_robust_bench.models.interface import Recogniser, RunMode, Spec, open_model
from speech_robust_bench.models.run_folder import PredictionsFile, RunFile, describe, line_of, read_lines, record_of
from speech_robust_bench.models.transcriber import Transcriber, prefetch, read_batches
from speech_robust_bench.scoring.runs import ANCHORS

if TYPE_CHECKING:
    from speech_robust_bench.builders.live_config import LiveConfigs


class ClipChoice(Protocol):
    """A suite, as a run sees it: which clips of a config to transcribe, and the name that run.json keeps of it."""

    @property
    def label(self) -> str: ...

    def choose(self, config: str, ids: Sequence[str]) -> Collection[str]: ...


@dataclass(frozen=True)
class RunJob:
    """What to run, on which data, into which folder, and how."""

    spec: Spec
    folder: Path
    where: str  # the data, as the user wrote it
    name: str | None = None  # the model's name, where its own will not do
    environment: tuple[str, ...] = ()  # the requirements of the environment that the model runs in; none: this one
    device: str | None = None
    batch_size: int | None = None
    batch_seconds: float | None = None
    limit: int | None = None
    retry_failed: bool = False
    mode: RunMode | None = None  # another way to use the model than on whole clips
    source: LiveConfigs | None = None  # where configs are perturbed as they are read, for workers elsewhere
    recogniser: Recogniser | None = None  # a loaded model; `spec` stands for it in run.json
    suite: ClipChoice | None = None  # takes some clips of each config

    def rows(self, config: Config) -> list[ClipRow]:
        """The clips of a config that are wanted."""
        rows = config.rows[: self.limit]
        chosen = self.suite.choose(config.name, [row.id for row in rows]) if self.suite else None
        return rows if chosen is None else [row for row in rows if row.id in chosen]

    def open(self) -> Recogniser:
        """Load the model, in its environment if it has one."""
        if self.environment:
            return open_in_environment(self.spec, self.environment, device=self.device, batch_size=self.batch_size)
        return open_model(self.spec, device=self.device, batch_size=self.batch_size)

    def missing(self, config: Config) -> list[ClipRow]:
        """The wanted clips that have no prediction yet."""
        done: dict[str, bytes] = {}
        for name in (f"{config.name}.jsonl", f"{config.name}.jsonl.part"):
            done |= read_lines(self.folder / name)[0]
        if self.retry_failed:
            done = {clip_id: line for clip_id, line in done.items() if b'"error": ' not in line}
        return [row for row in self.rows(config) if row.id not in done]


def run_configs(
    options: RunJob, configs: Sequence[Config], advance: Callable[[str, float], None] = lambda label, seconds: None
) -> dict[str, RunConfig]:
    """Transcribe the configs in turn and return the entry of each in run.json.

    `advance` is told which config is being worked on, and the seconds of audio that are done since it was last told.
    """
    runner = Runner(options)
    records = {}
    try:
        for number, config in enumerate(clean_first(configs), 1):
            label = f"{config.name} {number}/{len(configs)}"
            records[config.name] = runner.run(config, partial(advance, label))
    finally:
        runner.close()
    return records


def clean_first(configs: Sequence[Config]) -> list[Config]:
    """Clean speech before the rest, which is scored against it: a run that is cut short can still be scored."""
    return sorted(configs, key=lambda config: parse(config.name).scenario != "clean")


def run_with_progress(options: RunJob, configs: Sequence[Config], quiet: bool = False) -> dict[str, RunConfig]:
    """`run_configs` with a progress bar in seconds of audio."""
    from speech_robust_bench.core.progress import progress

    total = sum(row.duration for config in configs for row in options.rows(config))
    with progress(quiet) as bar:
        task = bar.add_task("", total=round(total))
        done = 0.0

        def advance(label: str, seconds: float) -> None:
            nonlocal done
            done += seconds
            bar.update(task, description=f"{label}, audio s", completed=round(done))

        return run_configs(options, configs, advance)


class Runner:
    """One model over any number of configs. The model is loaded when the first clip needs it, and once."""

    def __init__(self, options: RunJob) -> None:
        self.options = options
        self.run_file = RunFile(options.folder)
        self.run_file.check(options.spec, options.environment)
        self._transcriber: Transcriber | None = None

    @property
    def transcriber(self) -> Transcriber:
        if self._transcriber is None:
            recogniser = self.options.recogniser or self.options.open()
            if self.options.mode:
                recogniser = self.options.mode.wrap(recogniser)
            self.run_file.check_loaded(recogniser)
            self._transcriber = Transcriber(recogniser)
            about = describe(self.options.spec, recogniser, self.options.where, self.options.name)
            about = about.replace(perturbed=self.options.source.record if self.options.source else None)
            self.run_file.update(lambda known: about.replace(configs=known.configs or {}, run_name=known.run_name))
        return self._transcriber

    def close(self) -> None:
        if self._transcriber is not None:
            self._transcriber.recogniser.close()

    def run(
        self,
        config: Config,
        advance: Callable[[float], None] = lambda seconds: None,
        only: Collection[str] | None = None,
    ) -> RunConfig:
        """Transcribe what is missing of a config, finish its file, and return its entry of run.json.

        `advance` is told the seconds of audio that are done, those of an earlier run first. `only` names the clips that
        are wanted, where it is not all of them; the file keeps those that it has already.
        """
        rows = [row for row in self.options.rows(config) if only is None or row.id in only]
        with PredictionsFile(self.options.folder, config.name, retry_failed=self.options.retry_failed) as predictions:
            if predictions.lines:
                self._check_data(config)
            missing = [row for row in rows if row.id not in predictions.lines]
            advance(sum(row.duration for row in rows) - sum(row.duration for row in missing))
            if missing:
                self._transcribe(config, {row.position for row in missing}, predictions, advance)
            if missing or predictions.part.exists() or not predictions.final.exists():
                predictions.finish(row.id for row in config.rows)
            lines = (predictions.lines[row.id] for row in config.rows if row.id in predictions.lines)
            record = record_of(config.about, len(config.rows), map(parse_line, lines))
            whole = record.rows == record.of
            record = record.replace(
                content_sha256=self._content_sha256(config, bool(missing), whole),
                suite=None if whole else self._label(config),
                sha256=hashlib.sha256(predictions.final.read_bytes()).hexdigest(),
            )
        self._note(config.name, record)
        return record

    def _transcribe(
        self, config: Config, wanted: set[int], predictions: PredictionsFile, advance: Callable[[float], None]
    ) -> None:
        transcriber = self.transcriber
        if not self._known(config.name):
            self._note(config.name, RunConfig(**structs.asdict(config.about)))  # which data the part file belongs to
        batch_size = self.options.batch_size or transcriber.recogniser.batch_size
        facts = self._facts(config, wanted)
        for batch in prefetch(read_batches(config, wanted, batch_size, self.options.batch_seconds)):
            outcomes = transcriber.transcribe(batch)
            transcribed = zip(batch.rows, outcomes, batch.clips, strict=True)
            lines = [line_of(config.name, *each) for each in transcribed]
            predictions.add([line.replace(**facts(line)) for line in lines] if facts else lines)
            advance(sum(config.rows[row.position].duration for row in batch.rows))

    def _known(self, name: str) -> RunConfig | None:
        """What run.json has of a config from an earlier run."""
        record = self.run_file.read()
        return record.configs.get(name) if record and record.configs else None

    def _label(self, config: Config) -> str | None:
        """The suite whose clips the file has; one with anchors in it stays one until it is whole."""
        known = self._known(config.name)
        if known and known.suite and known.suite.startswith(ANCHORS):
            return known.suite
        return self.options.suite.label if self.options.suite else None

    def _facts(self, config: Config, wanted: set[int]) -> Callable[[Prediction], dict[str, Any]] | None:
        """What the mode adds to the predictions of the wanted clips."""

        def clean() -> Config:
            source = config.about.source
            return (self.options.source or open_data(self.options.where)).config(source) if source else config

        mode = self.options.mode
        return mode.facts(config, clean, wanted, self.options.folder.parent) if mode else None

    def _check_data(self, config: Config) -> None:
        """Refuse to go on from other data."""
        known = self._known(config.name)
        if known and not known.same_data(config.about):
            raise self._other_data(config)

    def _content_sha256(self, config: Config, changed: bool, whole: bool) -> str | None:
        """The hash of the config's content; of a part of its clips only what is known without perturbing the others."""
        known = self._known(config.name) or RunConfig()
        if not whole:
            return config.about.content_sha256 or known.content_sha256
        content = config.content_sha256(known, changed)
        if known.content_sha256 and content and known.content_sha256 != content:
            raise self._other_data(config)
        return content

    def _other_data(self, config: Config) -> UserError:
        return UserError(
            f"{self.options.folder / config.name}.jsonl was made from other data than {self.options.where} now holds; "
            "delete it, or give this run a folder of its own with --name"
        )

    def _note(self, name: str, record: RunConfig) -> None:
        if self._known(name) != record:
            self.run_file.update(lambda known: known.replace(configs={**(known.configs or {}), name: record}))


class ConfigWorker:
    """Holds one runner; a method call is one config."""

    def __init__(self, options: RunJob) -> None:
        self.data: ConfigSource = options.source or open_data(options.where)
        self.runner = Runner(options)

    def run(self, name: str) -> tuple[str, RunConfig]:
        """The config's name and its record."""
        return name, self.runner.run(self.data.config(name))


def run_on_ray(options: RunJob, names: list[str], workers: int | None, quiet: bool) -> dict[str, RunConfig]:
    """Give each worker one config at a time, and collect their records in the order asked for."""
    Runner(options)  # refuses a folder that holds another run, before any worker starts
    where = Path(options.where).resolve().as_posix() if Path(options.where).is_dir() else options.where
    source = options.source and replace(options.source, workers=1)  # the cores are shared out among the models
    shared = replace(options, folder=options.folder.resolve(), where=where, source=source)
    actors = RayActors(ConfigWorker, (shared,), workers, most=len(names))
    records: dict[str, RunConfig] = {}
    try:
        with progress(quiet) as bar:
            task = bar.add_task(f"configs, {actors.workers} workers", total=len(names))
            for name, record in actors.map_unordered("run", ((name,) for name in names)):
                records[name] = record
                bar.advance(task)
    finally:
        actors.close()
    return {name: records[name] for name in names}
