"""How work is shared out on a Ray cluster, by a stand-in for Ray that runs everything at once, here."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from speech_robust_bench.core.engines import Ray, RayActors, connect_to_ray
from speech_robust_bench.core.errors import UserError


class RayTaskError(Exception):
    def __init__(self, cause: Exception) -> None:
        super().__init__(str(cause))
        self.cause = cause


class StandInRay:
    """As much of Ray as the engines use; `asked` is what each kind of actor was given."""

    exceptions = SimpleNamespace(RayTaskError=RayTaskError)

    def __init__(self, cpus: float = 4, gpus: float = 0, nodes: int = 1, failure: Exception | None = None) -> None:
        self.resources = {name: value for name, value in (("CPU", cpus), ("GPU", gpus)) if value}
        self.alive, self.failure = nodes, failure
        self.asked, self.killed, self.connected, self.stopped = [], [], False, 0

    def is_initialized(self) -> bool:
        return self.connected

    def init(self, address, **_) -> None:
        if self.failure:
            raise self.failure
        self.connected = True

    def cluster_resources(self):
        return self.resources

    def nodes(self):
        return [{"Alive": True}] * self.alive + [{"Alive": False}]

    def remote(self, *function, **resources):
        if function:
            return SimpleNamespace(remote=lambda *call: Call(function[0], call))
        self.asked.append(resources)
        return lambda kind: SimpleNamespace(remote=lambda *arguments: Actor(kind(*arguments)))

    def wait(self, waiting, num_returns=1):
        return waiting[:num_returns], waiting[num_returns:]

    def get(self, call):
        try:
            return call.function(*call.arguments)
        except Exception as error:
            raise RayTaskError(error) from None

    def kill(self, actor) -> None:
        self.killed.append(actor)

    def shutdown(self) -> None:
        self.stopped += 1


class Call:
    def __init__(self, function, arguments) -> None:
        self.function, self.arguments = function, arguments


class Actor:
    def __init__(self, instance) -> None:
        self._instance = instance

    def __getattr__(self, name):
        method = getattr(self._instance, name)
        return SimpleNamespace(remote=lambda *call: Call(method, call))


class Adder:
    def __init__(self, start: int) -> None:
        self.start = start

    def add(self, number: int) -> int:
        if number < 0:
            raise UserError("below 0")
        return self.start + number


@pytest.fixture
def cluster(monkeypatch):
    def start(**how) -> StandInRay:
        ray = StandInRay(**how)
        monkeypatch.setitem(sys.modules, "ray", ray)
        return ray

    return start


@pytest.mark.parametrize(
    ("how", "count", "most", "workers", "resources"),
    [
        ({"cpus": 8, "nodes": 2}, None, None, 2, {"num_cpus": 4, "num_gpus": 0}),  # one per node
        ({"cpus": 8, "gpus": 4}, None, None, 4, {"num_cpus": 2, "num_gpus": 1}),  # one per GPU
        ({"cpus": 8, "gpus": 2}, 4, None, 4, {"num_cpus": 2, "num_gpus": 0}),  # more than GPUs: none has one
        ({"cpus": 8, "gpus": 4}, 3, None, 3, {"num_cpus": 2, "num_gpus": 1}),
        ({"cpus": 8, "gpus": 4}, None, 2, 2, {"num_cpus": 4, "num_gpus": 1}),  # no more than there is work
        ({"cpus": 0, "nodes": 1}, None, None, 1, {"num_cpus": 1, "num_gpus": 0}),
        ({"cpus": 2, "nodes": 0}, None, None, 1, {"num_cpus": 2, "num_gpus": 0}),
        ({"cpus": 2}, 2, None, 2, {"num_cpus": 1, "num_gpus": 0}),
    ],
)
def test_processors_and_gpus_are_shared_out(cluster, how, count, most, workers, resources):
    ray = cluster(**how)
    actors = RayActors(Adder, (10,), count, most)
    assert actors.workers == workers
    assert ray.asked == [resources]
    actors.close()
    assert (len(ray.killed), ray.stopped) == (workers, 1)


@pytest.mark.parametrize(("cpus", "count"), [(2, 3), (1, 2), (0, 2)])
def test_more_workers_than_processors_are_refused(cluster, cpus, count):
    cluster(cpus=cpus)
    with pytest.raises(UserError, match=f"^{count} workers, but the cluster has {cpus} processors"):
        RayActors(Adder, (10,), count)


def test_a_call_is_taken_only_when_an_actor_is_free(cluster):
    cluster(cpus=2)
    actors, taken = RayActors(Adder, (10,), 2), []

    def calls():
        for number in range(5):
            taken.append(number)
            yield (number,)

    results = actors.map_unordered("add", calls())
    first = next(results)
    assert taken == [0, 1]
    assert sorted([first, *results]) == [10, 11, 12, 13, 14]
    assert list(actors.map_unordered("add", [])) == []


def test_a_users_mistake_on_a_cluster_is_one_here(cluster):
    cluster()
    actors = RayActors(Adder, (10,), 1)
    with pytest.raises(UserError, match=r"^below 0$"):
        list(actors.map_unordered("add", [(-1,)]))
    with pytest.raises(RayTaskError):
        list(actors.map_unordered("add", [("x",)]))


def twice(item, tick):
    tick(item)
    tick(1)
    return 2 * item


def test_work_is_mapped_in_order_and_counted(cluster):
    ray = cluster(cpus=3.5)
    engine, ticks = Ray(None), []
    assert engine.workers == 3
    assert engine.map(twice, [3, 1, 2], ticks.append) == [6, 2, 4]
    assert ticks == [4, 2, 3]
    engine.close()
    assert ray.stopped == 1


def test_a_cluster_that_was_there_before_is_left_running(cluster):
    ray = cluster(cpus=0)
    ray.connected = True
    engine = Ray(None)
    assert engine.workers == 1
    engine.close()
    assert ray.stopped == 0


@pytest.mark.parametrize("failure", [ConnectionError("refused"), RuntimeError("old"), ValueError("odd address")])
def test_a_cluster_that_cannot_be_reached_is_one_line(cluster, failure):
    cluster(failure=failure)
    with pytest.raises(UserError, match=rf"^no Ray cluster at ray://x \({failure}\)$"):
        connect_to_ray("ray://x")
