"""Quality scores, from built configs and from the authors' study.

Built configs have them in the columns `dnsmos_p808` and `pesq` that `srb quality` adds (`docs/concepts/files.md`). The
paper's DNSMOS is the P.808 model of Reddy et al. 2020 (its clean LibriSpeech has 3.84, which the overall score of the
later P.835 model does not reach).

The study of the authors' scores: each column of Table 3 is a straight line of the mean raw score over LibriSpeech,
TED-LIUM and Spanish MLS, and the lines' slopes and offsets tell what was done (docs/concepts/difficulty.md). No score
depends on it; `srb difficulty --explain` runs it, so that the claim can be checked.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.names import parse
from speech_robust_bench.core.untrusted_files import damage_named, row_groups
from speech_robust_bench.scoring.difficulty import Difficulty, DifficultyTable, Quality, compute, means, read_quality
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


QUALITY_FILE = Path(__file__).parent / "data" / "quality_authors.csv"
PESQ_OFFSET = 12.5
# Two PESQ means of other clips ended up in two cells: the printed PESQ of each is the mean of four values, not three.
POLLUTED = ("gaussian_sev4", "pitch_down_sev3")
_CORPORA = ("LibriSpeech", "TEDLIUM", "MLS-ES")
_STRAY = ("librispeech_asr", "tedlium")  # the data set names under which the two stray PESQ means are filed


def quality_scores() -> list[Quality]:
    """The authors' published quality scores."""
    return read_quality(QUALITY_FILE)


def srb_1(lines: Sequence[Quality]) -> DifficultyTable:
    """`srb-1`: the stated rule on LibriSpeech, with the real recordings beside it; no stray rows, no other corpora."""
    recordings = [line for line in lines if line.dataset in ("ami", "chime", "common_voice") or line.key == "clean"]
    english = [line for line in recordings if line.dataset != "TEDLIUM"]
    return compute(means([*(line for line in lines if line.dataset == "LibriSpeech"), *english]), "srb-1")


def paper_table(lines: Sequence[Quality]) -> DifficultyTable:
    """Table 3 as the authors computed it.

    Differences from the stated rule: PESQ has mean 62.5; the Spanish DNSMOS and PESQ of one scenario stayed two rows,
    so that they count twice as much as an English corpus in the average, and the Spanish DNSMOS that have a PESQ row
    beside them count twice in the mean and standard deviation.
    """
    spanish_pesq = {line.key for line in lines if line.dataset == "MLS-ES" and line.measure == "pesq"}
    normal = {}
    for measure, mean in (("dnsmos", 50.0), ("pesq", 50.0 + PESQ_OFFSET)):
        rows = [
            line
            for line in lines
            if line.measure == measure
            and (line.key == "clean" or (line.dataset in _CORPORA + _STRAY and "_sev" in line.key))
        ]
        twice = [line for line in rows if measure == "dnsmos" and line.dataset == "MLS-ES" and line.key in spanish_pesq]
        values = np.array([line.value for line in [*rows, *twice]])
        for line in rows:
            normal[line.dataset, line.key, measure] = mean - 25 * (line.value - values.mean()) / values.std()
    table = {}
    for key in dict.fromkeys(key for _, key, _ in normal if "_sev" in key):
        columns = {
            m: [normal[corpus, key, m] for corpus in _CORPORA if (corpus, key, m) in normal] for m in ("dnsmos", "pesq")
        }
        english = [np.mean([normal[c, key, m] for m in ("dnsmos", "pesq")]) for c in ("LibriSpeech", "TEDLIUM")]
        spanish = [normal["MLS-ES", key, m] for m in ("dnsmos", "pesq") if ("MLS-ES", key, m) in normal]
        table[key] = Difficulty(
            float(np.mean([*english, *spanish])), float(np.mean(columns["dnsmos"])), float(np.mean(columns["pesq"]))
        )
    return DifficultyTable("paper-table3 recomputed", table)
