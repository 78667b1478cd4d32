"""Fixtures that several rooms share."""

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from support.metrics_by_name import metrics_by_name
from support.speech import RATE, human_recordings, speech_like

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


def pytest_addoption(parser):
    parser.addoption("--update-golden", action="store_true", help="write the files of tests/golden again")
