"""How unequal error rates are: between groups of speakers, by data set, category and severity, and between languages.

LWERR is the paper's Eq. 5, laid out as in its Fig. 7: the WER of each gender is averaged over severities and
perturbations of a category before the ratio is taken. Language against language follows its Fig. 6. The
population-weighted rate and the gap between the worst and the best group follow Aksenova et al., "How Might We Create
Better Benchmarks for Speech Recognition?", Section 4.1.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import compress

import numpy as np

from speech_robust_bench.core.card_records import ComparedScore, GroupErrors, LanguageComparison, LwerrRow
from speech_robust_bench.core.names import parse
from speech_robust_bench.core.records import Record, Whole, convert
from speech_robust_bench.core.result_records import ResampledUnits, RunResults, ScoreValue
from speech_robust_bench.scoring.bootstrap import Units, interval
from speech_robust_bench.scoring.clip_sets import ErrorMatrix
from speech_robust_bench.scoring.estimate import FEWEST_UNITS
from speech_robust_bench.scoring.groups import disparity, log2_ratio
from speech_robust_bench.scoring.runs import Predictions
from speech_robust_bench.scoring.scoring import Counts

GENDERS = ("female", "male")


class GroupRates(Record, frozen=True, kw_only=True):
    """The error rates of groups on one config; null where fewer than two groups have clips."""

    recogniser: str
    config: str
    groups: dict[str, GroupErrors]
    best: str | None
    worst: str | None
    gap: float | None
    log2_ratio: float | None
    unlabelled: Whole
    weighted_wer: float | None = None  # where the shares of the population are given


def group_disparity(
    measured: ErrorMatrix,
    labels: Sequence[str | None],
    groups: Mapping[str, np.ndarray],
    shares: Mapping[str, float] | None = None,
) -> list[GroupRates]:
    """Rates of the groups, gap, log2 ratio and the population-weighted rate, for each config of a clip set."""
    kept = [label if label in groups else None for label in labels]
    rows = []
    for place, config in enumerate((measured.clips.clean, *measured.clips.levels)):
        errors, lengths = (values[place].astype(np.int64) for values in (measured.errors, measured.lengths))
        # Only the sums matter here, so an error is an error whatever its kind.
        zero = np.zeros_like(errors)
        rates = disparity(Counts(lengths, zero, zero, errors), kept, shares)
        finite = {key: _finite(value) if isinstance(value, float) else value for key, value in rates.items()}
        rows.append(convert({"recogniser": measured.name, "config": config, **finite}, GroupRates))
    return rows


def lwerr_table(
    counted: Iterable[tuple[Predictions, Counts]],
    *,
    replicates: int = 1000,
    seed: int = 0,
) -> list[LwerrRow]:
    """LWERR of configs with speech: by data set and category (Fig. 7), and by severity too, with intervals.

    There are no rows without clips of both genders. A positive value means that women have more errors.
    """
    cells: dict[tuple[str, str, int | None], list[tuple[Predictions, Counts]]] = {}
    for predictions, counts in counted:
        name = parse(predictions.config)
        if not {*GENDERS} <= set(predictions.column("gender")):
            continue
        facts = predictions.entry.of_config(predictions.config)
        for severity in {None, name.severity or None}:
            cell = f"{name.language} {facts.corpus}", facts.category, severity
            cells.setdefault(cell, []).append((predictions, counts))
    rows = []
    for (corpus, category, severity), members in cells.items():
        rates = [float(np.mean([_rate(c, h, group) for h, c in members])) for group in GENDERS]
        resampled = {group: _units(members, group) for group in GENDERS}
        fewest = min(each.units for each in resampled.values())
        known = replicates and fewest >= FEWEST_UNITS
        draws = _lwerr_draws(members, GENDERS, replicates, seed) if known else None
        finite = None if draws is None else draws[np.isfinite(draws)]
        rows.append(
            LwerrRow(
                corpus=corpus,
                category=category,
                severity=severity,
                configs=len(members),
                female=rates[0],
                male=rates[1],
                lwerr=_finite(log2_ratio(*rates)),
                interval=None if finite is None or len(finite) < 2 else list(interval(finite, units=fewest)),
                resampled=resampled,
            )
        )
    return rows


def _rate(counts: Counts, predictions: Predictions, group: str) -> float:
    return counts.take(np.array([label == group for label in predictions.column("gender")])).rate


def _lwerr_draws(
    members: Sequence[tuple[Predictions, Counts]], groups: Sequence[str], replicates: int, seed: int
) -> np.ndarray:
    """The ratio in each replicate: the same clips are drawn for every config that has them."""
    totals = []
    for group in groups:
        rates = []
        for predictions, counts in members:
            mine = np.array([label == group for label in predictions.column("gender")])
            units = Units.of(list(compress(predictions.ids, mine)), list(compress(predictions.column("speaker"), mine)))
            part = counts.take(mine)
            errors, lengths = units.draw(
                np.array([units.sums(part.errors), units.sums(part.lengths)]).T, replicates, seed
            ).T
            rates.append(errors / np.maximum(lengths, 1))
        totals.append(np.mean(rates, axis=0))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.log2(totals[0] / totals[1])


def _units(members: Sequence[tuple[Predictions, Counts]], group: str) -> ResampledUnits:
    """The speakers, or the clips where those are not known, of a group in the config that has fewest."""
    chosen = (predictions.only("gender", group) for predictions, _ in members)
    units = [(Units.of(own.ids, own.column("speaker")), len(own.lines)) for own in chosen]
    fewest, clips = min(units, key=lambda each: len(each[0]))
    return ResampledUnits(unit=fewest.kind, units=len(fewest), clips=clips)


def languages(results: RunResults) -> LanguageComparison:
    """Fig. 6: a multilingual recogniser's scores in each language side by side, from its results.json.

    `ratio` is the score over that of the best language of the row; 1 where there is one language only.
    """
    tables = results.languages
    rows: dict[str, dict[str, ScoreValue]] = {}
    for language, table in tables.items():
        clean = [row.wer.value for row in table.clean.values() if row.wer]
        if clean:
            rows.setdefault("clean wer", {})[language] = ScoreValue(value=float(np.mean(clean)))
        for category, row in table.categories.items():
            for measure in ("werd", "nwerd"):
                if score := row.score(measure):
                    rows.setdefault(f"{category} {measure}", {})[language] = score
        named = {"overall nwerd": table.overall.nwerd, "adversarial werd": table.adversarial.werd}
        for name, score in named.items():
            if score:
                rows.setdefault(name, {})[language] = score
    return LanguageComparison(languages=list(tables), rows={name: _compared(cells) for name, cells in rows.items()})


def _compared(scores: Mapping[str, ScoreValue]) -> dict[str, ComparedScore]:
    best = min(score.value for score in scores.values())
    return {
        language: ComparedScore(
            value=score.value, interval=score.interval, ratio=score.value / best if best > 0 else None
        )
        for language, score in scores.items()
    }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
