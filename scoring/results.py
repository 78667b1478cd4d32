"""What `srb score` writes: `runs/<model>/results.json`, from the predictions alone (its keys: docs/concepts/files.md).

Nothing is computed here that has a place elsewhere: counts come from `runs`, scores, means and intervals from
`aggregate`, the entry of a config and its groups from `config_results`. This module puts them into one
file with the versions and hashes of all that went in.
"""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

from speech_robust_bench.core.categories import AVERAGED, REJECT
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.files import file_digest, write_atomically
from speech_robust_bench.core.names import ConfigName, parse
from speech_robust_bench.core.records import read, to_json
from speech_robust_bench.core.result_records import (
    DifficultyUsed,
    Hallucination,
    LanguageResults,
    MeanRow,
    RunResults,
    ScoredRun,
    ScoringVersions,
    Speed,
    digest,
)
from speech_robust_bench.scoring import aggregate, difficulty, runs
from speech_robust_bench.scoring.aggregate import ConfigCounts, ConfigScore, Mean
from speech_robust_bench.scoring.config_results import (
    CountedConfig,
    config_entry,
    invented_words,
    language_slices,
    reject_entry,
    resampled_entry,
    scores_entry,
    untranscribed_entries,
)
from speech_robust_bench.scoring.estimate import INTERVALS
from speech_robust_bench.scoring.measures import measure_versions
from speech_robust_bench.scoring.runs import Predictions, Run, open_run
from speech_robust_bench.scoring.score_options import DEFAULTS, ScoreOptions, json_ratio
from speech_robust_bench.scoring.scoring import versions

SCHEMA = 2  # 2: intervals over speakers, which hold for few units; 1: percentiles over clips
NAME = "results.json"
LIBRARIES = ("speech-robust-bench", "numpy", "rapidfuzz")


def load(folder: str | Path, options: ScoreOptions | None = None, *, allow_changed: bool = False) -> RunResults:
    """The results of a run: those in its folder if they still fit predictions and options, else scored now and kept.

    Predictions or results that were edited since they were written are refused, unless `allow_changed`.
    """
    run = open_run(folder)
    path = run.folder / NAME
    known = _read_results(path)
    wanted = (options or DEFAULTS).record if options or not known else known.options
    fits = (
        known is not None
        and known.options == wanted
        and known.software == _software()
        and {config: entry.predictions_sha256 for config, entry in known.entries()} == _file_hashes(run)
    )
    if known is None or not fits:
        return score_run(folder, ScoreOptions.of(wanted), allow_changed=allow_changed)
    if not allow_changed:
        runs.check_unchanged(run)
        runs.check_results(path)
    return known


def _read_results(path: Path) -> RunResults | None:
    """What a results.json holds; None if it is torn or something else, for then it can be made again."""
    try:
        known = read(path, RunResults) if path.is_file() else None
    except UserError:
        return None
    return known if known and known.schema == SCHEMA else None


def score_run(folder: str | Path, options: ScoreOptions = DEFAULTS, *, allow_changed: bool = False) -> RunResults:
    """Score a run folder and write its results.json; refuses predictions that were edited, unless `allow_changed`."""
    run = open_run(folder)
    if not allow_changed:
        runs.check_unchanged(run)
    scored = results(run, options)
    scored = scored.replace(sha256=digest(scored.as_json()))
    write_atomically(run.folder / NAME, to_json(scored, indent=1))
    return scored


@dataclass
class _ReadRun:
    """All that is kept of a run's configs, each read and counted by itself: texts where there is no reference alone."""

    speech: dict[str, CountedConfig] = field(default_factory=dict)
    reject: dict[str, Predictions] = field(default_factory=dict)
    unknown: dict[str, Predictions] = field(default_factory=dict)
    failed: int = 0
    audio_s: float = 0.0
    seconds: float = 0.0

    @classmethod
    def of(cls, run: Run, hashes: Mapping[str, str], options: ScoreOptions) -> _ReadRun:
        """Read the configs of a run, one after the other."""
        kept = cls()
        for config in run.configs:
            predictions = run.read(config)
            kept.failed += predictions.failed
            for line in predictions.lines:
                if line.pred_text is not None:
                    kept.audio_s += line.seconds
                    kept.seconds += line.time or 0.0
            if predictions.entry.category == REJECT:
                kept.reject[config] = predictions
                continue
            if (unknown := predictions.untranscribed).lines:
                kept.unknown[config] = unknown
            if (own := predictions.transcribed).lines:
                kept.speech[config] = CountedConfig.of(own, hashes, options)
        return kept

    @property
    def counts(self) -> dict[str, ConfigCounts]:
        """The counts of the configs with references."""
        return {config: each.counts for config, each in self.speech.items()}

    @property
    def speed(self) -> Speed:
        """Seconds of audio, seconds of recognition, and their ratio, over the clips that were transcribed."""
        rtf = json_ratio(self.seconds, self.audio_s)
        return Speed(audio_s=round(self.audio_s, 3), seconds=round(self.seconds, 3), rtf=rtf)


