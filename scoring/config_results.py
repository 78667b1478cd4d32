"""The entry of one config in a results file: its scores, what went into them, and what else its clips tell.

Clips without speech (the reject sets) have no error rate: every word that is written for them is invented, so they are
counted in words per minute and stay out of every mean. Groups: WER by gender, age, accent, and by the columns that a
corpus adds, of one config and of all configs of a corpus.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from msgspec import structs

from speech_robust_bench.core.names import parse
from speech_robust_bench.core.records import Prediction, RunConfig
from speech_robust_bench.core.result_records import (
    ConfigResults,
    GroupRate,
    InventedWords,
    Ratio,
    RejectResults,
    ResampledUnits,
    ScoreValue,
    Slices,
    UntranscribedResults,
)
from speech_robust_bench.scoring import attack_success, bootstrap
from speech_robust_bench.scoring.aggregate import MEASURES, ConfigCounts, ConfigScore, Mean
from speech_robust_bench.scoring.bootstrap import Units
from speech_robust_bench.scoring.compare import difference
from speech_robust_bench.scoring.estimate import FEWEST_UNITS
from speech_robust_bench.scoring.groups import log2_ratio, split
from speech_robust_bench.scoring.measures import ConfigClips, compute_measures
from speech_robust_bench.scoring.runs import GROUPS, Predictions
from speech_robust_bench.scoring.score_options import ScoreOptions, json_number, json_ratio, score_value, units_of
from speech_robust_bench.scoring.scoring import Counts, error_rate, normalise, versions
from speech_robust_bench.scoring.verdict_guard import empty_clips


@dataclass(frozen=True)
class CountedConfig:
    """What is kept of a config when its texts have been counted: what its entry needs beside the scores."""

    counts: ConfigCounts
    labels: Predictions  # without texts
    about: dict[str, Any]
    slices: Slices
    attack: dict[str, float] | None

    @classmethod
    def of(cls, predictions: Predictions, hashes: Mapping[str, str], options: ScoreOptions) -> CountedConfig:
        """Count a config whose clips have references."""
        counts = predictions.count(options.normaliser, options.unit)
        about = about_config(predictions, hashes, options, counts)
        slices = clip_slices(counts.counts, predictions, units_of(counts, options), options)
        return cls(counts, predictions.labels, about, slices, _attack(predictions, options))


def config_entry(score: ConfigScore, counted: CountedConfig, options: ScoreOptions) -> ConfigResults:
    """The entry of a config with references."""
    counts = counted.counts
    totals = counts.counts.totals()
    return ConfigResults(
        **{**counted.about, **scores_entry(score, options), **totals},
        why=dict(score.why),
        clean_wer=json_number(score.clean_wer),
        difficulty=json_number(score.difficulty),
        unit=versions(options.normaliser, options.unit, parse(score.config).language)["unit"],
        resampled=resampled_entry(score, options),
        utterances=len(counts.counts),
        insertions_per_word=json_ratio(totals["insertions"], int(counts.counts.lengths.sum())),
        empty=empty_clips(counts.counts),
        slices=counted.slices,
        attack=counted.attack,
    )


def about_config(
    predictions: Predictions, hashes: Mapping[str, str], options: ScoreOptions, counts: ConfigCounts | None = None
) -> dict[str, Any]:
    """The fields that every entry has."""
    entry = predictions.entry
    return {
        **entry.of_config(predictions.config).facts,
        "source": entry.source,
        "bank": entry.bank,
        "stand_in": entry.stand_in,
        "benchmark_version": entry.benchmark_version,
        "scenario_version": entry.scenario_version,
        "rows": len(predictions.lines),
        "of": entry.of,
        "failed": predictions.failed,
        "failed_ids": [line.id for line in predictions.lines if line.pred_text is None],
        "rtf": entry.rtf,
        "rtf_quantiles": entry.rtf_quantiles,
        "content_sha256": entry.content_sha256,
        "rows_sha256": entry.rows_sha256,
        "predictions_sha256": hashes[predictions.config],
        "measures": compute_measures(ConfigClips(predictions, options, counts)),
    }


def scores_entry(row: ConfigScore | Mean, options: ScoreOptions) -> dict[str, ScoreValue | None]:
    """Each measure as value and interval, None where there is none."""
    return {
        measure: score_value(
            row.values.get(measure), row.interval(measure, options.level) if measure in row.values else None
        )
        for measure in MEASURES
    }


def resampled_entry(row: ConfigScore | Mean, options: ScoreOptions) -> ResampledUnits | None:
    """What the intervals of a row are over; None where none were asked for."""
    found = row.resampled if options.replicates else None
    return None if found is None else ResampledUnits(unit=found.unit, units=found.units, clips=found.clips)


def _attack(predictions: Predictions, options: ScoreOptions) -> dict[str, float] | None:
    """How well an attack worked, of an adversarial config."""
    if not attack_success.is_adversarial(predictions.config):
        return None
    return attack_success.of_lines(predictions.lines, options.normaliser)


def untranscribed_entries(
    unknown: Mapping[str, Predictions], hashes: Mapping[str, str], options: ScoreOptions
) -> dict[str, UntranscribedResults]:
    """The scores of clips without a reference: how much was written, and how far from the clean clip's words."""
    return {
        config: UntranscribedResults(
            **about_config(predictions, hashes, options),
            **structs.asdict(invented_words([predictions])),
            difference=_difference(unknown.get(str(predictions.entry.source)), predictions, options),
        )
        for config, predictions in unknown.items()
    }


def _difference(clean: Predictions | None, predictions: Predictions, options: ScoreOptions) -> ScoreValue | None:
    if clean is None:
        return None
    apart = difference(clean, predictions, options.normaliser, options.unit)
    return score_value(apart.value, apart.interval(options.replicates, options.level, options.seed, options.resample))


def reject_entry(predictions: Predictions, hashes: Mapping[str, str], options: ScoreOptions) -> RejectResults:
    """The entry of a config without speech."""
    return RejectResults(**about_config(predictions, hashes, options), **structs.asdict(invented_words([predictions])))


def invented_words(configs: Sequence[Predictions]) -> InventedWords:
    """What was written for clips without speech."""
    lines = [line for predictions in configs for line in predictions.lines]
    words_per_clip = [len(normalise(line.transcript).split()) for line in lines]
    minutes = sum(line.seconds for line in lines) / 60
    return InventedWords(
        clips=len(words_per_clip),
        clips_with_words=sum(words > 0 for words in words_per_clip),
        words=sum(words_per_clip),
        minutes=round(minutes, 4),
        words_per_minute=json_ratio(sum(words_per_clip), minutes),
    )


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
