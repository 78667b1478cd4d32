"""The parts of a results file about groups: WER by gender, age, accent, and by the columns that a corpus adds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from speech_robust_bench.core.names import parse
from speech_robust_bench.core.records import Prediction, RunConfig
from speech_robust_bench.core.result_records import GroupRate, Ratio, Slices
from speech_robust_bench.scoring import bootstrap
from speech_robust_bench.scoring.aggregate import ConfigCounts
from speech_robust_bench.scoring.bootstrap import Units
from speech_robust_bench.scoring.estimate import FEWEST_UNITS
from speech_robust_bench.scoring.groups import log2_ratio, split
from speech_robust_bench.scoring.json_values import json_number
from speech_robust_bench.scoring.runs import GROUPS, Predictions
from speech_robust_bench.scoring.score_options import ScoreOptions
from speech_robust_bench.scoring.scoring import Counts, error_rate


def language_slices(
    language: str, speech: Mapping[str, Predictions], counts: Mapping[str, ConfigCounts], options: ScoreOptions
) -> dict[str, dict[str, Slices]]:
    """Groups of speakers, per corpus: on its clean clips, and on all its other configs together."""
    by_corpus: dict[str, dict[str, list[str]]] = {}
    for config, predictions in speech.items():
        name = parse(config)
        if name.language == language:
            kind = "clean" if name.scenario == "clean" else "hard"
            corpus = predictions.entry.of_config(config).corpus
            by_corpus.setdefault(corpus, {}).setdefault(kind, []).append(config)
    return {
        corpus: {kind: _pooled([(counts[c], speech[c]) for c in members], options) for kind, members in kinds.items()}
        for corpus, kinds in by_corpus.items()
    }


def _pooled(members: Sequence[tuple[ConfigCounts, Predictions]], options: ScoreOptions) -> Slices:
    """Slices over several configs; a clip that is in many of them is one clip to the bootstrap."""
    first: dict[str, Prediction] = {}
    sums: dict[str, np.ndarray] = {}
    for counts, predictions in members:
        clips = np.array([getattr(counts.counts, key) for key in counts.counts.totals()]).T
        for line, clip_counts in zip(predictions.lines, clips, strict=True):
            first.setdefault(line.id, line)
            sums[line.id] = sums.get(line.id, 0) + clip_counts
    together = Counts(*np.array(list(sums.values()), dtype=np.int64).reshape(-1, 4).T)
    lines = Predictions("", RunConfig(), list(first.values()))
    units = Units.of(list(first), lines.column("speaker"), options.resample)
    slices = clip_slices(together, lines, units, options)
    return slices.replace(configs=len(members))


def clip_slices(counts: Counts, predictions: Predictions, units: Units, options: ScoreOptions) -> Slices:
    """WER of each group of speakers that the corpus tells of, and the log WER ratio of female to male speakers."""
    by_column = {column: _groups(counts, predictions, column) for column in predictions.group_columns}
    return Slices(
        speakers=len(set(predictions.column("speaker")) - {None}),
        gender=by_column["gender"] or None,
        accent=by_column["accent"] or None,
        age=by_column["age"] or None,
        columns={column: groups for column, groups in by_column.items() if groups and column not in GROUPS} or None,
        lwerr=_lwerr(counts, predictions, by_column["gender"], units, options),
    )


def _lwerr(
    counts: Counts, predictions: Predictions, gender: dict[str, GroupRate], units: Units, options: ScoreOptions
) -> Ratio | None:
    female, male = gender.get("female"), gender.get("male")
    if not female or not male:
        return None
    rates = [math.nan if group.wer is None else group.wer for group in (female, male)]
    interval = _lwerr_interval(counts, predictions.column("gender"), units, options)
    return Ratio(value=json_number(log2_ratio(*rates)), interval=interval)


def _groups(counts: Counts, predictions: Predictions, column: str) -> dict[str, GroupRate]:
    return {
        group: GroupRate(
            wer=json_number(part.rate),
            utterances=len(part),
            words=int(part.lengths.sum()),
            speakers=len(_speakers(predictions, column, group)),
        )
        for group, part in split(counts, predictions.column(column)).items()
    }


def _speakers(predictions: Predictions, column: str, group: str) -> set[str]:
    return {line.speaker for line in predictions.only(column, group).lines if line.speaker}


def _lwerr_interval(
    counts: Counts, genders: Sequence[str | None], units: Units, options: ScoreOptions
) -> list[float] | None:
    """Over the replicates that drew words of both; None where a bound is infinite, one of the two making no errors.

    It is made wide enough for the smaller of the two groups, and is None where one has too few speakers or clips.
    """
    chosen = [np.array([label == gender for label in genders]) for gender in ("female", "male")]
    fewest = min(len(set(units.place[group].tolist())) for group in chosen)
    if not options.replicates or fewest < FEWEST_UNITS:
        return None
    by_unit = [units.sums(values * group) for group in chosen for values in (counts.errors, counts.lengths)]
    sums = units.draw(np.array(by_unit).T, options.replicates, options.seed)
    sums = sums[(sums[:, 1] > 0) & (sums[:, 3] > 0)]
    female, male = error_rate(sums[:, 0], sums[:, 1]), error_rate(sums[:, 2], sums[:, 3])
    ratios = [log2_ratio(float(a), float(b)) for a, b in zip(female, male, strict=True)]
    if not ratios:
        return None
    level = bootstrap.expanded(options.level, fewest)
    bounds = np.quantile(ratios, [(1 - level) / 2, (1 + level) / 2], method="nearest")  # the others average infinities
    return [round(float(bound), 4) for bound in bounds] if np.isfinite(bounds).all() else None
