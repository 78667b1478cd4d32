"""What `srb score` writes: `runs/<model>/results.json`, from the predictions alone (its keys: docs/formats.md).

Nothing is computed here that has a place elsewhere: counts come from `runs`, scores, means and intervals from
`aggregate`, groups from `groups`. This module puts them into one file with the versions and hashes of all that went in.
Clips without speech (the reject sets) have no error rate: every word that is heard in them is invented, so they are
counted in words per minute and stay out of every mean.
"""

from __future__ import annotations

import hashlib
import json
import math
import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from srb.core.categories import AVERAGED, REJECT
from srb.core.errors import UserError
from srb.core.files import write_atomically
from srb.core.json_shapes import read_object
from srb.core.names import ConfigName, parse
from srb.metrics import (
    aggregate,
    attack_success,
    bootstrap,
    calibration,
    conventions,
    difficulty,
    integrity,
    masked_words,
    semantic,
)
from srb.metrics.aggregate import MEASURES, ConfigCounts, ConfigScore, Mean
from srb.metrics.groups import log2_ratio, split
from srb.metrics.results_shape import RESULTS
from srb.metrics.runs import GROUPS, Predictions, Run, open_run
from srb.metrics.scoring import Counts, error_rate, normalise, versions
from srb.metrics.stream_measures import measure_lines
from srb.metrics.transcript_difference import difference

SCHEMA = 1
NAME = "results.json"
LIBRARIES = ("speech-robust-bench", "numpy", "rapidfuzz")
RUN_KEYS = ("spec", "adapter", "target", "asked", "revision", "options", "data", "versions", "machine", "updated")
CONFIG_KEYS = ("language", "corpus", "scenario", "severity", "category", "source", "bank", "benchmark_version")
VERSION = "scenario_version"  # only of a scenario that has changed since its first version
HASHES = ("content_sha256", "rows_sha256")
LATER_OPTIONS = frozenset({"conventions", "embeddings"})  # older results do not have them
PARTS = ("configs", "reject", "untranscribed")  # of a result, each an object from config to its entry
Json = dict[str, Any]


@dataclass(frozen=True)
class Options:
    """How to score. Two results can be set side by side if these are the same."""

    normaliser: str = "srb-paper-1"
    unit: str | None = None
    difficulty: str = difficulty.DEFAULT
    floor: bool = False
    by_speaker: bool = False
    replicates: int = 1000
    level: float = 0.95
    seed: int = 0
    conventions: str | None = None  # a file with equivalences of one's own, for WER lenient
    embeddings: str | None = None  # the folder of a sentence-embedding model, for the semantic error

    def as_json(self) -> Json:
        """The options as a results file has them; one that came later stands there only if it was used."""
        return {key: value for key, value in asdict(self).items() if value is not None or key not in LATER_OPTIONS}


def load(folder: str | Path, options: Options | None = None, *, allow_changed: bool = False) -> Json:
    """The results of a run: those in its folder if they still fit predictions and options, else scored now and kept.

    Predictions or results that were edited since they were written are refused, unless `allow_changed`.
    """
    run = open_run(folder)
    path = run.folder / NAME
    known = _read_results(path)
    wanted = (options or Options(**known.get("options", {}))).as_json()
    entries = all_entries(known)
    fits = (
        known.get("schema") == SCHEMA
        and known.get("options") == wanted
        and known.get("software") == _software()
        and {c: entry.get("predictions_sha256") for c, entry in entries.items()} == _file_hashes(run)
    )
    if not fits:
        return score_run(folder, Options(**wanted), allow_changed=allow_changed)
    if not allow_changed:
        integrity.check_unchanged(run)
        integrity.check_results(path, known)
    return known


def _read_results(path: Path) -> Json:
    """What a results.json holds; nothing if it is torn or something else, for then it can be made again."""
    try:
        known = read_object(path, RESULTS) if path.is_file() else {}
    except UserError:
        return {}
    names = {field.name for field in fields(Options)}
    return known if names - LATER_OPTIONS <= set(known.get("options", {})) <= names else {}


