"""Verified results: what the leaderboard is built from, written by `srb verify --out` and by nothing else.

`<owner>--<model>.json` has the scores that were computed again from the predictions, each as [value, low, high], and
the `.npz` beside it the bootstrap replicates of every row that two models are compared in. All models are resampled
alike (the weights depend on clips and seed alone), so the difference of two replicate vectors is the paired bootstrap
of `srb compare`, without the predictions. A hash over the content shows an edit by hand.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.files import write_atomically
from speech_robust_bench.core.records import SubmissionRecord, SubmittedModel
from speech_robust_bench.core.seeding import FIRST_VERSION, later_version
from speech_robust_bench.push.evidence import Fingerprints, copies
from speech_robust_bench.push.leaderboard import verified_files
from speech_robust_bench.push.leaderboard.verified_files import SCHEMA, edition_of
from speech_robust_bench.push.verify import Verdict
from speech_robust_bench.scoring import aggregate, results
from speech_robust_bench.scoring.aggregate import MEASURES
from speech_robust_bench.scoring.runs import Predictions, Run, digest

Json = dict[str, Any]
OTHER_NORMALISERS = ("srb-numbers-1", "open-asr-1")


def write(verdict: Verdict, out: Path, predictions_url: str | None = None) -> Path:
    """Put an accepted submission's results into a folder of verified results.

    A model that is there already keeps its earlier versions in `history/`; the same results again change nothing.
    """
    assert verdict.accepted
    assert verdict.results is not None
    assert verdict.facts is not None
    path = out / f"{stem(verdict.facts.model, edition_of(verdict.results['configs']))}.json"
    draws = io.BytesIO()
    np.savez_compressed(draws, **_draws(verdict))  # type: ignore[arg-type]
    content = compact(verdict.results, verdict.facts, predictions_url)
    content["draws_sha256"] = hashlib.sha256(draws.getvalue()).hexdigest()
    content["error_digests"], content["error_sketches"] = verdict.fingerprints.digests, verdict.fingerprints.sketches
    content["by_normaliser"] = _by_normaliser(verdict)
    name = verified_files.name_of(content)
    copied = copies(
        verdict.fingerprints,
        {
            verified_files.name_of(entry): Fingerprints(entry.get("error_digests", {}), entry.get("error_sketches", {}))
            for entry in _entries(out, path)
            if name not in entry.get("copy_of", [])  # else a copy would bring the original off the board
            and verified_files.name_of(entry) != name  # its results on another edition
        },
    )
    content["copy_of"] = list(copied)
    content["flags"] = [*verdict.flags, *copied.values()]
    before = _previous(path)
    if before and all(before.get(key) == content[key] for key in content):
        return path
    content["version"] = (before["version"] + 1) if before else 1
    content["history"] = [*before["history"], _past(before)] if before else []
    if before:
        _keep(path, before["version"])
    out.mkdir(parents=True, exist_ok=True)
    write_atomically(path.with_suffix(".npz"), draws.getvalue())
    _write(path, content)
    return path


def stem(model: SubmittedModel, edition: str = "") -> str:
    """The name of a model's files: `<owner>--<name>`, on a private edition `<owner>--<name>--<edition>`."""
    return "--".join([model.owner, model.name, *([edition] if edition else [])])


def add_rerun(path: Path, rerun: Json) -> None:
    """Note in a verified file that a sample was transcribed again, and what came of it."""
    _write(path, {**verified_files.read(path), "rerun": rerun})


def _write(path: Path, content: Json) -> None:
    content = {**content, "sha256": digest(content)}
    write_atomically(path, json.dumps(content, ensure_ascii=False, allow_nan=False) + "\n")


def _entries(out: Path, but: Path) -> Iterator[Json]:
    """The other verified files; one that cannot be read is no evidence."""
    for path in sorted(out.glob("*.json")):
        if path != but:
            with suppress(UserError):
                yield verified_files.read(path)


def _previous(path: Path) -> Json | None:
    return verified_files.read(path) if path.is_file() else None


