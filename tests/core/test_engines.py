"""Engines: the same results in the same order wherever the work runs, progress counted, failures passed on."""

import os

import pytest

from speech_robust_bench.core.engines import Inline, Processes, open_engine
from speech_robust_bench.core.errors import UserError


def square(item: int, tick) -> int:
    tick(item)
    return item * item


def fail(item: int, tick) -> int:
    if item == 2:
        raise UserError("the second is bad")
    return item


def die(item: int, tick) -> None:
    os._exit(3)


def where(item: int, tick) -> int:
    return os.getpid()


@pytest.fixture(scope="module")
def processes():
    engine = Processes(2)
    yield engine
    engine.close()


def test_inline_and_processes_give_the_same(processes):
    for engine in (Inline(), processes):
        ticks: list[int] = []
        assert engine.map(square, [3, 1, 2], ticks.append) == [9, 1, 4]
        assert sum(ticks) == 6
        assert engine.map(square, [5], ticks.append) == [25]
        assert sum(ticks) == 11
        assert engine.map(square, [], ticks.append) == []


def test_work_runs_elsewhere_in_processes_and_here_inline(processes):
    assert os.getpid() not in processes.map(where, [1, 2, 3], print)
    assert set(Inline().map(where, [1, 2], print)) == {os.getpid()}


def test_the_engine_says_how_many_work_at_once(processes):
    assert (Inline.workers, processes.workers) == (1, 2)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_users_mistake_is_passed_on(workers):
    engine = open_engine("local", workers)
    with pytest.raises(UserError, match="the second is bad"):
        engine.map(fail, [1, 2, 3], print)
    engine.close()


def test_a_worker_that_dies_is_noticed():
    with pytest.raises(UserError, match="a worker died, perhaps for want of memory; run it again with fewer --workers"):
        Processes(1).map(die, [1], print)


def which_process(item, tick):
    return os.getpid()


def test_a_pinned_worker_has_every_nth_item():
    engine = Processes(2, pinned=True)
    try:
        workers = [*engine.map(which_process, range(5), lambda count: None), *engine.map(which_process, [0, 1], print)]
        assert len(set(workers)) == 2
        assert workers == [workers[place % 2] for place in (0, 1, 0, 1, 0, 0, 1)]
        assert engine.submit(os.getpid, worker=3).result() == workers[1]
    finally:
        engine.close()


def test_one_worker_needs_no_process():
    assert isinstance(open_engine("local", 1), Inline)
    engine = open_engine("local", 3, preload=["json"])
    assert isinstance(engine, Processes)
    assert engine.workers == 3
    engine.close()


def test_ray_where_it_is_not_installed(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UserError, match=r"pip install .*\[ray\]"):
        open_engine("ray", 1)
