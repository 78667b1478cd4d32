"""Results in the form of Every Eval Ever: one JSON a model, in the schema that many evaluations are collected in.

The schema is `eval.schema.json`, version 0.3.0, of github.com/evaleval/every_eval_ever. It wants strings in all free
fields, and a highest score, which an error rate does not have: `HIGHEST` stands for none.
"""

from __future__ import annotations

import json
import re
import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.files import write_atomically
from speech_robust_bench.core.result_records import RunResults, ScoreValue
from speech_robust_bench.options import Place
from speech_robust_bench.push.model_results import MEANS, part_of_benchmark
from speech_robust_bench.scoring.aggregate import MEASURES, measure_of
from speech_robust_bench.scoring.results import load

SCHEMA_VERSION = "0.3.0"
BENCHMARK = "speech-robust-bench"
HIGHEST = 10_000.0
MEANING = {
    "wer": "Word error rate in per cent: edit operations over reference words, or characters in unspaced scripts.",
    "nwer": "WER divided by the difficulty of the scenario, in per cent.",
    "werd": "WER minus the WER of the same recogniser on the clean clips, in points.",
    "nwerd": "WERD divided by the difficulty of the scenario, in per cent.",
}
LOWEST = {"wer": 0.0, "nwer": 0.0, "werd": -HIGHEST, "nwerd": -HIGHEST}
Relationship = Literal["first_party", "third_party", "collaborative", "other"]
Json = dict[str, Any]


@dataclass(frozen=True)
class Source:
    """Who evaluated which model on what: what a run folder does not know of itself."""

    model_id: str  # ORG/MODEL
    organisation: str  # who ran the evaluation
    relationship: Relationship = "third_party"
    dataset: str | None = None  # the Hub dataset, if the data came from there


def export_results(
    run: Place,
    *,
    model_id: str,
    organisation: str,
    relationship: str = "third_party",
    dataset: str | None = None,
    out: Place = ".",
) -> tuple[Path, int]:
    """Write the scores of a run for Every Eval Ever; returns the path and the number of scores.

    Args:
        run: the run folder.
        model_id: the model's repository on the Hub.
        organisation: who ran the evaluation.
        relationship: of the evaluator to the model's makers: first_party, third_party, collaborative or other.
        dataset: the Hub dataset that the clips came from.
        out: the record goes to `out/data/...`.
    """
    if not re.fullmatch(r"[\w.-]+/[\w.-]+", model_id) or ".." in model_id:
        raise UserError(f"'{model_id}' is not a model's name; they look like ORG/MODEL")
    source = Source(model_id, organisation, relationship, dataset)  # type: ignore[arg-type]
    converted = record(load(Path(run)), source, int(time.time()))
    path = Path(out) / file_name(converted)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, json.dumps(converted, indent=2, ensure_ascii=False) + "\n")
    return path, len(converted["evaluation_results"])


def record(result: RunResults, source: Source, now: int) -> Json:
    """The record of one results.json; `now` is the time of writing, in seconds since 1970."""
    run = result.run
    return {
        "schema_version": SCHEMA_VERSION,
        "evaluation_id": f"{BENCHMARK}/{source.model_id}/{now}",
        **({"evaluation_timestamp": str(run.updated)} if run.updated else {}),
        "retrieved_timestamp": str(now),
        "source_metadata": {
            "source_name": "Speech Robust Bench",
            "source_type": "evaluation_run",
            "source_organization_name": source.organisation,
            "evaluator_relationship": source.relationship,
        },
        "eval_library": {
            "name": BENCHMARK,
            "version": result.software["speech-robust-bench"],
            "additional_details": _strings(
                {
                    "normaliser": result.scoring.normaliser,
                    "difficulty": result.scoring.difficulty.name,
                    "difficulty_sha256": result.scoring.difficulty.sha256,
                }
            ),
        },
        "model_info": {
            "name": result.model,
            "id": source.model_id,
            "developer": source.model_id.split("/")[0],
            "additional_details": _strings(
                {
                    **{key: getattr(run, key) for key in ("spec", "adapter", "revision")},
                    "deployment_type": _deployment(run.adapter),
                    "model_availability": "open_weights" if run.adapter == "hf" and run.revision else "unknown",
                }
            ),
        },
        "evaluation_results": [*_means(result, source), *_configs(result, source)],
    }


def file_name(record: Json) -> Path:
    """Where the collection keeps a record: `data/<benchmark>/<developer>/<model>/<uuid>.json`."""
    return Path("data", BENCHMARK, *record["model_info"]["id"].split("/"), f"{uuid.uuid4()}.json")


def _deployment(adapter: str | None) -> str:
    """Who runs the model: a vendor behind its API, or the people who ran the benchmark; a server may be anybody's."""
    if adapter == "api":
        return "externally_managed"
    return "unknown" if adapter in (None, "chat-api", "openai-api", "ws", "cmd", "python") else "self_deployed"


def _means(result: RunResults, source: Source) -> Iterator[Json]:
    """The average and the categories of each language."""
    for language, rows in result.languages.items():
        named = [("overall", measure, rows.overall) for measure in MEANS]
        named += [(name, measure_of(name), row) for name, row in rows.categories.items()]
        for name, measure, row in named:
            if score := row.score(measure):
                details = {"language": language, "members": ", ".join(row.members), **_part(result)}
                yield _entry(f"{language} {name}", measure, score, result, source, details)


def _configs(result: RunResults, source: Source) -> Iterator[Json]:
    for config, entry in result.configs.items():
        clips = f"{entry.rows} of {entry.of}" if entry.of else entry.rows
        details = {"config": config, "content_sha256": entry.content_sha256, "clips": clips, **_part(result)}
        for measure in MEASURES:
            if score := entry.score(measure):
                yield _entry(config, measure, score, result, source, details, entry.utterances)


def _part(result: RunResults) -> Json:
    """The text beside every score of a part of the benchmark."""
    part = result.suite or part_of_benchmark(result)
    return {"part": part} if part else {}


def _entry(
    name: str,
    measure: str,
    score: ScoreValue,
    result: RunResults,
    source: Source,
    details: Mapping[str, Any],
    utterances: int | None = None,
) -> Json:
    options = result.options
    uncertainty: Json = {}
    if score.interval:
        lower, upper = score.interval
        interval = {"lower": lower, "upper": upper, "confidence_level": options.level, "method": "bootstrap"}
        uncertainty = {"confidence_interval": interval, "num_bootstrap_samples": options.replicates}
        if utterances is not None:
            uncertainty["num_samples"] = utterances
    return {
        "evaluation_name": f"{name} ({measure.upper()})",
        "source_data": _data(name, source, details, utterances),
        "metric_config": {
            "evaluation_description": MEANING[measure],
            "lower_is_better": True,
            "score_type": "continuous",
            "min_score": LOWEST[measure],
            "max_score": HIGHEST,
            "additional_details": {"bounds": "none in fact: error rates can exceed 100 per cent"},
        },
        "score_details": {"score": score.value, **({"uncertainty": uncertainty} if uncertainty else {})},
    }


def _data(name: str, source: Source, details: Mapping[str, Any], utterances: int | None) -> Json:
    entry: Json = {"dataset_name": f"Speech Robust Bench, {name}", "additional_details": _strings(details)}
    if source.dataset is None:
        return {**entry, "source_type": "other"}
    samples = {} if utterances is None else {"samples_number": utterances}
    return {**entry, "source_type": "hf_dataset", "hf_repo": source.dataset, "hf_split": "test", **samples}


def _strings(details: Mapping[str, Any]) -> dict[str, str]:
    return {key: str(value) for key, value in details.items() if value is not None}
