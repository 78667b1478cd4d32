"""`srb.run`: a recogniser over configs, into a run folder. `srb.evaluate`: the same, scored."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from speech_robust_bench.builders import suites
from speech_robust_bench.builders.corpora import Corpora
from speech_robust_bench.builders.suites import Suite
from speech_robust_bench.core.engines import RayActors
from speech_robust_bench.core.errors import UserError, warn
from speech_robust_bench.core.names import with_clean
from speech_robust_bench.core.options import Settings
from speech_robust_bench.data_source import DataSource
from speech_robust_bench.models.adapters.python import as_recogniser
from speech_robust_bench.models.interface import Recogniser, Spec, check_spec, parse_spec
from speech_robust_bench.models.run_folder import error_of_all
from speech_robust_bench.models.run_plan import (
    ModelEntry,
    RunPlan,
    check_cost,
    check_until,
    estimated_cost,
    plan_run,
    read_models,
    run_until,
)
from speech_robust_bench.models.runner import RunJob, run_on_ray, run_with_progress
from speech_robust_bench.options import DataOptions, ModelOptions, Place, RunOptions
from speech_robust_bench.run_results import Results

if TYPE_CHECKING:
    from speech_robust_bench.builders.configs import Config
    from speech_robust_bench.core.records import RunConfig


@dataclass(frozen=True)
class RunSummary:
    """Result of a run: folder, entry of each config in run.json, its cost, and the error if all clips failed."""

    folder: Path
    records: dict[str, RunConfig]
    cost: float = 0.0  # US dollars, by the price list
    error: str | None = None

    @property
    def failed(self) -> int:
        """How many clips failed."""
        return sum(record.failed or 0 for record in self.records.values())

    def __str__(self) -> str:
        rows, audio_s, seconds = (
            sum(getattr(each, key) for each in self.records.values()) for key in ("rows", "audio_s", "seconds")
        )
        speed = f", real-time factor {seconds / audio_s:.4f}" if audio_s and seconds else ""
        return f"{self.folder}: {len(self.records)} configs, {rows} clips, {audio_s / 3600:.2f} h{speed}"


def run(
    model: Any,
    configs: str | Sequence[str] = (),
    *,
    corpus: Corpora = None,
    data: Place | None = None,
    limit: int | None = None,
    out: Place | None = None,
    data_options: DataOptions = DataOptions(),
    run_options: RunOptions = RunOptions(),
    progress: bool = True,
) -> RunSummary:
    """Run a recogniser over configs and store its transcripts, one file for each config.

    Args:
        model: as in `srb.evaluate`.
        configs: names or patterns, "en_noise_*"; without any, all that there are.
        corpus: where corpora are, {"en": "LibriSpeech"}: their clips are perturbed while the model works.
        data: without a corpus, a built folder, a name in the datasets cache, or a Hub dataset; "srb" by default.
        limit: only the first clips of each config.
        out: the run folder, `runs/<model>` by default; a run that was interrupted continues where it stopped.
        data_options, run_options: noises, rooms, voices; name, suite, batches, device, live use and so on.
        progress: show progress.
    """
    with _opened(model, configs, corpus, data, limit, out, data_options, run_options, progress) as (job, opened):
        return _transcribe(job, opened, run_options, progress)


def plan(
    model: Any,
    configs: str | Sequence[str] = (),
    *,
    corpus: Corpora = None,
    data: Place | None = None,
    limit: int | None = None,
    out: Place | None = None,
    data_options: DataOptions = DataOptions(),
    run_options: RunOptions = RunOptions(),
    progress: bool = True,
) -> RunPlan:
    """Estimate the hours of `srb.run` with the same arguments, and their price; nothing is stored.

    The speed is `run_options.rtfx`, or that of an earlier run in the folder, or else the model is loaded and measured.
    """
    with _opened(model, configs, corpus, data, limit, out, data_options, run_options, progress) as (job, opened):
        planned, job = plan_run(job, opened, run_options.rtfx, run_options.price_per_hour)
        if job.recogniser is not None:
            job.recogniser.close()
        return planned


@contextmanager
def _opened(
    model: Any,
    configs: str | Sequence[str],
    corpus: Corpora,
    data: Place | None,
    limit: int | None,
    out: Place | None,
    data_options: DataOptions,
    options: RunOptions,
    progress: bool,
) -> Iterator[tuple[RunJob, list[Config]]]:
    """What `run` was asked, as a job and its configs."""
    loaded = recogniser_of(model, options)
    folder = Path(out) if out else run_folder(model, "runs", options)
    place = (data or "srb") if not corpus else data
    _check(configs, options)
    with DataSource(corpus, place, limit, data_options, options.perturb_workers, progress) as source:
        suite = _suite(options)
        names = source.select(_patterns(configs), suite)
        if options.until is not None:
            names = _with_clean(names, source, progress)
        else:
            _warn_no_clean(names, folder)
        yield _job(loaded, folder, source, options, suite), source.open(names)


def run_folder(model: Any, parent: Place, options: ModelOptions = ModelOptions()) -> Path:
    """The run folder of a model: its name, or the name in its spec, below a folder of runs."""
    mode = options.mode if isinstance(options, RunOptions) else None
    spec, _ = recogniser_of(model, options)
    suffix = f"-{mode.suffix}" if mode and spec.adapter != mode.suffix else ""
    return Path(parent) / (options.name or spec.folder + suffix)


def run_models(
    file: Place, configs: str | Sequence[str] = (), *, out: Place = "runs", **how: Any
) -> Iterator[RunSummary]:
    """Run every model of a YAML file, one after another; with the engine "ray", each on a worker of the cluster.

    Args:
        file: its models, as in docs/how-to/run-many-models.md.
        out: the folder for the runs, `out/<model>`.
        configs, how: as in `srb.run`; names and environments of the models come from the file.
    """

    options = how.get("run_options", RunOptions())
    if options.name:
        raise UserError("--name is for one model; the models of a file have their names there")
    entries = read_models(os.fspath(file))
    each = [_for_entry(options, entry) for entry in entries]
    calls = [
        (entry.spec, configs, {**how, "out": run_folder(entry.spec, out, own), "run_options": own})
        for entry, own in zip(entries, each, strict=True)
    ]
    if options.engine == "ray":
        yield from _run_models_on_ray(calls, options.workers)
        return
    for spec, patterns, own in calls:
        yield run(spec, patterns, **own)


def evaluate(
    model: Any,
    configs: str | Sequence[str] = (),
    *,
    corpus: Corpora = None,
    data: Place | None = None,
    limit: int | None = None,
    out: Place | None = None,
    data_options: DataOptions = DataOptions(),
    run_options: RunOptions = RunOptions(),
    progress: bool = True,
) -> Results:
    """Run a recogniser over configs and score it. Clips are perturbed while it works; nothing is built.

    Args:
        model: a spec such as "moonshine" or "hf:openai/whisper-tiny.en", a function `(clips, rate, language) -> texts`,
            a transformers pipeline for speech recognition, or an object with a method `transcribe` like that function.
        configs: names or patterns, "en-demo_*"; the clean configs that they are compared with are added.
        corpus: where corpora are, {"en": "LibriSpeech", "en-mine": FOLDER}; the demo corpus is built in.
        data: a built folder or a Hub dataset to read instead of perturbing.
        limit: only the first clips of each corpus.
        out: the run folder to write or to continue; by default a temporary one, which `Results.save` keeps.
        data_options: where noises, rooms, voices and scenarios of your own come from.
        run_options: the model's name, a suite instead of configs, `until` an interval is narrow enough, batches,
            device. With `mode=srb.StreamOptions()` the model is used live, chunk by chunk:
            `Results.measure("streaming")` has latency and stability then. An object without a method `stream` is used
            by local agreement, as `live:` does.
        progress: show progress.
    """
    spec, recogniser = recogniser_of(model, run_options)
    _check(configs, run_options)
    if not configs and not run_options.suite:
        raise UserError("say which configs: names or patterns such as 'en-demo_*', or a suite such as 'fast'")
    if run_options.suite and data is None:
        corpus = corpus or {"en-demo": None}
    kept = None if out else tempfile.TemporaryDirectory(prefix="srb-run-")
    folder = Path(out) if out else Path(kept.name) / (run_options.name or spec.folder)  # type: ignore[union-attr]
    with DataSource(corpus, data, limit, data_options, run_options.perturb_workers, progress) as source:
        suite = _suite(run_options)
        if suite and source.perturbed and "tts" in suite.members and not data_options.tts:
            warn(f"suite {suite.name!r} without tts: name the engine that speaks, as in DataOptions(tts='espeak')")
        stored = None if source.perturbed else set(source.configs.names())
        names = with_clean(source.select(_patterns(configs), suite), stored)
        job = _job((spec, recogniser), folder, source, run_options, suite)
        summary = _transcribe(job, source.open(names), run_options, progress)
    if summary.error:
        raise UserError(f"every clip failed, the first with: {summary.error}")
    return Results(folder, _kept=kept)


def recogniser_of(model: Any, options: ModelOptions) -> tuple[Spec, Recogniser | None]:
    """A model as the runner takes it: the spec of one that is loaded later, or an object and the spec for it."""

    if not isinstance(model, str):
        spec, recogniser = as_recogniser(model, options.name, options.batch_size)
        mode = options.mode if isinstance(options, RunOptions) else None
        return spec, mode.adapted(recogniser) if mode else recogniser
    spec = parse_spec(model)
    check_spec(spec)
    return spec, None


def _patterns(configs: str | Sequence[str]) -> list[str]:
    return [configs] if isinstance(configs, str) else list(configs)


def _check(configs: str | Sequence[str], options: RunOptions) -> None:
    """Refuse what does not go together, before anything is opened."""

    if options.suite and configs:
        raise UserError("give either configs or a suite")
    check_until(options.until, suite=bool(options.suite), mode=options.mode is not None, ray=options.engine == "ray")


def _suite(options: RunOptions) -> Suite | None:

    return suites.load(options.suite) if options.suite else None


def _with_clean(names: list[str], source: DataSource, progress: bool) -> list[str]:
    """The configs and the clean ones that `until` compares them with; those that were not asked for are named."""
    chosen = with_clean(names, None if source.perturbed else source.configs.names())
    if (added := [name for name in chosen if name not in names]) and progress:
        print(f"added {', '.join(added)}, which the others are compared with")
    return chosen


def _warn_no_clean(names: list[str], folder: Path) -> None:
    """Say before hours of work that there will be no WERD, because a clean config is neither chosen nor there."""
    from speech_robust_bench.builders.plan import lacking_clean

    if lacking := lacking_clean(names, {path.stem for path in folder.glob("*.jsonl")}):
        warn(f"no WERD without {', '.join(lacking)}, which the others are compared with: run it too")


def _job(
    model: tuple[Spec, Recogniser | None], folder: Path, source: DataSource, options: RunOptions, suite: Suite | None
) -> RunJob:
    return RunJob(
        spec=model[0],
        folder=folder,
        where=source.where,
        name=options.name,
        environment=tuple(options.env),
        device=options.device,
        batch_size=options.batch_size,
        batch_seconds=options.batch_seconds,
        limit=None if source.perturbed else source.limit,
        retry_failed=options.retry_failed,
        mode=options.mode,
        source=source.perturbed,
        recogniser=model[1],
        suite=suite,
    )


def _transcribe(job: RunJob, configs: list[Config], options: RunOptions, progress: bool) -> RunSummary:
    cost = estimated_cost(job, configs)
    check_cost(cost, options.pay)
    if options.price_per_hour is not None:
        planned, job = plan_run(job, configs, options.rtfx, options.price_per_hour)
        if progress:
            print(planned, file=sys.stderr, flush=True)
    records = _records(job, configs, options, progress)
    return RunSummary(job.folder, records, cost, error_of_all(job.folder, records))


def _records(job: RunJob, configs: list[Config], options: RunOptions, progress: bool) -> dict[str, RunConfig]:
    if options.until is not None:
        return run_until(job, configs, options.until, print if progress else lambda line: None, warn)
    if options.engine == "ray":
        return run_on_ray(job, [config.name for config in configs], options.workers, not progress)

    return run_with_progress(job, configs, not progress)


def _for_entry(options: RunOptions, entry: ModelEntry) -> RunOptions:
    env, rtfx = (*entry.env, *options.env), options.rtfx or entry.rtfx
    return replace(options, name=entry.name, env=env, rtfx=rtfx, engine="local", workers=None)


def _run_models_on_ray(calls: list[tuple[str, Any, Settings]], workers: int | None) -> Iterator[RunSummary]:
    """Every model is one worker's, with a GPU of its own where there are enough; one after another on each."""

    quiet = [(spec, configs, {**how, "progress": False}) for spec, configs, how in calls]
    actors = RayActors(ModelWorker, (str(Path.cwd()),), workers, most=len(calls))
    try:
        yield from actors.map_unordered("run", quiet)
    finally:
        actors.close()


class ModelWorker:
    """Runs whole models on a cluster, in the folder that the command was given in."""

    def __init__(self, folder: str) -> None:
        os.chdir(folder)

    def run(self, spec: str, configs: Sequence[str], how: Settings) -> RunSummary:
        return run(spec, configs, **how)
