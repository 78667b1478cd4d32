"""`srb run --engine ray`: configs spread over a Ray cluster, one loaded model per worker.

The predictions folder and the data must be on a file system that every node sees, or on the Hub. Every config is one
worker's from beginning to end, so the files are the same as those of a local run.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from srb.builders.errors import UserError
from srb.cli.progress import progress
from srb.models.data import open_data
from srb.models.runner import Runner


class Worker:
    """Holds one runner; a method call is one config."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self.data = open_data(settings["where"])
        self.runner = Runner(**settings)

    def run(self, name: str) -> tuple[str, dict[str, Any] | None, str | None]:
        """The config's record, or the line to show the user: an exception of ours would come back wrapped by Ray."""
        try:
            return name, self.runner.run(self.data.config(name)), None
        except UserError as mistake:
            return name, None, str(mistake)


def run_on_ray(settings: dict[str, Any], names: list[str], workers: int | None, quiet: bool) -> dict[str, Any]:
    """Hand the configs to the workers, one at a time each, and collect their records in the order asked for."""
    try:
        import ray
        from ray.util import ActorPool
    except ImportError:
        raise UserError('--engine ray needs Ray: pip install "speech-robust-bench[ray]"') from None
    Runner(**settings)  # refuses a folder that holds another run, before any worker starts
    here = {"folder": Path(settings["folder"]).resolve()}
    if Path(settings["where"]).is_dir():
        here["where"] = Path(settings["where"]).resolve().as_posix()  # type: ignore[assignment]
    if not ray.is_initialized():
        ray.init(address=None, log_to_driver=False, include_dashboard=False, logging_level=logging.ERROR)
    has = ray.cluster_resources()
    gpus = int(has.get("GPU", 0))
    count = min(len(names), workers or gpus or sum(node["Alive"] for node in ray.nodes()))
    cores = max(1, int(has.get("CPU", 1)) // count)
    remote = ray.remote(num_cpus=cores, num_gpus=1 if gpus >= count else 0)(Worker)
    actors: list[Any] = [remote.remote({**settings, **here}) for _ in range(count)]
    records: dict[str, Any] = {}
    with progress(quiet) as bar:
        task = bar.add_task(f"configs, {count} workers", total=len(names))
        for name, record, mistake in ActorPool(actors).map_unordered(lambda actor, name: actor.run.remote(name), names):
            if mistake is not None:
                raise UserError(mistake)
            records[name] = record
            bar.advance(task)
    for actor in actors:
        ray.kill(actor)
    return {name: records[name] for name in names}