def results(run: Run, options: ScoreOptions = DEFAULTS) -> RunResults:
    """Everything that is known about a run."""
    run.refuse_anchors()
    hashes = _file_hashes(run)
    read = _ReadRun.of(run, hashes, options)
    counts, labels = read.counts, {config: each.labels for config, each in read.speech.items()}
    table = difficulty.load(options.difficulty)
    scores = aggregate.score(
        counts.values(),
        table=table,
        floor=options.floor,
        resample=options.resample,
        replicates=options.replicates,
        seed=options.seed,
    )
    summaries = aggregate.summarise(own_scores(run, scores))
    return RunResults(
        schema=SCHEMA,
        model=run.model,
        run=ScoredRun(**{key: getattr(run.about, key) for key in ScoredRun.__struct_fields__}),
        software=_software(),
        options=options.record,
        scoring=ScoringVersions(
            normaliser=versions(options.normaliser)["normaliser"],
            difficulty=DifficultyUsed(name=table.name, sha256=hashlib.sha256(table.to_csv().encode()).hexdigest()),
            measures=measure_versions(options),
            intervals=INTERVALS,
        ),
        suite=_suite(run),
        failed=read.failed,
        unfinished=sorted(set(run.about.configs or {}) - set(run.configs)),
        speed=read.speed,
        languages={
            language: LanguageResults(
                **_summary(summary, options),
                missing=_missing(language, counts),
                slices=language_slices(language, labels, counts, options),
                hallucination=_hallucination(language, counts.values(), read.reject.values()),
            )
            for language, summary in summaries.items()
        },
        configs={score.config: config_entry(score, read.speech[score.config], options) for score in scores},
        reject={config: reject_entry(predictions, hashes, options) for config, predictions in read.reject.items()},
        untranscribed=untranscribed_entries(read.unknown, hashes, options) or None,
    )


def _suite(run: Run) -> str | None:
    """The suite whose clips these are; none where a config has others, or all of its clips.

    Clean speech is whole where the corpus has no more clips than the suite takes.
    """
    labels = {run.about.config(config).suite for config in run.configs if parse(config).scenario != "clean"}
    return labels.pop() if len(labels) == 1 else None


def load_groups(folder: str | Path, column: str, options: ScoreOptions | None = None) -> dict[str, RunResults]:
    """The results of a run for each group of its clips that a column tells apart: by domain, by region, ..."""
    whole = load(folder, options)
    how = ScoreOptions.of(whole.options)
    return {group: results(run, how) for group, run in open_run(folder).groups(column).items()}


def own_scores(run: Run, scores: Iterable[ConfigScore]) -> list[ConfigScore]:
    """Without the configs that were made against another model: its attack says little about this one.

    A config's name carries the name of the model's run folder, which a submission keeps as `run_name`.
    """
    names = (None, run.model, run.folder.name, run.about.run_name)
    return [score for score in scores if parse(score.config).model in names]


def _summary(summary: aggregate.Summary, options: ScoreOptions) -> dict[str, Any]:
    """The tables of a language, by the fields of `LanguageResults`."""
    parts = ("clean", "categories", "scenarios", "severities", "corpora")
    rows = {part: {name: _row(row, options) for name, row in getattr(summary, part).items()} for part in parts}
    return {**rows, **{name: _row(getattr(summary, name), options) for name in ("overall", "median", "adversarial")}}


def _row(row: Mean, options: ScoreOptions) -> MeanRow:
    return MeanRow(
        **scores_entry(row, options),
        members=list(row.members),
        missing=dict(row.missing),
        resampled=resampled_entry(row, options),
    )


def _missing(language: str, scored: Mapping[str, ConfigCounts]) -> dict[str, list[str]]:
    """The paper's perturbations that are not there for a corpus whose clean config is, by category."""
    from speech_robust_bench.builders.scenarios import SCENARIOS

    rows = [row for row in SCENARIOS.values() if row.maker == "perturbation" and row.category in AVERAGED]
    names = [parse(config) for config in scored]
    missing: dict[str, list[str]] = {}
    for clean in (name for name in names if name.language == language and name.scenario == "clean"):
        for row in rows:
            configs = (str(ConfigName(language, row.name, severity, clean.corpus)) for severity in row.levels)
            missing.setdefault(row.category, []).extend(config for config in configs if config not in scored)
    return {category: configs for category, configs in missing.items() if configs}


def _hallucination(language: str, counts: Iterable[ConfigCounts], reject: Iterable[Predictions]) -> Hallucination:
    """Words that nobody said: insertions where there is speech, every word where there is none."""
    own = [c.counts for c in counts if parse(c.config).language == language]
    insertions, words = sum(int(c.insertions.sum()) for c in own), sum(int(c.lengths.sum()) for c in own)
    silent = [predictions for predictions in reject if parse(predictions.config).language == language]
    return Hallucination(
        insertions_per_word=json_ratio(insertions, words), reject=invented_words(silent) if silent else None
    )


def _software() -> dict[str, str]:
    return {"python": platform.python_version(), **{name: metadata.version(name) for name in LIBRARIES}}


def _file_hashes(run: Run) -> dict[str, str]:
    return {config: file_digest(run.folder / f"{config}.jsonl") for config in run.configs}


def check_comparable(results: Sequence[RunResults]) -> None:
    """One clear error if results were scored in ways that cannot be set side by side."""
    for other in results[1:]:
        for key in ("normaliser", "difficulty"):
            if getattr(results[0].scoring, key) != getattr(other.scoring, key):
                raise UserError(
                    f"{results[0].model} and {other.model} were scored with different {key} settings; "
                    "score both again with `srb score` and the same options"
                )
