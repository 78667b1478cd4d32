"""Where the work runs: in this process, in local processes, or on a Ray cluster. The results are the same.

An engine maps a function `(item, tick) -> result` over items; `tick(n)` reports n units of progress.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.context import BaseContext
from typing import Any, Literal, Protocol

from srb.builders.errors import UserError

Work = Callable[[Any, Callable[[int], None]], Any]
POLL_S = 0.2


class Engine(Protocol):
    """Something that can work through a list, reporting progress as it goes."""

    workers: int  # how many items it works on at a time

    def map(self, work: Work, items: Sequence[Any], tick: Callable[[int], None]) -> list[Any]: ...

    def close(self) -> None: ...


def open_engine(name: Literal["local", "ray"], workers: int, address: str | None = None) -> Engine:
    """The engine that the command line asks for."""
    keep_memory()
    if name == "ray":
        return Ray(address)
    return Inline() if workers == 1 else Processes(workers)


class Inline:
    """This process: the simplest thing that works, and the easiest to debug."""

    workers = 1

    def map(self, work: Work, items: Sequence[Any], tick: Callable[[int], None]) -> list[Any]:
        return [work(item, tick) for item in items]

    def close(self) -> None:
        pass


class Processes:
    """Local processes, forked from one that has loaded what they need and started no thread."""

    def __init__(self, workers: int) -> None:
        context = _forking() or multiprocessing.get_context("spawn")
        self.workers = workers
        self._done = context.Value("q", 0)
        self._pool = ProcessPoolExecutor(workers, context, _start_worker, (self._done,))

    def map(self, work: Work, items: Sequence[Any], tick: Callable[[int], None]) -> list[Any]:
        futures: list[Future] = [self._pool.submit(_in_worker, work, item) for item in items]
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

    def close(self) -> None:
        self._pool.shutdown()

    def _stop_now(self) -> None:
        for process in list((getattr(self._pool, "_processes", None) or {}).values()):
            process.terminate()
        self._pool.shutdown(cancel_futures=True)


def _forking() -> BaseContext | None:
    """Where the system can fork: have the process to fork from start loading, while this one reads the corpus."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return None
    from multiprocessing import forkserver

    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["srb.builders.warm"])
    forkserver.ensure_running()
    return context


class Ray:
    """A Ray cluster: the one at `address`, or one started on this machine."""

    def __init__(self, address: str | None) -> None:
        try:
            import ray
        except ImportError:
            raise UserError('--engine ray needs Ray: pip install "speech-robust-bench[ray]"') from None
        self._ray = ray
        self._started = not ray.is_initialized()
        if self._started:
            try:
                ray.init(address, log_to_driver=False, include_dashboard=None if address else False)
            except (ConnectionError, RuntimeError, ValueError) as error:
                raise UserError(f"no Ray cluster at {address} ({error})") from None
        self.workers = max(1, int(ray.cluster_resources().get("CPU", 1)))

    def map(self, work: Work, items: Sequence[Any], tick: Callable[[int], None]) -> list[Any]:
        remote = self._ray.remote(_on_ray)
        references = [remote.remote(work, item) for item in items]
        waiting = references
        while waiting:
            finished, waiting = self._ray.wait(waiting)
            for reference in finished:
                tick(self._result(reference)[1])
        return [self._result(reference)[0] for reference in references]

    def close(self) -> None:
        if self._started:
            self._ray.shutdown()

    def _result(self, reference: Any) -> tuple[Any, int]:
        try:
            return self._ray.get(reference)
        except self._ray.exceptions.RayTaskError as error:
            if isinstance(error.cause, UserError):
                raise UserError(str(error.cause)) from None
            raise


def _on_ray(work: Work, item: Any) -> tuple[Any, int]:
    ticks: list[int] = []
    return work(item, ticks.append), sum(ticks)


def keep_memory() -> None:
    """Have the C library keep what is freed: handing a clip's pages back and fetching them anew costs a tenth."""
    try:
        mallopt = ctypes.CDLL("libc.so.6").mallopt  # glibc alone has it, and needs it
    except (OSError, AttributeError):
        return
    trim_threshold, mmap_threshold = -1, -3
    mallopt(trim_threshold, 256 * 2**20)
    mallopt(mmap_threshold, 32 * 2**20)


_counter: Any = None


def _start_worker(counter: Any) -> None:
    """In a new worker: Ctrl-C is the parent's business, and a worker whose parent is gone goes too."""
    global _counter
    _counter = counter
    keep_memory()
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
