"""Quality scores out of built configs: the columns `dnsmos_p808` and `pesq` that `srb quality` adds
(`docs/concepts/files.md`).

The paper's DNSMOS is the P.808 model of Reddy et al. 2020 (its clean LibriSpeech has 3.84, which the overall score of
the later P.835 model does not reach).
"""

from __future__ import annotations

import math
from pathlib import Path

from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.names import parse
from speech_robust_bench.core.untrusted_files import damage_named, row_groups
from speech_robust_bench.scoring.difficulty import Quality
from speech_robust_bench.scoring.scenario_facts import ATTACKS

_COLUMNS = {"dnsmos_p808": "dnsmos", "pesq": "pesq"}


def read_built(folder: str | Path, language: str | None = None) -> tuple[list[Quality], list[str]]:
    """The mean scores of each config of one language, and the names of the configs that have none.

    Adversarial configs and those at a value are left out. If the folder holds several languages, one must be chosen.
    """
    import pyarrow.parquet as pq

    folder = Path(folder)
    configs = sorted({path.parent.name for path in folder.glob("*/test-*.parquet")})
    names = {config: parse(config) for config in configs}
    languages = sorted({name.language for name in names.values()})
    if not languages:
        raise UserError(f"{folder} holds no built configs (<config>/test-*.parquet); build some with `srb build`")
    if language is None and len(languages) > 1:
        raise UserError(f"{folder} holds several languages; choose one with --language {'|'.join(languages)}")
    lines, bare = [], []
    for config, name in names.items():
        if name.language != (language or languages[0]) or name.scenario in ATTACKS or name.value is not None:
            continue
        files = sorted((folder / config).glob("test-*.parquet"))
        with damage_named(files[0]):
            there = [c for c in _COLUMNS if c in pq.read_schema(files[0]).names]
        key = f"{name.scenario}_sev{name.severity}" if name.severity else f"{name.scenario}_{name.language}"
        has_quality = False
        for column in there:
            with damage_named(folder / config):
                tables = (table for file in files for table in row_groups(file, [column]))
                chunks = [table.column(column).cast("float64") for table in tables]
            values = [v for chunk in chunks for v in chunk.to_pylist() if v is not None and math.isfinite(v)]
            if values:
                has_quality = True
                lines.append(Quality(str(name.corpus), key, _COLUMNS[column], sum(values) / len(values)))
        if not has_quality:
            bare.append(config)
    if not lines:
        raise UserError(
            f"no config in {folder} has quality columns ({', '.join(_COLUMNS)}); add them with `srb quality {folder}`"
        )
    return lines, bare
