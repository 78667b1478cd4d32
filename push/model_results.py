"""`srb push results`: the scores of a run, in the model's own repository, by pull request.

Two forms: `.eval_results/srb.yaml`, which the Hub shows on the model's page and on the benchmark's (one entry per task
of the dataset's `eval.yaml`; huggingface/hub-docs, docs/hub/eval-results.md), and the older `model-index` of the model
card (modelcard.md there). Both are written by `huggingface_hub`. What the card says otherwise stays.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.result_records import RunResults
from speech_robust_bench.push.hub import Hub
from speech_robust_bench.scoring import results

PATH = ".eval_results/srb.yaml"
CARD = "README.md"
NAME = "Speech Robust Bench"
MEANS = ("nwer", "nwerd")  # of a language: what ranks, and the paper's metric


def scores(result: RunResults) -> dict[str, float]:
    """Task of the benchmark -> value: the mean NWER and NWERD of each language, and the WER of each config."""
    means = {
        f"{language}_{measure}": score.value
        for language, rows in result.languages.items()
        for measure in MEANS
        if (score := rows.overall.score(measure))
    }
    return means | {config: entry.wer.value for config, entry in result.configs.items() if entry.wer}


def part_of_benchmark(result: RunResults) -> str | None:
    """What says that a result is of some clips alone: a suite, `--until` or `--limit`. None if it is of all."""
    for config, entry in result.entries():
        if entry.of and entry.rows < entry.of:
            return f"{config} has {entry.rows} of {entry.of} clips"
    limited = re.search(r"--limit \d+", result.run.data or "")
    return f"it was made with {limited[0]}" if limited else None


def eval_results(result: RunResults, dataset: str) -> str:
    """The text of `.eval_results/srb.yaml`."""
    import yaml
    from huggingface_hub import EvalResultEntry, eval_result_entries_to_yaml

    date = result.run.updated or None
    notes = _notes(result)
    entries = [
        EvalResultEntry(dataset_id=dataset, task_id=task, value=value, date=date, notes=notes)
        for task, value in scores(result).items()
    ]
    return yaml.safe_dump(eval_result_entries_to_yaml(entries), sort_keys=False, allow_unicode=True)


def _notes(result: RunResults) -> str:
    difficulty = result.scoring.difficulty.name
    version = result.software["speech-robust-bench"]
    return f"per cent, lower is better; {result.scoring.normaliser}, difficulty {difficulty}, srb {version}"


def model_card(card: str, result: RunResults, model_id: str, dataset: str) -> str:
    """The model card with our entries in its `model-index`; those of other benchmarks stay as they are."""
    from huggingface_hub import EvalResult, ModelCard

    document = ModelCard(card or "---\n{}\n---\n", ignore_metadata_errors=False)
    data: Any = document.data
    others = [entry for entry in data.eval_results or [] if entry.dataset_type != dataset]
    ours = [
        EvalResult(
            task_type="automatic-speech-recognition",
            dataset_type=dataset,
            dataset_name=f"{NAME} ({task})",
            dataset_config=task if _metric(task) == "wer" else None,
            dataset_split="test",
            metric_type=_metric(task),
            metric_value=value,
        )
        for task, value in scores(result).items()
    ]
    data.eval_results = [*others, *ours]
    data.model_name = data.model_name or model_id.split("/")[1]
    return str(document)


def _metric(task: str) -> str:
    return next((measure for measure in MEANS if task.endswith(f"_{measure}")), "wer")


def files(hub: Hub, run: str | Path, model_id: str, dataset: str) -> dict[str, str]:
    """The files of the pull request: path -> text. Scores are taken from the predictions, not from what a file says."""
    result = results.results(results.open_run(run))
    if not scores(result):
        raise UserError(f"{run}: has no score to publish, for none of its clips with speech has a transcript")
    if part := part_of_benchmark(result):
        raise UserError(f"{run}: {part}; what the Hub shows is of whole configs, so run it on all clips")
    there = hub.info(model_id, "model")
    card = hub.read(model_id, "model", CARD, there.sha).decode() if there and CARD in there.files else ""
    return {PATH: eval_results(result, dataset), CARD: model_card(card, result, model_id, dataset)}


def push(hub: Hub, model_id: str, files: Mapping[str, str]) -> str:
    """Open the pull request, or bring an open one up to date; returns its address."""
    from huggingface_hub import CommitOperationAdd

    def operations() -> list[CommitOperationAdd]:
        return [CommitOperationAdd(path_in_repo=path, path_or_fileobj=text.encode()) for path, text in files.items()]

    return hub.pull_request(model_id, "model", operations, f"Add results on {NAME}")
