"""Verified results: what the leaderboard is built from, written by `srb verify --out` and by nothing else.

`<owner>--<model>.json` has the scores that were computed again from the predictions, each as [value, low, high], and
the `.npz` beside it the bootstrap replicates of every row that two models are compared in. All models are resampled
alike (the weights depend on clips and seed alone), so the difference of two replicate vectors is the paired bootstrap
of `srb compare`, without the predictions. A hash over the content shows an edit by hand.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterable, Iterator
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import structs

from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.files import write_atomically
from speech_robust_bench.core.records import SubmissionRecord, SubmittedModel, convert, to_json
from speech_robust_bench.core.result_records import (
    MEASURES,
    ConfigResults,
    MeanRow,
    Measures,
    NormalisedRates,
    PastVersion,
    RerunRecord,
    RunResults,
    Streaming,
    VerifiedConfig,
    VerifiedLanguage,
    VerifiedModel,
    VerifiedResults,
    digest,
)
from speech_robust_bench.push.evidence import Fingerprints, copies
from speech_robust_bench.push.leaderboard import verified_files
from speech_robust_bench.push.leaderboard.verified_files import SCHEMA, edition_of
from speech_robust_bench.push.verify import Verdict
from speech_robust_bench.scoring import aggregate, results
from speech_robust_bench.scoring.runs import Predictions, Run

OTHER_NORMALISERS = ("srb-numbers-1", "open-asr-1")


def write(verdict: Verdict, out: Path, predictions_url: str | None = None) -> Path:
    """Put an accepted submission's results into a folder of verified results.

    A model that is there already keeps its earlier versions in `history/`; the same results again change nothing.
    """
    assert verdict.accepted
    assert verdict.results is not None
    assert verdict.facts is not None
    path = out / f"{stem(verdict.facts.model, edition_of(verdict.results.configs))}.json"
    draws = io.BytesIO()
    np.savez_compressed(draws, **_draws(verdict))  # type: ignore[arg-type]
    content = compact(verdict.results, verdict.facts, predictions_url).replace(
        draws_sha256=hashlib.sha256(draws.getvalue()).hexdigest(),
        error_digests=dict(verdict.fingerprints.digests),
        error_sketches={language: list(sketch) for language, sketch in verdict.fingerprints.sketches.items()},
        by_normaliser=_by_normaliser(verdict),
    )
    name = content.model.full_name
    copied = copies(
        verdict.fingerprints,
        {
            entry.model.full_name: Fingerprints(entry.error_digests or {}, entry.error_sketches or {})
            for entry in _entries(out, path)
            if name not in (entry.copy_of or [])  # else a copy would bring the original off the board
            and entry.model.full_name != name  # its results on another edition
        },
    )
    content = content.replace(copy_of=list(copied), flags=[*verdict.flags, *copied.values()])
    before = _previous(path)
    if before and before.replace(version=None, history=None, sha256=None) == content:
        return path
    version = before.version or 1 if before else 0
    if before:
        content = content.replace(history=[*(before.history or []), _past(before)])
        _keep(path, version)
    out.mkdir(parents=True, exist_ok=True)
    write_atomically(path.with_suffix(".npz"), draws.getvalue())
    _write(path, content.replace(version=version + 1, history=content.history or []))
    return path


def stem(model: SubmittedModel, edition: str = "") -> str:
    """The name of a model's files: `<owner>--<name>`, on a private edition `<owner>--<name>--<edition>`."""
    return "--".join([model.owner, model.name, *([edition] if edition else [])])


def add_rerun(path: Path, rerun: RerunRecord) -> None:
    """Note in a verified file that a sample was transcribed again, and what came of it."""
    _write(path, verified_files.read(path).replace(rerun=rerun))


def _write(path: Path, content: VerifiedResults) -> None:
    content = content.replace(sha256=None)
    write_atomically(path, to_json(content.replace(sha256=digest(content.as_json()))))


def _entries(out: Path, but: Path) -> Iterator[VerifiedResults]:
    """The other verified files; one that cannot be read is no evidence."""
    for path in sorted(out.glob("*.json")):
        if path != but:
            with suppress(UserError):
                yield verified_files.read(path)


def _previous(path: Path) -> VerifiedResults | None:
    return verified_files.read(path) if path.is_file() else None


def _past(before: VerifiedResults) -> PastVersion:
    """What the model's page says of an earlier version."""
    return PastVersion(
        version=before.version or 1,
        revision=before.revision,
        verified_with=before.verified_with,
        benchmark_version=before.benchmark_version,
        nwerd={language: rows.overall.get("nwerd") for language, rows in before.languages.items()},
        sha256=before.sha256,
    )


def _keep(path: Path, version: int) -> None:
    history = path.parent / "history"
    history.mkdir(exist_ok=True)
    for suffix in (".json", ".npz"):
        old = path.with_suffix(suffix)
        old.replace(history / f"{path.stem}--{version}{suffix}")


