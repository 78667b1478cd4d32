"""Scenarios of the user's own: any `audiomentations` transform, from a few lines of YAML.

    scenarios:
      - name: bitcrush
        transform: BitCrush
        parameters: {min_bit_depth: $value, max_bit_depth: $value}
        parameter: bits
        severities: [10, 8, 6, 4]

`$value` is replaced by the severity's value. A severity may also be a mapping, which is then laid over `parameters`.
A chain of scenarios, of the table or from earlier in the file, needs no transform:

      - name: kitchen
        chain: [rir_sev1 + noise_snr15, rir_sev3 + noise_snr5 + bitcrush_sev2]

`write_scenarios` makes such a file of transforms in Python.
"""

from __future__ import annotations

import os
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from speech_robust_bench.builders.scenario import Scenario
from speech_robust_bench.builders.scenarios import SCENARIOS, chain
from speech_robust_bench.core.audio import Samples
from speech_robust_bench.core.errors import UserError, did_you_mean, install_hint
from speech_robust_bench.core.files import write_atomically
from speech_robust_bench.core.options import Settings
from speech_robust_bench.core.untrusted_files import read_yaml

PLACEHOLDER = "$value"
_KEYS = {"name", "transform", "parameters", "parameter", "severities", "chain", "help", "version"}


@dataclass(frozen=True)
class Audiomentation:
    """An `audiomentations` transform as a pure function: its global random state is seeded around each call."""

    transform: str
    parameters: tuple[tuple[str, Any], ...]

    def __call__(self, samples: Samples, rate: int, value: Any, rng: np.random.Generator) -> Samples:
        transform = self.make(value)
        seed = int(rng.integers(2**32))
        states = random.getstate(), np.random.get_state()  # noqa: NPY002
        random.seed(seed)
        np.random.seed(seed)  # noqa: NPY002
        try:
            return np.ascontiguousarray(transform(samples=samples, sample_rate=rate), dtype=np.float32)
        finally:
            random.setstate(states[0])
            np.random.set_state(states[1])  # noqa: NPY002

    def make(self, value: Any) -> Any:
        """The transform at one severity; its constructor checks the parameters."""
        import audiomentations

        laid_over = value if isinstance(value, dict) else {}
        chosen = {key: value if given == PLACEHOLDER else given for key, given in self.parameters}
        return getattr(audiomentations, self.transform)(**{**chosen, **laid_over, "p": 1.0})


def load_table(path: str | os.PathLike | None) -> dict[str, Scenario]:
    """The scenario table, with the scenarios of a YAML file added where one is given."""
    if path is None:
        return SCENARIOS
    table = dict(SCENARIOS)
    for number, row in enumerate(_rows(Path(path)), start=1):
        scenario = _scenario(row, table, where=f"{path}, scenario {number}")
        if scenario.name in table:
            raise UserError(f"{path}, scenario {number}: the name '{scenario.name}' is taken; choose another")
        table[scenario.name] = scenario
    return table


def _rows(path: Path) -> list[Any]:
    content = read_yaml(path)
    rows = content.get("scenarios") if isinstance(content, dict) else None
    if not isinstance(rows, list):
        raise UserError(f"{path}: needs a list under `scenarios:`")
    return rows


def _scenario(row: Any, table: Mapping[str, Scenario], where: str) -> Scenario:
    if not isinstance(row, dict) or not (
        {"name", "transform", "severities"} <= row.keys() or {"name", "chain"} <= row.keys()
    ):
        raise UserError(f"{where}: needs `name`, `transform` and `severities`, or `name` and `chain`")
    if unknown := row.keys() - _KEYS:
        raise UserError(f"{where}: unknown key '{min(unknown)}'; the keys are {', '.join(sorted(_KEYS))}")
    if not re.fullmatch(r"[a-z0-9_]+", str(row["name"])) or re.search(r"_sev\d$", str(row["name"])):
        raise UserError(f"{where}: name '{row['name']}' may hold only a-z, 0-9 and _, and not end in _sevN")
    version = row.get("version", 1)
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        raise UserError(f"{where}: `version` is a whole number from 1 on")
    levels = row.get("chain", row.get("severities"))
    if not isinstance(levels, list) or not 0 < len(levels) <= 9:
        raise UserError(f"{where}: `{'chain' if 'chain' in row else 'severities'}` is a list of one to nine values")
    scenario = _chain(row, table, where) if "chain" in row else _transformed(row, where)
    return replace(scenario, category="custom", version=version)


