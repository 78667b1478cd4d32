"""The entry of one config in a results file: its scores, what went into them, and what else its clips tell.

Clips without speech (the reject sets) have no error rate: every word that is written for them is invented, so they are
counted in words per minute and stay out of every mean.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec import structs

from speech_robust_bench.core.names import parse
from speech_robust_bench.core.result_records import (
    ConfigResults,
    InventedWords,
    RejectResults,
    ResampledUnits,
    ScoreValue,
    Slices,
    UntranscribedResults,
)
from speech_robust_bench.scoring import attack_success
from speech_robust_bench.scoring.aggregate import MEASURES, ConfigCounts, ConfigScore, Mean
from speech_robust_bench.scoring.json_values import json_number, json_ratio, score_value
from speech_robust_bench.scoring.measures import ConfigClips, compute_measures
from speech_robust_bench.scoring.runs import Predictions
from speech_robust_bench.scoring.score_options import ScoreOptions, units_of
from speech_robust_bench.scoring.scoring import normalise, versions
from speech_robust_bench.scoring.speaker_slices import clip_slices
from speech_robust_bench.scoring.transcript_difference import difference
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