def compact(result: RunResults, facts: SubmissionRecord, predictions_url: str | None) -> VerifiedResults:
    """What the leaderboard shows of a results file."""
    return VerifiedResults(
        schema=SCHEMA,
        model=VerifiedModel(**structs.asdict(facts.model)),
        reproduce=facts.reproduce,
        predictions=predictions_url,
        verified_with=metadata.version("speech-robust-bench"),
        benchmark_version=facts.benchmark_version,
        scoring=result.scoring,
        revision=result.run.revision,
        suite=result.suite,
        failed=result.failed,
        rtf=result.speed.rtf,
        languages={
            language: VerifiedLanguage(
                clean={config: _measures(row) for config, row in rows.clean.items()},
                categories={category: _measures(row) for category, row in rows.categories.items()},
                overall=_measures(rows.overall),
                median=_measures(rows.median),
                adversarial=_measures(rows.adversarial),
                categories_missing=len(rows.overall.missing),
            )
            for language, rows in result.languages.items()
        },
        configs={config: _config(entry) for config, entry in result.configs.items()},
        reject={config: entry.words_per_minute for config, entry in result.reject.items()},
    )


def _config(entry: ConfigResults) -> VerifiedConfig:
    streaming = entry.streaming and convert(_in_short(entry.streaming.as_json()), Streaming)
    return VerifiedConfig(
        language=entry.language,
        corpus=entry.corpus,
        scenario=entry.scenario,
        severity=entry.severity,
        category=entry.category,
        scenario_version=entry.scenario_version,
        **_measures(entry),
        clean_wer=entry.clean_wer,
        difficulty=entry.difficulty,
        bank=entry.bank,
        empty=entry.empty,
        utterances=entry.utterances,
        streaming=streaming,
        attack=entry.attack or None,
    )


def _measures(row: MeanRow | ConfigResults) -> Measures:
    """Each measure as [value, low, high], in hundredths: what a table or a chart can show."""
    scores = {measure: score for measure in MEASURES if (score := row.score(measure))}
    return {
        measure: [round(value, 2) for value in (score.value, *(score.interval or ()))]
        for measure, score in scores.items()
    }


def _in_short(measures: Any) -> Any:
    """Streaming measures as results.json has them, to a tenth of a millisecond."""
    if isinstance(measures, dict):
        return {key: _in_short(value) for key, value in measures.items()}
    if isinstance(measures, list):
        return [_in_short(value) for value in measures]
    return round(measures, 4) if isinstance(measures, float) else measures


def _by_normaliser(verdict: Verdict) -> dict[str, dict[str, NormalisedRates]]:
    """Clean WER and average NWERD in each language by the other normalisers, where they and their packages apply.

    A model that writes "8 4 7" for "eight four seven" looks different by each: the difference says how it writes.
    """
    assert verdict.run is not None
    speech = _with_references(verdict.run)
    by_normaliser: dict[str, dict[str, NormalisedRates]] = {}
    for normaliser in OTHER_NORMALISERS:
        with suppress(UserError):  # a package that is not there, or a language that it does not know
            counts = [predictions.count(normaliser) for predictions in speech]
            own = results.own_scores(
                verdict.run, aggregate.score(counts, replicates=0, floor=results.ScoreOptions().floor)
            )
            by_normaliser[normaliser] = {
                language: NormalisedRates(
                    clean=_mean_wer(summary.clean.values()), nwerd=_rounded(summary.overall.values.get("nwerd"))
                )
                for language, summary in aggregate.summarise(own).items()
            }
    return by_normaliser


def _with_references(run: Run) -> list[Predictions]:
    """What was written for clips with speech of which it is known what was said."""
    speech = (p for p in map(run.read, run.configs) if p.entry.category != results.REJECT)
    return [own for predictions in speech if (own := predictions.transcribed).lines]


def _mean_wer(rows: Iterable[aggregate.Mean]) -> float | None:
    values = [row.values["wer"] for row in rows if "wer" in row.values]
    return _rounded(sum(values) / len(values)) if values else None


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 2)


def _draws(verdict: Verdict) -> dict[str, np.ndarray]:
    """The replicates of every row that models are compared in, by language, row and measure."""
    assert verdict.run is not None
    options = results.ScoreOptions()
    counts = [predictions.count(options.normaliser) for predictions in _with_references(verdict.run)]
    scored = aggregate.score(
        counts, table=options.difficulty, replicates=options.replicates, seed=options.seed, floor=options.floor
    )
    draws: dict[str, np.ndarray] = {}
    for language, summary in aggregate.summarise(results.own_scores(verdict.run, scored)).items():
        rows = {**summary.categories, "overall": summary.overall, "adversarial": summary.adversarial}
        for name, row in rows.items():
            measure = aggregate.measure_of(name)
            if name in ("overall", "adversarial"):
                measure = "nwerd" if name == "overall" else "werd"
            if measure in row.replicates and len(row.replicates[measure]):
                draws[f"{language}/{name}/{measure}"] = row.replicates[measure].astype(np.float32)
    return draws
