"""The metrics installed by name for this process, in a cache of its own, without a network."""

import evaluate
import pytest

from srb.metrics import modules


@pytest.fixture(scope="session")
def here(tmp_path_factory):
    cache = tmp_path_factory.mktemp("modules")
    patch = pytest.MonkeyPatch()
    patch.setattr(evaluate.config, "HF_MODULES_CACHE", str(cache))
    patch.setattr(evaluate.config, "HF_EVALUATE_OFFLINE", True)
    patch.syspath_prepend(str(cache))
    for metric in modules.METRICS:
        modules.install(metric)
    yield cache
    patch.undo()
