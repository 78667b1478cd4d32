"""The entry of one config in a results file: its scores, what went into them, and what else its clips tell.

Clips without speech (the reject sets) have no error rate: every word that is written for them is invented, so they are
counted in words per minute and stay out of every mean.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.names import parse
from speech_robust_bench.scoring import (
    attack_success,
    bootstrap,
    calibration,
    lenient_wer,
    masked_words,
    semantic,
    two_talkers,
)
from speech_robust_bench.scoring.aggregate import MEASURES, ConfigCounts, ConfigScore, Mean
from speech_robust_bench.scoring.json_values import Json, json_number, json_ratio, json_score
from speech_robust_bench.scoring.runs import Predictions
from speech_robust_bench.scoring.score_options import ScoreOptions, draws_of
from speech_robust_bench.scoring.scoring import Counts, error_rate, normalise, versions
from speech_robust_bench.scoring.speaker_slices import clip_slices
from speech_robust_bench.scoring.stream_measures import measure_lines
from speech_robust_bench.scoring.transcript_difference import difference

CONFIG_KEYS = ("language", "corpus", "scenario", "severity", "category", "source", "bank", "benchmark_version")
VERSION = "scenario_version"  # only of a scenario that has changed since its first version
HASHES = ("content_sha256", "rows_sha256")


def config_entry(
    score: ConfigScore, counts: ConfigCounts, predictions: Predictions, hashes: Mapping[str, str], options: ScoreOptions
) -> Json:
    totals = counts.counts.totals()
    return {
        **about_config(predictions, hashes, options),
        **scores_entry(score, options),
        **_lenient(counts, predictions, options),
        "why": dict(score.why),
        "clean_wer": json_number(score.clean_wer),
        "difficulty": json_number(score.difficulty),
        "unit": versions(options.normaliser, options.unit, parse(score.config).language)["unit"],
        "utterances": len(counts.counts),
        **totals,
        "insertions_per_word": json_ratio(totals["insertions"], int(counts.counts.lengths.sum())),
        "empty": _empty(counts.counts),
        "slices": clip_slices(counts.counts, predictions, draws_of(counts, options), options.level),
        **_attack(predictions, options),
        **_confidence(predictions),
        **_masked(predictions, options),
        **_two_talkers(predictions, options),
    }


def about_config(predictions: Predictions, hashes: Mapping[str, str], options: ScoreOptions) -> Json:
    name, entry = parse(predictions.config), predictions.entry
    derived = {"language": name.language, "corpus": name.corpus, "scenario": name.scenario, "severity": name.severity}
    return {
        **{key: derived.get(key) if getattr(entry, key) is None else getattr(entry, key) for key in CONFIG_KEYS},
        **({VERSION: entry.scenario_version} if entry.scenario_version else {}),
        "rows": len(predictions.lines),
        "of": entry.of,
        "failed": predictions.failed,
        "failed_ids": [line.id for line in predictions.lines if line.pred_text is None],
        "rtf": entry.rtf,
        "rtf_quantiles": entry.rtf_quantiles,
        **{key: getattr(entry, key) for key in HASHES},
        "predictions_sha256": hashes[predictions.config],
        **_streaming(predictions, options),
    }


def scores_entry(row: ConfigScore | Mean, options: ScoreOptions) -> Json:
    """Each measure as value and interval, null where there is none."""
    scores: Json = {}
    for measure in MEASURES:
        span = row.interval(measure, options.level) if measure in row.values else None
        score = json_score(row.values.get(measure), span)
        scores[measure] = None if score["value"] is None else score
    return scores


def _attack(predictions: Predictions, options: ScoreOptions) -> Json:
    """How well an attack worked, of an adversarial config."""
    if not attack_success.is_adversarial(predictions.config):
        return {}
    return {"attack": attack_success.of_lines(predictions.lines, options.normaliser)}


def _lenient(counts: ConfigCounts, predictions: Predictions, options: ScoreOptions) -> Json:
    """WER lenient beside the strict one, where words are counted."""
    language = parse(predictions.config).language
    if versions(options.normaliser, options.unit, language)["unit"] != "word":
        return {}
    said, written = predictions.references, predictions.transcripts
    errors = lenient_wer.lenient_errors(counts.counts, said, written, language, options.conventions)
    draws, lengths = draws_of(counts, options), counts.counts.lengths
    span = None if draws is None else bootstrap.interval(error_rate(draws @ errors, draws @ lengths), options.level)
    return {"wer_lenient": json_score(float(error_rate(errors.sum(), lengths.sum())), span)}


def semantic_entry(
    counts: ConfigCounts, predictions: Predictions, options: ScoreOptions, embedder: semantic.Embed | None
) -> Json:
    """The mean semantic error, where an embedding model is given."""
    if embedder is None:
        return {}
    errors = semantic.semantic_errors(predictions.references, predictions.transcripts, embedder)
    draws = draws_of(counts, options)
    span = None if draws is None else bootstrap.interval(draws @ errors / draws.sum(axis=1), options.level)
    return {"semantic_error": json_score(float(errors.mean()), span)}


def _confidence(predictions: Predictions) -> Json:
    """Whether the recogniser knows when it fails, of a config whose words have confidences."""
    measures = calibration.of_lines(predictions.lines, parse(predictions.config).language)
    return {"confidence": measures} if measures else {}


def _masked(predictions: Predictions, options: ScoreOptions) -> Json:
    """How often masked words are written all the same, of a config that has some."""
    rate = masked_words.of_lines(predictions.lines, options.normaliser, options.replicates, options.level, options.seed)
    return {"masked": rate} if rate else {}


def _two_talkers(predictions: Predictions, options: ScoreOptions) -> Json:
    """How well one of two talkers is transcribed, of a config where two talk at once."""
    how = (options.normaliser, options.unit, parse(predictions.config).language)
    measures = two_talkers.of_lines(predictions.lines, *how, options.replicates, options.level, options.seed)
    return {"overlap": measures} if measures else {}


def _empty(counts: Counts) -> int:
    """Clips of which no word was recognised, failed ones too, though words were said: all deletions, nothing else."""
    return int(((counts.lengths > 0) & (counts.deletions == counts.lengths) & (counts.insertions == 0)).sum())


def _streaming(predictions: Predictions, options: ScoreOptions) -> Json:
    """Latency and stability, of a config that was used live."""
    try:
        measures = measure_lines(predictions.lines, options.replicates, options.level, options.seed)
    except UserError as problem:
        raise UserError(f"{predictions.config}.jsonl, {problem}") from None
    return {"streaming": measures} if measures else {}


def untranscribed_entries(unknown: Mapping[str, Predictions], hashes: Mapping[str, str], options: ScoreOptions) -> Json:
    """What can be said of clips without a reference: how much was written, and how far from the clean clip's words."""
    entries: Json = {}
    for config, predictions in unknown.items():
        about = about_config(predictions, hashes, options)
        clean = unknown.get(str(about["source"]))
        entry = {**about, **invented_words([predictions]), "difference": None}
        if clean is not None:
            apart = difference(clean, predictions, options.normaliser, options.unit)
            span = apart.interval(options.replicates, options.level, options.seed)
            score = json_score(apart.value, span)
            entry["difference"] = None if score["value"] is None else score
        entries[config] = entry
    return entries


def invented_words(configs: Sequence[Predictions]) -> Json:
    """What was written for clips without speech."""
    lines = [line for predictions in configs for line in predictions.lines]
    words_per_clip = [len(normalise(line.transcript).split()) for line in lines]
    minutes = sum(line.seconds for line in lines) / 60
    return {
        "clips": len(words_per_clip),
        "clips_with_words": sum(words > 0 for words in words_per_clip),
        "words": sum(words_per_clip),
        "minutes": round(minutes, 4),
        "words_per_minute": json_ratio(sum(words_per_clip), minutes),
    }