def _past(before: Json) -> Json:
    """What the model's page says of an earlier version."""
    overall = {language: rows["overall"].get("nwerd") for language, rows in before["languages"].items()}
    keys = ("version", "revision", "verified_with", "benchmark_version")
    return {**{key: before.get(key) for key in keys}, "nwerd": overall, "sha256": before["sha256"]}


def _keep(path: Path, version: int) -> None:
    history = path.parent / "history"
    history.mkdir(exist_ok=True)
    for suffix in (".json", ".npz"):
        old = path.with_suffix(suffix)
        old.replace(history / f"{path.stem}--{version}{suffix}")


def compact(result: Json, facts: SubmissionRecord, predictions_url: str | None) -> Json:
    """What the leaderboard shows of a results file."""

    def measures(row: Json) -> Json:
        return {measure: _triple(row[measure]) for measure in MEASURES if row.get(measure)}

    return {
        "schema": SCHEMA,
        "model": facts.model.as_json(),
        "reproduce": facts.reproduce,
        "predictions": predictions_url,
        "verified_with": metadata.version("speech-robust-bench"),
        "benchmark_version": facts.benchmark_version,
        "scoring": result["scoring"],
        "revision": result["run"].get("revision"),
        "rerun": None,
        "suite": result["suite"],
        "failed": result["failed"],
        "rtf": result["speed"]["rtf"],
        "languages": {
            language: {
                "clean": {config: measures(row) for config, row in rows["clean"].items()},
                "categories": {category: measures(row) for category, row in rows["categories"].items()},
                "overall": measures(rows["overall"]),
                "median": measures(rows["median"]),
                "adversarial": measures(rows["adversarial"]),
                "categories_missing": len(rows["overall"]["missing"]),
            }
            for language, rows in result["languages"].items()
        },
        "configs": {
            config: {
                **{key: entry[key] for key in ("language", "corpus", "scenario", "severity", "category")},
                **later_version(entry.get("scenario_version", FIRST_VERSION)),
                **measures(entry),
                "clean_wer": entry["clean_wer"],
                "difficulty": entry["difficulty"],
                "bank": entry.get("bank"),
                "empty": entry["empty"],
                "utterances": entry["utterances"],
                **({"streaming": _in_short(entry["streaming"])} if entry.get("streaming") else {}),
                **({"attack": entry["attack"]} if entry.get("attack") else {}),
            }
            for config, entry in result["configs"].items()
        },
        "reject": {config: entry["words_per_minute"] for config, entry in result["reject"].items()},
    }


def _in_short(measures: Any) -> Any:
    """Streaming measures as results.json has them, to a tenth of a millisecond."""
    if isinstance(measures, dict):
        return {key: _in_short(value) for key, value in measures.items()}
    if isinstance(measures, list):
        return [_in_short(value) for value in measures]
    return round(measures, 4) if isinstance(measures, float) else measures


def _triple(score: Json) -> list[float | None]:
    """[value, low, high], in hundredths: what a table or a chart can show."""
    return [round(value, 2) for value in (score["value"], *(score["interval"] or ()))]


def _by_normaliser(verdict: Verdict) -> dict[str, Json]:
    """Clean WER and average NWERD in each language by the other normalisers, where they and their packages apply.

    A model that writes "8 4 7" for "eight four seven" looks different by each: the difference says how it writes.
    """
    assert verdict.run is not None
    speech = _with_references(verdict.run)
    by_normaliser: dict[str, Json] = {}
    for normaliser in OTHER_NORMALISERS:
        with suppress(UserError):  # a package that is not there, or a language that it does not know
            counts = [predictions.count(normaliser) for predictions in speech]
            own = results.own_scores(
                verdict.run, aggregate.score(counts, replicates=0, floor=results.ScoreOptions().floor)
            )
            by_normaliser[normaliser] = {
                language: {
                    "clean": _mean_wer(summary.clean.values()),
                    "nwerd": _rounded(summary.overall.values.get("nwerd")),
                }
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
