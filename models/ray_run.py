"""`srb run --engine ray`: configs spread over a Ray cluster, one loaded model per worker.

The predictions folder and the data must be on a file system that every node sees, or on the Hub. One worker does a
config from beginning to end, so the files are the same as those of a local run.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from speech_robust_bench.builders.config_sources import open_data
from speech_robust_bench.builders.configs import ConfigSource
from speech_robust_bench.core.engines import RayActors
from speech_robust_bench.core.progress import progress
from speech_robust_bench.core.records import RunConfig
from speech_robust_bench.models.runner import RunJob, Runner


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
