"""Several GPUs: batches spread over a Ray cluster, one loaded model per worker. The driver writes what comes back."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from typing import Any

from srb.attacks.clips import Clip
from srb.attacks.loop import Attack, Attacked
from srb.builders.errors import UserError


class Worker:
    """Holds one opened model; a call is one batch."""

    def __init__(self, settings: dict[str, Any]) -> None:
        from srb.attacks.command import open_target

        self.target = open_target(**settings)

    def run(self, attack: Attack, clips: list[Clip]) -> tuple[list[Attacked], str | None]:
        """The clips attacked, or the line to show the user: an exception of ours would come back wrapped by Ray."""
        try:
            return attack.run(self.target, clips), None
        except UserError as mistake:
            return [], str(mistake)


class Workers:
    """As many workers as asked for, or as there are GPUs."""

    def __init__(self, settings: dict[str, Any], count: int | None) -> None:
        try:
            import ray
        except ImportError:
            raise UserError('--engine ray needs Ray: pip install "speech-robust-bench[ray]"') from None
        if not ray.is_initialized():
            ray.init(address=None, log_to_driver=False, include_dashboard=False, logging_level=logging.ERROR)
        cpus, gpus = (int(ray.cluster_resources().get(kind, 0)) for kind in ("CPU", "GPU"))
        number = count or gpus or 1
        if number > cpus:  # Ray would wait for more for ever
            raise UserError(f"{number} workers, but the cluster has {cpus} processors: ask for fewer --workers")
        self._ray = ray
        remote = ray.remote(num_cpus=1, num_gpus=1 if gpus >= number else 0)(Worker)
        self._actors: list[Any] = [remote.remote(settings) for _ in range(number)]

    def map(self, attack: Attack, batches: Iterable[list[Clip]]) -> Iterator[list[Attacked]]:
        """The batches attacked, in the order in which they are done; only as many are read as are worked on."""
        waiting = iter(batches)
        busy: dict[Any, Any] = {}
        free = list(self._actors)
        while True:
            for actor in list(free):
                batch = next(waiting, None)
                if batch is None:
                    break
                busy[actor.run.remote(attack, batch)] = actor
                free.remove(actor)
            if not busy:
                return
            (done,), _ = self._ray.wait(list(busy), num_returns=1)
            free.append(busy.pop(done))
            found, mistake = self._ray.get(done)
            if mistake is not None:
                raise UserError(mistake)
            yield found

    def close(self) -> None:
        for actor in self._actors:
            self._ray.kill(actor)
