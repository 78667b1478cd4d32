"""Which probes an ablation trains: every encoder with each head on all data, and with the first head on less of it.

As in SUPERB-SG, Tables 5 to 11: heads of several sizes, and 1, 5 and 10 hours where all data has 100.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from speech_robust_bench.core.errors import UserError
from speech_robust_bench.models.probe.upstream_spec import upstream_name


class Ablation(NamedTuple):
    """One probe of an ablation."""

    upstream: str
    head: str
    hours: float | None  # None for all data
    folder: Path


def ablations(
    upstreams: Sequence[str], heads: Sequence[str], hours: Sequence[float], out: str | Path
) -> list[Ablation]:
    """The probes to train, each with a folder of its own below `out`."""
    settings: list[tuple[str, float | None]] = [*((head, None) for head in heads), *((heads[0], h) for h in hours)]
    names = {upstream: re.sub(r"[^A-Za-z0-9._]+", "-", upstream_name(upstream)).strip("-.") for upstream in upstreams}
    if len(set(names.values())) < len(upstreams) or len(set(settings)) < len(settings):
        raise UserError("an ablation names each encoder, head and number of hours once")
    return [
        Ablation(upstream, head, part, Path(out) / "-".join((name, head, *(() if part is None else (f"{part:g}h",)))))
        for head, part in settings
        for upstream, name in names.items()
    ]
