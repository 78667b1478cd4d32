"""Fixtures that several rooms share."""

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from filelock import FileLock
from hypothesis import HealthCheck, settings
from support.metrics_by_name import metrics_by_name
from support.speech import RATE, human_recordings, speech_like

pytest_plugins = ["support.hub_commands", "support.recorded_speech", "support.simulated_runs"]

# The same examples in every run and no limit on their time: a busy machine is no failure.
settings.register_profile("srb", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("srb")


@pytest.fixture(scope="session")
def speech() -> np.ndarray:
    """About ten seconds of speech: a human recording where one is installed, a stand-in otherwise."""
    return (human_recordings(1) or [speech_like(10)])[0][: 10 * RATE]


@pytest.fixture(scope="session")
def here(tmp_path_factory):
    """The metrics installed by name for this process, in a cache of its own, without a network."""
    with metrics_by_name(tmp_path_factory.mktemp("modules")) as cache:
        yield cache


@pytest.fixture(scope="session")
def made_once(tmp_path_factory, worker_id):
    """`made_once(name, make)`: the folder that `make(folder)` fills once in a run, for all its processes."""
    base = tmp_path_factory.getbasetemp()
    base = base if worker_id == "master" else base.parent

    def folder(name: str, make: Callable[[Path], object]) -> Path:
        whole = base / "made-once" / name
        whole.parent.mkdir(exist_ok=True)
        with FileLock(f"{whole}.lock"):
            if not whole.exists():
                part = whole.with_suffix(".part")
                shutil.rmtree(part, ignore_errors=True)
                make(part)
                part.rename(whole)
        return whole

    return folder


def pytest_addoption(parser):
    parser.addoption("--update-golden", action="store_true", help="write the files of tests/golden again")
    parser.addoption("--long", action="store_true", help="run the tests that are marked long, too")


def pytest_collection_modifyitems(config, items):
    if not config.getoption("--long"):
        for item in items:
            if item.get_closest_marker("long"):
                item.add_marker(pytest.mark.skip(reason="long: runs with --long"))
