"""Measures beside the error rates. Each is one object, which an extension registers in `MEASURES` under its name.

`srb score` writes what `compute` gives for a config to its entry in results.json, as `measures.<name>`; the others say
how tables, pages and the leaderboard show it. What belongs to a page is named as `module:name`, because the report
is imported only when there is one to write.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from msgspec import UNSET

from speech_robust_bench.core.errors import UserError, did_you_mean
from speech_robust_bench.core.extensions import registered_objects
from speech_robust_bench.core.names import parse
from speech_robust_bench.core.records import Settings
from speech_robust_bench.core.result_records import (
    ConfigResults,
    RunResults,
    ScoredConfig,
    ScoreValue,
    VerifiedConfig,
    measured,
)
from speech_robust_bench.scoring.aggregate import ConfigCounts
from speech_robust_bench.scoring.runs import Predictions
from speech_robust_bench.scoring.score_options import ScoreOptions

Entry = ScoredConfig | VerifiedConfig


@dataclass(frozen=True)
class ConfigClips:
    """The clips of one config, as a measure gets them."""

    predictions: Predictions
    options: ScoreOptions
    counts: ConfigCounts | None = None  # of the words; None where the clips have no references

    @property
    def language(self) -> str:
        """The language, by the config's name."""
        return parse(self.predictions.config).language

    def have(self, field: str) -> bool:
        """Whether any line has a value in a field of `Prediction`."""
        return any(getattr(line, field) not in (None, UNSET) for line in self.predictions.lines)


@dataclass(frozen=True)
class Setting:
    """Something that a measure has to be told: a flag of `srb score`, and a key of `ScoreOptions.settings`."""

    help: str
    metavar: str


@dataclass(frozen=True)
class TableForm:
    """A table of one run: `srb table --<flag>`, with a row of texts for each config.

    `rows` gets the results and the run's folder. `absent` is the error where no run has a row.
    """

    flag: str
    help: str
    heads: Sequence[str]
    rows: Callable[[RunResults, Path], Sequence[Sequence[str]]]
    absent: str = ""
    legend: str = ""  # printed below the table
    advanced: bool = False  # only `srb table --help-all` shows the flag


@dataclass(frozen=True)
class PageTable:
    """A section of the report that is one table, with a row for each model and config.

    `cells` gets a config's entry and the measure's record; a cell is a score, or a number and its digits.
    """

    title: str
    lead: str
    heads: Sequence[str]
    cells: Callable[[ConfigResults, Any], Sequence[ScoreValue | tuple[float, int] | None]]


@dataclass(frozen=True)
class Measure:
    """One measure: what it computes of a config, and where it is shown."""

    name: str
    record: Any = None  # the type of what `compute` gives
    compute: Callable[[ConfigClips], Any] | None = None  # None for a config that has no such measure
    needs: str = ""  # a field of `Prediction`: without it in any line of a config, nothing is computed
    settings: Mapping[str, Setting] = field(default_factory=dict)
    versions: Callable[[ScoreOptions], Settings | None] | None = None  # of what decides the values, for results.json
    columns: Callable[[Any], dict[str, Any]] | None = None  # the numbers of a record, for tables of numbers
    headline: str = ""  # the word with which the mean over clean speech stands beside its WER
    table: TableForm | None = None
    section: PageTable | str = ""  # of the report; a function (report, language) -> Html | None
    page_files: Sequence[Path] = ()  # CSS and JavaScript of the section
    verified: bool = False  # the leaderboard keeps it
    board: str = ""  # its page on the leaderboard, a `BoardPage`

    def of(self, entry: Entry) -> Any:
        """Its record in a config's entry; None where the config has none."""
        return measured(entry.measures, self.name, self.record)

    def numbers(self, record: Any) -> dict[str, Any]:
        """The numbers of a record by the names of their columns; a score has its measure's name."""
        if self.columns:
            return self.columns(record)
        return {self.name: record.value} if isinstance(record, ScoreValue) else {}


@cache
def measures() -> dict[str, Measure]:
    """Every registered measure by its name."""
    return registered_objects("MEASURES")


def compute_measures(clips: ConfigClips) -> dict[str, Any] | None:
    """The records of all measures that a config has."""
    check_settings(clips.options)
    wanted = {name: each for name, each in measures().items() if not each.needs or clips.have(each.needs)}
    records = {name: each.compute(clips) for name, each in wanted.items() if each.compute}
    return {name: record for name, record in records.items() if record is not None} or None


def measure_versions(options: ScoreOptions) -> dict[str, Settings] | None:
    """What decides the values of the measures beside the benchmark's version."""
    versions = {name: each.versions(options) for name, each in measures().items() if each.versions}
    return {name: known for name, known in versions.items() if known} or None


def settings() -> dict[str, Setting]:
    """What measures have to be told, by name."""
    return {name: setting for each in measures().values() for name, setting in each.settings.items()}


def check_settings(options: ScoreOptions) -> None:
    """Refuse a setting that no measure has."""
    for name in options.settings or {}:
        if name not in settings():
            raise UserError(f"no measure has the setting '{name}'; {did_you_mean(name, settings())}")
