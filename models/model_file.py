"""A file that names models: `srb run --model @models.yaml` runs them all.

    models:
      - name: parakeet-tdt-0.6b-v3
        spec: hf:nvidia/parakeet-tdt-0.6b-v3
        env: [transformers>=5.20, torch]     # left out: this environment
        parameters: 600e6                    # the rest is for tables and reports
        hours: 670000
        family: Parakeet
        licence: CC-BY-4.0

`models/known.yaml` is such a file: current models, with what is needed to run each. `@known` names it, and `#name`
after a file one model of it: `--model @known#whisper-large-v3`; `*` in it stands for anything.
"""

from __future__ import annotations

import fnmatch
import math
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from speech_robust_bench.core.errors import UserError, did_you_mean
from speech_robust_bench.core.options import Settings
from speech_robust_bench.core.untrusted_files import read_yaml
from speech_robust_bench.models.interface import Spec, check_spec, parse_spec

KNOWN = Path(__file__).with_name("known.yaml")
TEXTS, NUMBERS = ("family", "licence", "model_type", "note"), ("parameters", "hours", "rtfx")


@dataclass(frozen=True)
class ModelEntry:
    """One model of a file."""

    name: str
    spec: str
    env: tuple[str, ...] = ()
    parameters: float | None = None
    hours: float | None = None
    family: str | None = None
    licence: str | None = None
    model_type: str | None = None  # of transformers
    rtfx: float | None = None  # seconds of audio a second on the machine that it is run on, for estimates
    note: str | None = None

    @property
    def parsed(self) -> Spec:
        return parse_spec(self.spec)


def read_models(text: str) -> list[ModelEntry]:
    """The models that `@file` or `@file#name` names, in the file's order."""
    place, _, wanted = text.removeprefix("@").partition("#")
    path = KNOWN if place == "known" else Path(place)
    entries = parse_models(path)
    if not wanted:
        return entries
    chosen = [entry for entry in entries if fnmatch.fnmatch(entry.name, wanted)]
    if not chosen:
        raise UserError(f"{path}: no model '{wanted}'; {did_you_mean(wanted, [entry.name for entry in entries])}")
    return chosen


def parse_models(path: Path) -> list[ModelEntry]:
    """Every model of a file, each checked."""
    content = read_yaml(path)
    rows = content.get("models") if isinstance(content, dict) else None
    if not isinstance(rows, list) or not rows:
        raise UserError(f"{path}: write 'models:' and a list under it; see docs/how-to/run-many-models.md")
    entries = [_entry(path, number, row) for number, row in enumerate(rows, 1)]
    names = [entry.name for entry in entries]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise UserError(f"{path}: two models are named '{twice}'")
    return entries


def _entry(path: Path, number: int, row: Any) -> ModelEntry:
    where = f"{path}, model {number}"
    if not isinstance(row, dict) or not isinstance(row.get("spec"), str):
        raise UserError(f"{where}: has no 'spec'")
    known = {field.name for field in fields(ModelEntry)}
    if odd := next((key for key in row if key not in known), None):
        raise UserError(f"{where}: no key '{odd}'; {did_you_mean(str(odd), known)}")
    env = row.get("env") or []
    if not isinstance(env, list) or not all(isinstance(item, str) for item in env):
        raise UserError(f"{where}: 'env' is a list of requirements, as in [transformers==4.57, torch]")
    texts: Settings = {key: row[key] for key in TEXTS if row.get(key) is not None}
    for key, value in texts.items():
        if not isinstance(value, str):
            raise UserError(f"{where}: '{key}' is a text")
    numbers: Settings = {key: _number(where, key, row[key]) for key in NUMBERS if row.get(key) is not None}
    check_spec(parse_spec(row["spec"]))
    name = row.get("name") or parse_spec(row["spec"]).folder
    if not isinstance(name, str) or name != Path(name).name or name.startswith("."):
        raise UserError(f"{where}: '{name}' cannot name a folder")
    return ModelEntry(name, row["spec"], tuple(env), **numbers, **texts)


def _number(where: str, key: str, value: Any) -> float:
    try:
        number = float(value)  # YAML reads 600e6 as a text
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if isinstance(value, bool) or not math.isfinite(number):
        raise UserError(f"{where}: '{key}' is a number")
    return number
