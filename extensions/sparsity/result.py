"""What `srb sparsity` found of a model at each SNR: the record, its table, and its section of the report.

`sparsity.json` lies in the model's run folder, so that the table has the WERD under PGD beside it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
from msgspec import Meta

from speech_robust_bench.core.records import NULL, Record, Settings, Whole, read
from speech_robust_bench.core.result_records import RunResults
from speech_robust_bench.report.html import Html, table
from speech_robust_bench.report.report_data import Report
from speech_robust_bench.report.sections.parts import name, section
from speech_robust_bench.scoring.bootstrap import Units
from speech_robust_bench.scoring.estimate import ratio
from speech_robust_bench.scoring.measures import Measure, TableForm
from speech_robust_bench.scoring.table1 import cell_text

FILE, CLIPS = "sparsity.json", "sparsity.jsonl"
HEADS = ("SNR", "WERD under PGD", "vulnerable clips", "sparsity in degrees", "directions that are adversarial", "n")
Angle = Annotated[float, Meta(ge=0, le=math.pi)]


class ClipAngles(Record, frozen=True, kw_only=True):
    """A line of `sparsity.jsonl`: the angles around one clip at one SNR; none where it is not vulnerable."""

    id: str
    severity: Whole
    speaker: str | None = NULL
    angles: list[Angle]
    random: Whole = 0  # directions that are adversarial themselves
    problem: str | None = None  # why the clip was left out


class Sparsity(Record, frozen=True, kw_only=True):
    """The sparsity at one SNR, over the vulnerable clips."""

    snr_db: float
    severity: Whole
    clips: Whole
    vulnerable: Whole
    directions: Whole  # of each clip
    degrees: float | None = NULL  # null where no clip is vulnerable
    interval: tuple[float, float] | None = NULL
    resampled: str = ""  # what the interval is over
    random: float | None = NULL  # share of directions that are adversarial themselves


class SparsityFile(Record, frozen=True, kw_only=True):
    """What `sparsity.json` holds."""

    schema: Whole = 1
    model: str
    revision: str | None = NULL
    options: Settings
    settings: Settings
    config: str
    levels: list[Sparsity]


def summary(lines: Sequence[ClipAngles], snr_db: float, severity: int, replicates: int = 1000) -> Sparsity:
    """The mean angle over the vulnerable clips (the thesis's residual sparsity), and its interval."""
    usable = [line for line in lines if line.problem is None]
    hit = [line for line in usable if line.angles]
    known: Settings = {"snr_db": snr_db, "severity": severity, "clips": len(usable), "vulnerable": len(hit)}
    if not hit:
        return Sparsity(**known, directions=0)
    means = np.array([np.degrees(np.mean(line.angles)) for line in hit])
    units = Units.of([line.id for line in hit], [line.speaker for line in hit])
    estimate = ratio(units, means, np.ones(len(hit)), scale=1.0, replicates=replicates)
    bounds = estimate.interval()
    directions = len(hit[0].angles)
    return Sparsity(
        **known,
        directions=directions,
        degrees=round(estimate.value, 3),
        interval=bounds and (round(max(0.0, bounds[0]), 3), round(min(180.0, bounds[1]), 3)),
        resampled=str(estimate.resampled),
        random=round(sum(line.random for line in hit) / (directions * len(hit)), 4),
    )


def rows_of(found: SparsityFile, result: RunResults | None) -> list[tuple[str, ...]]:
    """A row for each SNR; the WERD where the model's PGD configs were run."""
    return [_row(level, found.config, result) for level in found.levels]


def _row(level: Sparsity, config: str, result: RunResults | None) -> tuple[str, ...]:
    bounds = level.interval
    degrees = "-" if level.degrees is None else f"{level.degrees:.1f}"
    return (
        f"{level.snr_db:g} dB",
        _werd(level, config, result),
        f"{level.vulnerable} of {level.clips}",
        degrees + (f" ({bounds[0]:.1f} to {bounds[1]:.1f})" if bounds else ""),
        "-" if level.random is None else f"{100 * level.random:.0f} %",
        f"{level.resampled or '0 clips'}, {level.directions} directions each",
    )


def _werd(level: Sparsity, config: str, result: RunResults | None) -> str:
    for entry in result.configs.values() if result else ():
        if (entry.scenario, entry.severity, entry.source) == ("pgd", level.severity, config):
            return cell_text(entry.werd, True)
    return "-"


def of_folder(folder: Path | None) -> SparsityFile | None:
    """What was found of the model of a run folder."""
    path = folder / FILE if folder else None
    return read(path, SparsityFile) if path and path.is_file() else None


def _rows(result: RunResults, folder: Path) -> list[tuple[str, ...]]:
    found = of_folder(folder)
    return rows_of(found, result) if found else []


SPARSITY = Measure(
    "sparsity",
    table=TableForm(
        "sparsity",
        "print how many directions around a clip are adversarial (after `srb sparsity`)",
        HEADS,
        _rows,
        "these runs have no sparsity.json; `srb sparsity` writes it",
        "Fewer degrees: more directions are adversarial. The mean is over the vulnerable clips.",
        advanced=True,
    ),
    section=f"{__name__}:report_section",
)


LEAD = (
    "The mean angle between a random direction and the nearest adversarial perturbation of the same norm, over the "
    "vulnerable clips. The smaller the angle, the more directions are adversarial. It distinguishes models that PGD "
    "breaks equally."
)


def report_section(report: Report, language: str) -> Html | None:
    """The section, where some model was measured."""
    measured = [(model, found) for model in report.ranked(language) if (found := of_folder(model.folder))]
    if not measured:
        return None
    rows = [[name(model), *row] for model, found in measured for row in rows_of(found, model.results)]
    return section("sparsity", "How many directions are adversarial?", LEAD, table(["model", *HEADS], rows))
