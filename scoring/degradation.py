"""WER degradation: how many points of WER a scenario costs, against clean speech.

Paper, Section 3.2: WERD = WER(scenario) - WER(clean). A scenario made from clean clips is compared with those very
clips; a scenario of real recordings with the clean set of its language. The difference may be negative; the authors'
code replaced a negative one by zero, which `floor` does too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from speech_robust_bench.core.errors import UserError
from speech_robust_bench.scoring.bootstrap import Units
from speech_robust_bench.scoring.estimate import ratio
from speech_robust_bench.scoring.scoring import align, versions


def positions(ids: Sequence[str], clean_ids: Sequence[str]) -> np.ndarray:
    """Where each clip of a scenario stands among the clean clips; one clear error if one is not there."""
    for name, column in (("ids", ids), ("clean_ids", clean_ids)):
        if len(set(column)) != len(column):
            twice = next(i for n, i in enumerate(column) if i in column[:n])
            raise UserError(f"{name}: '{twice}' comes twice; a clip is paired by its id, which must be its own")
    place = {clip: i for i, clip in enumerate(clean_ids)}
    lost = [clip for clip in ids if clip not in place]
    if lost:
        named = ", ".join(map(str, lost[:3])) + (", ..." if len(lost) > 3 else "")
        raise UserError(
            f"{len(lost)} of {len(ids)} clips are not among the clean ones ({named}); score both on the same clips, or "
            "leave the ids out if the scenario was not made from the clean clips"
        )
    return np.array([place[clip] for clip in ids], dtype=np.int64)


def degradation(wer, clean_wer, floor: bool = False):
    """WER(scenario) - WER(clean) in points, elementwise.

    >>> float(degradation(12.5, 10.0)), float(degradation(9.0, 10.0)), float(degradation(9.0, 10.0, floor=True))
    (2.5, -1.0, 0.0)
    """
    difference = np.subtract(wer, clean_wer)
    return np.maximum(difference, 0.0) if floor else difference


@dataclass(frozen=True)
class WerdOptions:
    """How to count and to resample. Without replicates there is no interval; the unit is the language's by default."""

    floor: bool = False
    normaliser: str = "srb-paper-1"
    unit: str | None = None
    language: str | None = None
    replicates: int = 0
    level: float = 0.95
    seed: int = 0


def score(
    references: Sequence[str],
    predictions: Sequence[str],
    clean_predictions: Sequence[str],
    clean_references: Sequence[str] | None = None,
    *,
    ids: Sequence[str] | None = None,
    clean_ids: Sequence[str] | None = None,
    speakers: Sequence[str | None] | None = None,
    options: WerdOptions = WerdOptions(),
) -> dict[str, Any]:
    """WERD of one scenario, with its parts and, if replicates are asked for, its bootstrap interval."""
    if (ids is None) != (clean_ids is None):
        raise UserError("give both ids and clean_ids, or neither")
    paired = clean_references is None or ids is not None or list(clean_references) == list(references)
    if ids is not None and clean_ids is not None:
        place = positions(ids, clean_ids)
        if len(ids) != len(references) or len(clean_ids) != len(clean_predictions):
            raise UserError("ids must pair one to one with predictions, and clean_ids with clean_predictions")
        clean_predictions = [clean_predictions[i] for i in place]
        clean_references = [clean_references[i] for i in place] if clean_references is not None else None
    elif clean_references is None and len(clean_predictions) != len(references):
        raise UserError(
            f"{len(references)} references but {len(clean_predictions)} clean_predictions; give ids and clean_ids to "
            "pair them, or clean_references if the clean clips are others"
        )
    how = versions(options.normaliser, options.unit, options.language)
    counts = align(references, predictions, normaliser=options.normaliser, unit=how["unit"], language=options.language)
    said = references if clean_references is None else clean_references
    clean = align(said, clean_predictions, normaliser=options.normaliser, unit=how["unit"], language=options.language)
    result: dict[str, Any] = {
        "werd": float(degradation(counts.rate, clean.rate, options.floor)),
        "wer": counts.rate,
        "clean_wer": clean.rate,
        "paired": paired,
        "utterances": len(counts),
        **how,
    }
    if options.replicates:
        names = list(ids) if ids is not None else [str(i) for i in range(len(counts))]
        units = Units.of(names, speakers)
        others = units if paired else Units.of([f"clean {i}" for i in range(len(clean))])
        sampling = {"replicates": options.replicates, "seed": options.seed}
        noisy = ratio(units, counts.errors, counts.lengths, **sampling)
        lost = noisy - ratio(others, clean.errors, clean.lengths, **sampling)
        span = lost.interval(options.level)
        result["werd_interval"] = span and [max(bound, 0.0) if options.floor else bound for bound in span]
        result["level"], result["replicates"], result["seed"] = options.level, options.replicates, options.seed
    return result
