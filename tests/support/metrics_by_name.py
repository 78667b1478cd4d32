"""The metrics installed for `evaluate.load("nwerd")` in a cache of one's own, without a network."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import evaluate
import pytest

from speech_robust_bench.scoring import modules


@contextmanager
def metrics_by_name(cache: Path) -> Iterator[Path]:
    forget_modules()
    patch = pytest.MonkeyPatch()
    patch.setattr(evaluate.config, "HF_MODULES_CACHE", str(cache))
    patch.setattr(evaluate.config, "HF_EVALUATE_OFFLINE", True)
    patch.syspath_prepend(str(cache))
    for metric in modules.METRICS:
        modules.install(metric)
    try:
        yield cache
    finally:
        patch.undo()
        forget_modules()


def forget_modules() -> None:
    """What was imported from another cache in this process, so that it is looked up anew."""
    for name in [name for name in sys.modules if name.split(".")[0] == "evaluate_modules"]:
        del sys.modules[name]
    importlib.invalidate_caches()
