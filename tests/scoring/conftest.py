"""The metrics installed by name for this process, in a cache of its own, without a network."""

import pytest
from metrics_by_name import metrics_by_name


@pytest.fixture(scope="session")
def here(tmp_path_factory):
    with metrics_by_name(tmp_path_factory.mktemp("modules")) as cache:
        yield cache
