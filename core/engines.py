"""Where the work runs: in this process, in local processes, or on a Ray cluster. The results are the same.

An engine maps a function `(item, tick) -> result` over items; `tick(n)` reports n units of progress.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from multiprocessing.context import BaseContext
from typing import Any, Literal, Protocol

from speech_robust_bench.core.errors import UserError, install_hint

Work = Callable[[Any, Callable[[int], None]], Any]
POLL_S = 0.2


def cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Engine(Protocol):
    """Something that can work through a list, reporting progress as it goes."""

    workers: int  # how many items it works on at a time

    def map(self, work: Work, items: Sequence[Any], tick: Callable[[int], None]) -> list[Any]: ...

    def close(self) -> None: ...


def open_engine(
    name: Literal["local", "ray"], workers: int, address: str | None = None, preload: Sequence[str] = ()
) -> Engine:
    """The engine that the command line asks for; `preload` names the modules that every local worker needs."""
    if name == "ray":
        return Ray(address)
    return Inline() if workers == 1 else Processes(workers, preload)


class Inline:
    """This process: the simplest thing that works, and the easiest to debug."""

    workers = 1

    def map(self, work: Work, items: Sequence[Any], tick: Callable[[int], None]) -> list[Any]:
        return [work(item, tick) for item in items]

    def close(self) -> None:
        pass


class Processes:
    """Local processes, forked from one that has loaded what they need and started no thread.

    Pinned ones are told apart: item i goes to worker i modulo their number, which finds again what it has kept.
    """

    def __init__(self, workers: int, preload: Sequence[str] = (), pinned: bool = False) -> None:
        context = _forking(preload) or multiprocessing.get_context("spawn")
        self.workers = workers
        self._done = context.Value("q", 0)
        sizes = [1] * workers if pinned else [workers]
        self._pools = [ProcessPoolExecutor(size, context, _start_worker, (self._done,)) for size in sizes]

    def map(self, work: Work, items: Sequence[Any], tick: Callable[[int], None]) -> list[Any]:
        futures: list[Future] = [
            self.submit(_in_worker, work, item, worker=number) for number, item in enumerate(items)
        ]
        waiting, seen = set(futures), self._done.value
        try:
            while waiting:
                finished, waiting = wait(waiting, POLL_S, FIRST_COMPLETED)
                now = self._done.value
                tick(now - seen)
                seen = now
                for future in finished:
                    future.result()
            return [future.result() for future in futures]
        except BrokenProcessPool:
            raise UserError("a worker died, perhaps for want of memory; run it again with fewer --workers") from None
        except BaseException:
            self._stop_now()
            raise

    def submit(self, work: Callable[..., Any], *arguments: Any, worker: int = 0) -> Future:
        """One call in a worker, for a caller that bounds by itself how many are under way."""
        with _hidden_main_module():
            return self._pools[worker % len(self._pools)].submit(work, *arguments)

    def close(self) -> None:
        for pool in self._pools:
            pool.shutdown(cancel_futures=True)

    def _stop_now(self) -> None:
        for pool in self._pools:
            for process in list((getattr(pool, "_processes", None) or {}).values()):
                process.terminate()
        self.close()


@contextmanager
def _hidden_main_module() -> Iterator[None]:
    """Keep new workers from running the user's script again: they need nothing of it.

    multiprocessing imports the main module into every process that it starts, so a script that calls us outside
    `if __name__ == "__main__"` would start itself without end, and one that imports torch would import it in each
    worker: a worker's start takes 0.02 s of CPU time with this, and 1.0 s without.
    """
    main = sys.modules["__main__"]
    hidden = {name: getattr(main, name) for name in ("__spec__", "__file__") if getattr(main, name, None) is not None}
    for name in hidden:
        setattr(main, name, None)
    try:
        yield
    finally:
        for name, value in hidden.items():
            setattr(main, name, value)


def _forking(preload: Sequence[str]) -> BaseContext | None:
    """Where the system can fork: have the process to fork from start loading, while this one reads the corpus."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return None
    from multiprocessing import forkserver

    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(preload))
    forkserver.ensure_running()
    return context


def stop_forkserver() -> None:
    """End the process that workers are forked from: while it is still loading, it would outlive this one by seconds."""
    server = getattr(sys.modules.get("multiprocessing.forkserver"), "_forkserver", None)
    if pid := getattr(server, "_forkserver_pid", None):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)


