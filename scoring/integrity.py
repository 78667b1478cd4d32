"""Has a run folder been changed since `srb run` wrote it? Compares the predictions with the hashes in `run.json`.

The hashes are no signature: who edits the predictions can edit them too. They show mistakes (a file of another run, a
half-copied folder, a reference put right by hand), and `srb verify` compares with the benchmark itself.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.records import RunConfig, parse_line
from speech_robust_bench.core.row_hashes import transcripts_digest
from speech_robust_bench.scoring.runs import Run

WAY_OUT = "run it again with `srb run`, or say --allow-changed to take it as it is"


def changes(run: Run) -> list[str]:
    """What is not as `run.json` says, one line for each config."""
    differences = (_change(run, config, run.about.config(config)) for config in run.configs)
    return [line for line in differences if line]


def check_unchanged(run: Run) -> None:
    """Refuse a run whose predictions are not those that `srb run` recorded."""
    if lines := changes(run):
        more = f" (and {len(lines) - 1} more configs)" if len(lines) > 1 else ""
        raise UserError(f"{run.folder}: {lines[0]}{more}; {WAY_OUT}")


def _change(run: Run, config: str, entry: RunConfig) -> str | None:
    data = (run.folder / f"{config}.jsonl").read_bytes()
    recorded = entry.sha256  # not by the first versions
    if recorded == hashlib.sha256(data).hexdigest() or (recorded is None and not entry.rows_sha256):
        return None
    try:
        pairs = [(line.id, line.text) for line in map(parse_line, data.splitlines())]
    except ValueError:
        return f"{config}.jsonl was changed after the run, and has lines that are no predictions"
    if entry.rows is not None and entry.rows != len(pairs):
        return f"{config}.jsonl has {len(pairs)} lines, the run wrote {entry.rows}"
    if entry.rows_sha256 and entry.of == len(pairs) and transcripts_digest(pairs) != entry.rows_sha256:
        return f"{config}.jsonl has other ids or references than the data it was run on"
    return f"{config}.jsonl was changed after the run" if recorded else None


def digest(content: Mapping[str, Any]) -> str:
    """The hash of a JSON file's content, without the hash itself."""
    kept = {key: value for key, value in content.items() if key != "sha256"}
    return hashlib.sha256(json.dumps(kept, sort_keys=True, ensure_ascii=True).encode()).hexdigest()


def check_results(path: Path, content: Mapping[str, Any]) -> None:
    """Refuse a `results.json` that was edited since `srb score` wrote it."""
    if content.get("sha256") != digest(content):
        raise UserError(
            f"{path}: was changed since it was scored; `srb score` makes it again, or say --allow-changed to take it "
            "as it is"
        )