def _chain(row: Mapping[str, Any], table: Mapping[str, Scenario], where: str) -> Scenario:
    if "transform" in row or "severities" in row:
        raise UserError(f"{where}: a chain has no `transform` and no `severities`; its steps are under `chain`")
    if not all(isinstance(steps, str) for steps in row["chain"]):
        raise UserError(f"{where}: the steps of a chain are text, as in 'rir_sev1 + noise_snr15'")
    try:
        return chain(row["name"], row.get("help", "a chain"), "own", row["chain"], table)
    except UserError as error:
        raise UserError(f"{where}: {error}") from None


def _transformed(row: Mapping[str, Any], where: str) -> Scenario:
    function = Audiomentation(_transform(str(row["transform"]), where), tuple((row.get("parameters") or {}).items()))
    for value in row["severities"]:
        try:
            function.make(value)
        except Exception as error:
            raise UserError(f"{where}: {function.transform} refuses severity {value}: {error}") from None
    return Scenario(
        name=row["name"],
        category="custom",
        help=row.get("help", function.transform),
        source="audiomentations",
        function=function,
        parameter=row.get("parameter", "value"),
        severities=tuple(row["severities"]),
    )


def _transform(name: str, where: str) -> str:
    if name not in _transforms():
        raise UserError(f"{where}: audiomentations has no transform '{name}'; {did_you_mean(name, _transforms())}")
    return name


@lru_cache(maxsize=1)
def _transforms() -> tuple[str, ...]:
    try:
        import audiomentations
        from audiomentations.core.transforms_interface import BaseTransform
    except ImportError:
        raise UserError(f"own scenarios need audiomentations: {install_hint('augment')}") from None
    classes = vars(audiomentations).items()
    return tuple(sorted(name for name, kind in classes if isinstance(kind, type) and issubclass(kind, BaseTransform)))


# --- transforms of Python --------------------------------------------------------------------------------------------


def transform_scenario(transform: Any) -> Scenario:
    """One `audiomentations` transform as a scenario of one severity."""
    row = {"name": "transform", "transform": type(transform).__name__, "severities": [_settings(transform)]}
    return replace(_transformed(row, type(transform).__name__), name=type(transform).__name__.lower())


def write_scenarios(path: str | os.PathLike, scenarios: Mapping[str, Sequence[Any]]) -> Path:
    """Write a scenario file from `audiomentations` transforms: name -> one transform for each severity, mildest first.

    The file goes where `scenario_file` is asked for: srb.load, srb.build, srb.evaluate, `srb run --scenario-file`.
    """
    rows: list[Settings] = []
    for name, transforms in scenarios.items():
        kinds = {type(transform).__name__ for transform in transforms}
        if len(kinds) != 1:
            raise UserError(
                f"{name}: needs transforms of one kind, one for each severity; got {', '.join(kinds) or 'none'}"
            )
        rows.append({"name": name, "transform": kinds.pop(), "severities": [_settings(one) for one in transforms]})
    table = dict(SCENARIOS)
    for row in rows:
        table[row["name"]] = _scenario(row, table, where=str(row["name"]))
    write_atomically(Path(path), yaml.safe_dump({"scenarios": rows}, sort_keys=False, allow_unicode=True))
    return Path(path)


def _settings(transform: Any) -> Settings:
    """What a transform was made with, for another one like it; its probability is left out, a scenario is certain."""
    kind = type(transform).__name__
    _transform(kind, kind)
    settings = {}
    for name in signature(type(transform)).parameters:
        value = getattr(transform, name, _UNKNOWN)
        value = list(value) if isinstance(value, tuple) else str(value) if isinstance(value, Path) else value
        if value is _UNKNOWN or not isinstance(value, str | int | float | list | None):
            raise UserError(f"{kind}: its {name} cannot be written to a scenario file; write the file by hand")
        settings[name] = value
    return {name: value for name, value in settings.items() if name != "p"}


_UNKNOWN = object()