class Ray:
    """A Ray cluster: the one at `address`, or one started on this machine."""

    def __init__(self, address: str | None) -> None:
        self._ray, self._started = connect_to_ray(address)
        self.workers = max(1, int(self._ray.cluster_resources().get("CPU", 1)))

    def map(self, work: Work, items: Sequence[Any], tick: Callable[[int], None]) -> list[Any]:
        remote = self._ray.remote(_on_ray)
        references = [remote.remote(work, item) for item in items]
        waiting = references
        while waiting:
            finished, waiting = self._ray.wait(waiting)
            for reference in finished:
                tick(_ray_result(self._ray, reference)[1])
        return [_ray_result(self._ray, reference)[0] for reference in references]

    def close(self) -> None:
        if self._started:
            self._ray.shutdown()


class RayActors:
    """Objects of one class on a Ray cluster, each of which loaded something large once (a model) and is called often.

    `count` is how many: by default one per GPU, else one per node. The processors are shared out among them.
    """

    def __init__(self, kind: type, arguments: tuple[Any, ...], count: int | None = None, most: int | None = None):
        self._ray, self._started = connect_to_ray(None)
        cpus, gpus = (int(self._ray.cluster_resources().get(name, 0)) for name in ("CPU", "GPU"))
        self.workers = count or gpus or sum(node["Alive"] for node in self._ray.nodes())
        self.workers = max(1, min(self.workers, most or self.workers))
        if self.workers > max(1, cpus):  # Ray would wait for more processors for ever
            raise UserError(f"{self.workers} workers, but the cluster has {cpus} processors: ask for fewer --workers")
        resources = {"num_cpus": max(1, cpus // self.workers), "num_gpus": 1 if gpus >= self.workers else 0}
        remote = self._ray.remote(**resources)(kind)
        self._actors: list[Any] = [remote.remote(*arguments) for _ in range(self.workers)]

    def map_unordered(self, method: str, calls: Iterable[tuple[Any, ...]]) -> Iterator[Any]:
        """The results of `method(*call)` as they come; a call is only taken from `calls` when an actor is free."""
        waiting = iter(calls)
        busy: dict[Any, Any] = {}
        free = list(self._actors)
        while True:
            while free and (call := next(waiting, None)) is not None:
                actor = free.pop()
                busy[getattr(actor, method).remote(*call)] = actor
            if not busy:
                return
            (done,), _ = self._ray.wait(list(busy), num_returns=1)
            free.append(busy.pop(done))
            yield _ray_result(self._ray, done)

    def close(self) -> None:
        for actor in self._actors:
            self._ray.kill(actor)
        if self._started:
            self._ray.shutdown()


def connect_to_ray(address: str | None) -> tuple[Any, bool]:
    """The `ray` module, connected to a cluster (a new one on this machine without `address`), and if it was started."""
    try:
        import ray
    except ImportError:
        raise UserError(f"--engine ray needs Ray: {install_hint('ray')}") from None
    if ray.is_initialized():
        return ray, False
    try:
        dashboard = None if address else False
        ray.init(address, log_to_driver=False, include_dashboard=dashboard, logging_level=logging.ERROR)
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise UserError(f"no Ray cluster at {address} ({error})") from None
    return ray, True


def _ray_result(ray: Any, reference: Any) -> Any:
    """What a remote call returned; a `UserError` in it is raised here as it was there."""
    try:
        return ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        if isinstance(error.cause, UserError):
            raise UserError(str(error.cause)) from None
        raise


def _on_ray(work: Work, item: Any) -> tuple[Any, int]:
    ticks: list[int] = []
    return work(item, ticks.append), sum(ticks)


_counter: Any = None


def _start_worker(counter: Any) -> None:
    global _counter
    _counter = counter
    follow_parent()


def follow_parent() -> None:
    """In a new worker: Ctrl-C is the parent's business, and a worker whose parent is gone goes too."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_leave_with_parent, daemon=True).start()


def _leave_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _in_worker(work: Work, item: Any) -> Any:
    return work(item, _tick)


def _tick(count: int) -> None:
    with _counter.get_lock():
        _counter.value += count
