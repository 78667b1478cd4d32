"""Verified results: what the leaderboard is built from, written by `srb verify --out` and by nothing else.

`<model>.json` has the scores that were computed again from the predictions, each as [value, low, high], and
`<model>.npz` the bootstrap replicates of every row that two models are compared in. All models are resampled alike (the
weights depend on clips and seed alone), so the difference of two replicate vectors is the paired bootstrap of
`srb compare`, without the predictions. A hash over the content shows an edit by hand.
"""

from __future__ import annotations

import hashlib
import io
import json
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from srb.builders.audio import replacing
from srb.metrics import aggregate, results
from srb.metrics.aggregate import MEASURES
from srb.push.leaderboard.files import SCHEMA, digest
from srb.push.verify import Verdict

Json = dict[str, Any]


def write(verdict: Verdict, out: Path, predictions_url: str | None = None) -> Path:
    """Put an accepted submission's results into a folder of verified results."""
    assert verdict.accepted
    assert verdict.results is not None
    assert verdict.facts is not None
    name = verdict.facts["model"]["name"]
    draws = io.BytesIO()
    np.savez_compressed(draws, **_draws(verdict))  # type: ignore[arg-type]
    made = compact(verdict.results, verdict.facts, predictions_url)
    made["draws_sha256"] = hashlib.sha256(draws.getvalue()).hexdigest()
    made["sha256"] = digest(made)
    out.mkdir(parents=True, exist_ok=True)
    with replacing(out / f"{name}.npz") as part:
        part.write_bytes(draws.getvalue())
    with replacing(out / f"{name}.json") as part:
        part.write_text(json.dumps(made, ensure_ascii=False, allow_nan=False) + "\n", encoding="utf-8")
    return out / f"{name}.json"


def compact(made: Json, facts: Json, predictions_url: str | None) -> Json:
    """What the leaderboard shows of a results file."""

    def measures(row: Json) -> Json:
        return {measure: _triple(row[measure]) for measure in MEASURES if row.get(measure)}

    return {
        "schema": SCHEMA,
        "model": facts["model"],
        "reproduce": facts["reproduce"],
        "predictions": predictions_url,
        "verified_with": metadata.version("speech-robust-bench"),
        "benchmark_version": facts["benchmark_version"],
        "scoring": made["scoring"],
        "revision": made["run"].get("revision"),
        "failed": made["failed"],
        "rtf": made["speed"]["rtf"],
        "languages": {
            language: {
                "clean": {config: measures(row) for config, row in rows["clean"].items()},
                "categories": {category: measures(row) for category, row in rows["categories"].items()},
                "overall": measures(rows["overall"]),
                "adversarial": measures(rows["adversarial"]),
                "categories_missing": len(rows["overall"]["missing"]),
            }
            for language, rows in made["languages"].items()
        },
        "configs": {
            config: {
                **{key: entry[key] for key in ("language", "corpus", "scenario", "severity", "category")},
                **measures(entry),
            }
            for config, entry in made["configs"].items()
        },
        "reject": {config: entry["words_per_minute"] for config, entry in made["reject"].items()},
    }


def _triple(score: Json) -> list[float | None]:
    """[value, low, high], in hundredths: what a table or a chart can show."""
    return [round(value, 2) for value in (score["value"], *(score["interval"] or ()))]


def _draws(verdict: Verdict) -> dict[str, np.ndarray]:
    """The replicates of every row that models are compared in, by language, row and measure."""
    assert verdict.run is not None
    options = results.Options()
    read = [verdict.run.read(config) for config in verdict.run.configs]
    counts = [one.count(options.normaliser) for one in read if one.entry.get("category") != results.REJECT]
    scored = aggregate.score(
        counts, table=options.difficulty, replicates=options.replicates, seed=options.seed, floor=options.floor
    )
    made: dict[str, np.ndarray] = {}
    for language, summary in aggregate.summarise(scored).items():
        rows = {**summary.categories, "overall": summary.overall, "adversarial": summary.adversarial}
        for name, row in rows.items():
            measure = aggregate.measure_of(name)
            if name in ("overall", "adversarial"):
                measure = "nwerd" if name == "overall" else "werd"
            if measure in row.replicates and len(row.replicates[measure]):
                made[f"{language}/{name}/{measure}"] = row.replicates[measure].astype(np.float32)
    return made
