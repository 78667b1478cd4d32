"""`srb.front_quality`: what front ends do to the quality of clips."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from speech_robust_bench.builders.config_sources import open_data
from speech_robust_bench.core.progress import tasks
from speech_robust_bench.data_source import DataSource
from speech_robust_bench.extensions.front_ends.quality import front_quality as measure
from speech_robust_bench.options import Place


def front_quality(
    fronts: Sequence[str],
    configs: str | Sequence[str] = (),
    *,
    data: Place = "srb",
    limit: int | None = None,
    out: Place | None = None,
    progress: bool = True,
) -> list[dict[str, Any]]:
    """Measure the sound quality of built configs before and after front ends: one row per config and front end.

    Args:
        fronts: front ends or chains, such as "wpe+rnnoise".
        configs, data: as in `srb.add_quality`.
        limit: only the first clips of each config.
        out: a JSON file for the rows; rows in it are not measured again.
        progress: show progress.
    """
    source = DataSource(data=data, limit=limit)
    names = source.select([configs] if isinstance(configs, str) else list(configs))
    with tasks(not progress) as show:
        return measure(
            open_data(source.where), names, fronts, limit=limit, out=Path(out) if out else None, progress=show
        )
