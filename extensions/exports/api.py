"""`srb.export_results` and `srb.export_croissant`: results and data in the forms that other collections read."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.files import write_atomically
from speech_robust_bench.extensions.exports.croissant import as_json, croissant
from speech_robust_bench.extensions.exports.every_eval_ever import Source, file_name, record
from speech_robust_bench.options import Place
from speech_robust_bench.scoring.results import load


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


def export_croissant(data: Place = "srb", url: str = "") -> tuple[Path, int]:
    """Write Croissant metadata of built data; returns its path and the number of configs.

    Args:
        data: the built folder.
        url: where the data is published.
    """
    metadata = croissant(str(data), url)
    path = Path(data) / "croissant.json"
    write_atomically(path, as_json(metadata))
    return path, len(metadata["recordSet"])
