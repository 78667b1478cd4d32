"""`srb.install_metrics` and `srb.export_metric`: the metrics for `evaluate.load`, by name or as a Space."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from speech_robust_bench.data_source import Place
from speech_robust_bench.scoring import modules


def install_metrics(metrics: Sequence[str] = ()) -> list[str]:
    """Make `evaluate.load("werd")` work by name, offline, from any directory; without names, for all metrics."""
    chosen = list(metrics) or list(modules.METRICS)
    for metric in chosen:
        modules.install(metric)
    return chosen


def export_metric(metric: str, folder: Place) -> Path:
    """Write the folder of a metric's Space, which stands alone."""
    return modules.export_space(metric, Path(folder))
