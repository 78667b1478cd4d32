"""A fixture for pytest, there wherever SRB is installed: a test that fails when a recogniser has become less robust.

def test_robust(srb_gate):
    srb_gate(my_model, baseline="runs/main", gate_options=srb.GateOptions(worst=0.05))
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest


@pytest.fixture(scope="session")
def srb_gate() -> Callable[..., Any]:
    """`srb.gate`, which takes the same arguments, as an assertion: a model that is less robust fails the test."""

    def check(model: Any, baseline: Any, *configs: Any, progress: bool = False, **options: Any) -> Any:
        __tracebackhide__ = True
        import speech_robust_bench

        result = speech_robust_bench.gate(model, baseline, *configs, progress=progress, **options)
        if not result.passed:
            pytest.fail(result.markdown(), pytrace=False)
        return result

    return check