def score_run(folder: str | Path, options: Options = Options(), *, allow_changed: bool = False) -> Json:
    """Score a run folder and write its results.json; refuses predictions that were edited, unless `allow_changed`."""
    run = open_run(folder)
    if not allow_changed:
        integrity.check_unchanged(run)
    scored = results(run, options)
    scored["sha256"] = integrity.digest(scored)
    text = json.dumps(scored, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    write_atomically(run.folder / NAME, text)
    return scored


def results(run: Run, options: Options = Options()) -> Json:
    """Everything that is known about a run, as JSON holds it."""
    read = {config: run.read(config) for config in run.configs}
    with_speech = {c: predictions for c, predictions in read.items() if predictions.entry.get("category") != REJECT}
    speech = {c: own for c, predictions in with_speech.items() if (own := predictions.transcribed).lines}
    unknown = {c: own for c, predictions in with_speech.items() if (own := predictions.untranscribed).lines}
    counts = {c: predictions.count(options.normaliser, options.unit) for c, predictions in speech.items()}
    table = difficulty.load(options.difficulty)
    scores = aggregate.score(
        counts.values(),
        table=table,
        floor=options.floor,
        by_speaker=options.by_speaker,
        replicates=options.replicates,
        seed=options.seed,
    )
    hashes = _file_hashes(run)
    embedder = semantic.open_embedder(options.embeddings) if options.embeddings else None
    summaries = aggregate.summarise(own_scores(run, scores))
    return {
        "schema": SCHEMA,
        "model": run.model,
        "run": {key: run.about.get(key) for key in RUN_KEYS},
        "software": _software(),
        "options": options.as_json(),
        "scoring": {
            "normaliser": versions(options.normaliser)["normaliser"],
            "difficulty": {"name": table.name, "sha256": hashlib.sha256(table.to_csv().encode()).hexdigest()},
            **_own_conventions(options),
            **({"embeddings": {"model": embedder.folder.name, "revision": embedder.revision}} if embedder else {}),
        },
        "suite": _suite(read.values()),
        "failed": sum(predictions.failed for predictions in read.values()),
        "unfinished": sorted(set(run.about.get("configs", {})) - set(run.configs)),
        "speed": _speed(read.values()),
        "languages": {
            language: {
                **_summary(summary, options),
                "missing": _missing(language, counts),
                "slices": _language_slices(language, speech, counts, options),
                "hallucination": _hallucination(language, counts.values(), read),
            }
            for language, summary in summaries.items()
        },
        "configs": {
            score.config: {
                **_config(score, counts[score.config], speech[score.config], hashes, options),
                **_semantic(counts[score.config], speech[score.config], options, embedder),
            }
            for score in scores
        },
        "reject": {
            config: {**_about(predictions, hashes, options), **_invented([predictions])}
            for config, predictions in read.items()
            if config not in with_speech
        },
        **({"untranscribed": _untranscribed(unknown, hashes, options)} if unknown else {}),
    }


def _suite(configs: Iterable[Predictions]) -> str | None:
    """The suite whose clips these are; none where a config has others, or all of its clips.

    Clean speech is whole where the corpus has no more clips than the suite takes.
    """
    labels = {predictions.entry.get("suite") for predictions in configs if not predictions.clean}
    return labels.pop() if len(labels) == 1 else None


def load_groups(folder: str | Path, column: str, options: Options | None = None) -> dict[str, Json]:
    """The results of a run for each group of its clips that a column tells apart: by domain, by region, ..."""
    whole = load(folder, options)
    how = Options(**whole["options"])
    return {group: results(run, how) for group, run in open_run(folder).groups(column).items()}


def all_entries(result: Json) -> Json:
    """Every config of a result: with references, without speech, without references."""
    return {config: entry for part in reversed(PARTS) for config, entry in result.get(part, {}).items()}


def own_scores(run: Run, scores: Iterable[ConfigScore]) -> list[ConfigScore]:
    """Without the configs that were made against another model: its attack says little about this one.

    A config's name carries the name of the model's run folder, which a submission keeps as `run_name`.
    """
    names = (None, run.model, run.folder.name, run.about.get("run_name"))
    return [score for score in scores if parse(score.config).model in names]


# --- the parts -------------------------------------------------------------------------------------------------------


def _config(
    score: ConfigScore, counts: ConfigCounts, predictions: Predictions, hashes: Mapping[str, str], options: Options
) -> Json:
    totals = counts.counts.totals()
    return {
        **_about(predictions, hashes, options),
        **_scores(score, options),
        **_lenient(counts, predictions, options),
        "why": dict(score.why),
        "clean_wer": _number(score.clean_wer),
        "difficulty": _number(score.difficulty),
        "unit": versions(options.normaliser, options.unit, parse(score.config).language)["unit"],
        "utterances": len(counts.counts),
        **totals,
        "insertions_per_word": _ratio(totals["insertions"], int(counts.counts.lengths.sum())),
        "empty": _empty(counts.counts),
        "slices": _slices(counts.counts, predictions, _draw(counts, options), options.level),
        **_attack(predictions, options),
        **_confidence(predictions),
        **_masked(predictions, options),
    }


def _attack(predictions: Predictions, options: Options) -> Json:
    """How well an attack worked, of an adversarial config."""
    if not attack_success.is_adversarial(predictions.config):
        return {}
    return {"attack": attack_success.of_lines(predictions.lines, options.normaliser)}


def _own_conventions(options: Options) -> Json:
    if not options.conventions:
        return {}
    return {
        "conventions": {"file": Path(options.conventions).name, "sha256": conventions.file_digest(options.conventions)}
    }


def _lenient(counts: ConfigCounts, predictions: Predictions, options: Options) -> Json:
    """WER lenient beside the strict one, where words are counted."""
    language = parse(predictions.config).language
    if versions(options.normaliser, options.unit, language)["unit"] != "word":
        return {}
    written = ["" if text is None else text for text in predictions.column("pred_text")]
    said = [text or "" for text in predictions.column("text")]
    errors = conventions.lenient_errors(counts.counts, said, written, language, options.conventions)
    draws, lengths = _draw(counts, options), counts.counts.lengths
    span = None if draws is None else bootstrap.interval(error_rate(draws @ errors, draws @ lengths), options.level)
    value = _number(float(error_rate(errors.sum(), lengths.sum())))
    return {"wer_lenient": {"value": value, "interval": span and [_number(v) for v in span]}}


def _semantic(
    counts: ConfigCounts, predictions: Predictions, options: Options, embedder: semantic.Embed | None
) -> Json:
    """The mean semantic error, where an embedding model is given."""
    if embedder is None:
        return {}
    written = ["" if text is None else text for text in predictions.column("pred_text")]
    said = [text or "" for text in predictions.column("text")]
    errors = semantic.semantic_errors(said, written, embedder)
    draws = _draw(counts, options)
    span = None if draws is None else bootstrap.interval(draws @ errors / draws.sum(axis=1), options.level)
    return {"semantic_error": {"value": _number(float(errors.mean())), "interval": span and [_number(v) for v in span]}}


def _confidence(predictions: Predictions) -> Json:
    """Whether the recogniser knows when it fails, of a config whose words have confidences."""
    measures = calibration.of_lines(predictions.lines, parse(predictions.config).language)
    return {"confidence": measures} if measures else {}


def _masked(predictions: Predictions, options: Options) -> Json:
    """How often masked words are written all the same, of a config that has some."""
    rate = masked_words.of_lines(predictions.lines, options.normaliser, options.replicates, options.level, options.seed)
    return {"masked": rate} if rate else {}


def _empty(counts: Counts) -> int:
    """Clips of which no word was recognised, failed ones too, though words were said: all deletions, nothing else."""
    return int(((counts.lengths > 0) & (counts.deletions == counts.lengths) & (counts.insertions == 0)).sum())


def _about(predictions: Predictions, hashes: Mapping[str, str], options: Options) -> Json:
    name, entry = parse(predictions.config), predictions.entry
    derived = {"language": name.language, "corpus": name.corpus, "scenario": name.scenario, "severity": name.severity}
    return {
        **{key: entry.get(key, derived.get(key)) for key in CONFIG_KEYS},
        **({VERSION: entry[VERSION]} if VERSION in entry else {}),
        "rows": len(predictions.lines),
        "of": entry.get("of"),
        "failed": predictions.failed,
        "failed_ids": [line["id"] for line in predictions.lines if line.get("pred_text") is None],
        "rtf": entry.get("rtf"),
        "rtf_quantiles": entry.get("rtf_quantiles"),
        **{key: entry.get(key) for key in HASHES},
        "predictions_sha256": hashes[predictions.config],
        **_streaming(predictions, options),
    }


def _streaming(predictions: Predictions, options: Options) -> Json:
    """Latency and stability, of a config that was used live."""
    try:
        measures = measure_lines(predictions.lines, options.replicates, options.level, options.seed)
    except UserError as problem:
        raise UserError(f"{predictions.config}.jsonl, {problem}") from None
    return {"streaming": measures} if measures else {}


def _summary(summary: aggregate.Summary, options: Options) -> Json:
    parts = ("clean", "categories", "scenarios", "severities", "corpora")
    rows: Json = {part: {name: _row(row, options) for name, row in getattr(summary, part).items()} for part in parts}
    single = ("overall", "median", "adversarial")
    return {**rows, **{name: _row(getattr(summary, name), options) for name in single}}


def _row(row: Mean, options: Options) -> Json:
    return {**_scores(row, options), "members": list(row.members), "missing": dict(row.missing)}


def _scores(row: ConfigScore | Mean, options: Options) -> Json:
    """Each measure as value and interval, null where there is none."""
    scores: Json = {}
    for measure in MEASURES:
        span = row.interval(measure, options.level) if measure in row.values else None
        value = _number(row.values.get(measure))
        scores[measure] = None if value is None else {"value": value, "interval": span and [_number(v) for v in span]}
    return scores


def _missing(language: str, scored: Mapping[str, ConfigCounts]) -> dict[str, list[str]]:
    """The paper's perturbations that are not there for a corpus whose clean config is, by category."""
    from srb.builders.scenarios import SCENARIOS

    rows = [row for row in SCENARIOS.values() if row.maker == "perturbation" and row.category in AVERAGED]
    names = [parse(config) for config in scored]
    missing: dict[str, list[str]] = {}
    for clean in (name for name in names if name.language == language and name.scenario == "clean"):
        for row in rows:
            configs = (str(ConfigName(language, row.name, severity, clean.corpus)) for severity in row.levels)
            missing.setdefault(row.category, []).extend(config for config in configs if config not in scored)
    return {category: configs for category, configs in missing.items() if configs}


def _language_slices(
    language: str, speech: Mapping[str, Predictions], counts: Mapping[str, ConfigCounts], options: Options
) -> Json:
    """Groups of speakers, per corpus: on its clean clips, and on all its other configs together."""
    by_corpus: Json = {}
    for config, predictions in speech.items():
        name = parse(config)
        if name.language == language:
            kind = "clean" if name.scenario == "clean" else "hard"
            corpus = str(predictions.entry.get("corpus") or name.corpus)
            by_corpus.setdefault(corpus, {}).setdefault(kind, []).append(config)
    return {
        corpus: {kind: _pooled([(counts[c], speech[c]) for c in members], options) for kind, members in kinds.items()}
        for corpus, kinds in by_corpus.items()
    }


def _pooled(members: Sequence[tuple[ConfigCounts, Predictions]], options: Options) -> Json:
    """Slices over several configs; a clip that is in many of them is one clip to the bootstrap."""
    first: dict[str, Json] = {}
    sums: dict[str, np.ndarray] = {}
    for counts, predictions in members:
        clips = np.array([getattr(counts.counts, key) for key in counts.counts.totals()]).T
        for line, clip_counts in zip(predictions.lines, clips, strict=True):
            first.setdefault(line["id"], line)
            sums[line["id"]] = sums.get(line["id"], 0) + clip_counts
    together = Counts(*np.array(list(sums.values()), dtype=np.int64).reshape(-1, 4).T)
    lines = Predictions("", {}, list(first.values()))
    speakers = lines.column("speaker") if options.by_speaker else None
    draws = bootstrap.weights(list(first), speakers, replicates=max(options.replicates, 1), seed=options.seed)
    return {"configs": len(members), **_slices(together, lines, draws if options.replicates else None, options.level)}


def _draw(counts: ConfigCounts, options: Options) -> np.ndarray | None:
    if not options.replicates:
        return None
    speakers = counts.speakers if options.by_speaker else None
    return bootstrap.weights(counts.ids, speakers, replicates=options.replicates, seed=options.seed)


def _slices(counts: Counts, predictions: Predictions, draws: np.ndarray | None, level: float) -> Json:
    """WER of each group of speakers that the corpus tells of, and the log WER ratio of female to male speakers."""
    slices: Json = {"speakers": len(set(predictions.column("speaker")) - {None})}
    by_column = {column: _groups(counts, predictions, column) for column in predictions.group_columns}
    slices |= {column: groups for column, groups in by_column.items() if groups and column in GROUPS}
    if own := {column: groups for column, groups in by_column.items() if groups and column not in GROUPS}:
        slices["columns"] = own
    gender = slices.get("gender", {})
    if {"female", "male"} <= set(gender):
        ratio = log2_ratio(gender["female"]["wer"], gender["male"]["wer"])
        slices["lwerr"] = {
            "value": _number(ratio),
            "interval": _lwerr_interval(counts, predictions.column("gender"), draws, level),
        }
    return slices


def _groups(counts: Counts, predictions: Predictions, column: str) -> Json:
    return {
        group: {
            "wer": _number(part.rate),
            "utterances": len(part),
            "words": int(part.lengths.sum()),
            "speakers": len(_speakers(predictions, column, group)),
        }
        for group, part in split(counts, predictions.column(column)).items()
    }


def _speakers(predictions: Predictions, column: str, group: str) -> set[str]:
    return {line["speaker"] for line in predictions.only(column, group).lines if line.get("speaker")}


def _lwerr_interval(
    counts: Counts, genders: Sequence[str | None], draws: np.ndarray | None, level: float
) -> list[float] | None:
    """Over the replicates that drew words of both; None where a bound is infinite, one of the two making no errors."""
    if draws is None:
        return None
    chosen = [np.array([label == gender for label in genders]) for gender in ("female", "male")]
    both = np.all([draws[:, group] @ counts.lengths[group] > 0 for group in chosen], axis=0)
    female, male = (bootstrap.rates(draws[both][:, group], [counts.take(group)])[:, 0] for group in chosen)
    ratios = [log2_ratio(float(a), float(b)) for a, b in zip(female, male, strict=True)]
    if not ratios:
        return None
    bounds = np.quantile(ratios, [(1 - level) / 2, (1 + level) / 2], method="nearest")  # the others average infinities
    return [round(float(bound), 4) for bound in bounds] if np.isfinite(bounds).all() else None


def _untranscribed(unknown: Mapping[str, Predictions], hashes: Mapping[str, str], options: Options) -> Json:
    """What can be said of clips without a reference: how much was written, and how far from the clean clip's words."""
    entries: Json = {}
    for config, predictions in unknown.items():
        about = _about(predictions, hashes, options)
        clean = unknown.get(str(about["source"]))
        entry = {**about, **_invented([predictions]), "difference": None}
        if clean is not None:
            apart = difference(clean, predictions, options.normaliser, options.unit)
            span = apart.interval(options.replicates, options.level, options.seed)
            if (value := _number(apart.value)) is not None:
                entry["difference"] = {"value": value, "interval": span and [_number(v) for v in span]}
        entries[config] = entry
    return entries


def _hallucination(language: str, counts: Iterable[ConfigCounts], read: Mapping[str, Predictions]) -> Json:
    """Words that nobody said: insertions where there is speech, every word where there is none."""
    own = [c.counts for c in counts if parse(c.config).language == language]
    insertions, words = sum(int(c.insertions.sum()) for c in own), sum(int(c.lengths.sum()) for c in own)
    silent = [
        predictions
        for predictions in read.values()
        if predictions.entry.get("category") == REJECT and parse(predictions.config).language == language
    ]
    return {"insertions_per_word": _ratio(insertions, words), "reject": _invented(silent) if silent else None}


def _invented(configs: Sequence[Predictions]) -> Json:
    """What was heard in clips without speech."""
    words_per_clip = [
        len(normalise(line.get("pred_text") or "").split()) for predictions in configs for line in predictions.lines
    ]
    minutes = sum(float(line.get("duration") or 0) for predictions in configs for line in predictions.lines) / 60
    return {
        "clips": len(words_per_clip),
        "clips_with_words": sum(words > 0 for words in words_per_clip),
        "words": sum(words_per_clip),
        "minutes": round(minutes, 4),
        "words_per_minute": _ratio(sum(words_per_clip), minutes),
    }


def _speed(configs: Iterable[Predictions]) -> Json:
    """Seconds of audio, seconds of recognition, and their ratio, over the clips that were heard."""
    lines = [line for predictions in configs for line in predictions.lines if line.get("pred_text") is not None]
    audio_s, seconds = (sum(float(line.get(key) or 0) for line in lines) for key in ("duration", "time"))
    return {"audio_s": round(audio_s, 3), "seconds": round(seconds, 3), "rtf": _ratio(seconds, audio_s)}


def _software() -> dict[str, str]:
    return {"python": platform.python_version(), **{name: metadata.version(name) for name in LIBRARIES}}


def _file_hashes(run: Run) -> dict[str, str]:
    return {c: hashlib.sha256((run.folder / f"{c}.jsonl").read_bytes()).hexdigest() for c in run.configs}


def _number(value: float | None) -> float | None:
    """Rounded far below what a bootstrap can tell; null for what JSON cannot hold."""
    return None if value is None or not math.isfinite(value) else round(float(value), 4)


def _ratio(part: float, whole: float) -> float | None:
    return round(part / whole, 6) if whole else None


def check_comparable(results: Sequence[Json]) -> None:
    """One clear error if results were scored in ways that cannot be set side by side."""
    for other in results[1:]:
        for key in ("normaliser", "difficulty"):
            first, second = results[0]["scoring"][key], other["scoring"][key]
            if first != second:
                raise UserError(
                    f"{results[0]['model']} and {other['model']} were scored with different {key} settings; "
                    "score both again with `srb score` and the same options"
                )
