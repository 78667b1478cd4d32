"""What several sections share: their frame, a model's mark and name, scores as cells of a table.

Versions and hashes of everything that the page was made from.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from speech_robust_bench.core.extensions import load_object
from speech_robust_bench.core.result_records import Ratio, ScoredConfig, ScoreValue
from speech_robust_bench.report.charts import Scale, fixed, legend_mark, tick_text
from speech_robust_bench.report.html import Html, table, tag
from speech_robust_bench.report.report_data import Report, ReportedModel
from speech_robust_bench.scoring.measures import Measure, PageTable, measures

Builder = Callable[[Report, str], Html | None]  # a section of a language; None where there is nothing to show

LESS = "Less is better."


def section(anchor: str, title: str, lead: str, *body: Any) -> Html:
    """A section with a sentence that says how to read it."""
    return tag("section", tag("h2", title), tag("p", lead, class_="lead"), *body, id=anchor)


def name(model: ReportedModel) -> Html:
    """A model's mark and name."""
    return tag("span", legend_mark(model.index), tag("span", model.name), class_="model")


def legend(models: Sequence[ReportedModel]) -> Html:
    """Which mark is which model."""
    return tag("p", [name(model) for model in models], class_="legend")


def score(cell: ScoreValue | Ratio | None, digits: int = 1) -> tuple[Html, float | None]:
    """A score and its interval, as a cell that sorts by its value."""
    if cell is None or cell.value is None:
        return tag("span", "–"), None
    span = cell.interval
    small = tag("small", f" {fixed(span[0], digits)} to {fixed(span[1], digits)}") if span else None
    return tag("span", fixed(cell.value, digits), small), cell.value


def number(value: float | None, digits: int = 1, unit: str = "") -> tuple[str, float | None]:
    """A number as a cell that sorts."""
    return (fixed(value, digits) + unit if value is not None else "–"), value


def counted(count: int, noun: str) -> str:
    """A number of things.

    >>> counted(1, "clip"), counted(1200, "clip")
    ('1 clip', '1,200 clips')
    """
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def all_bounds(cells: Sequence[ScoreValue | Ratio | None]) -> list[float]:
    return [v for cell in cells if cell and cell.value is not None for v in (cell.value, *(cell.interval or ()))]


def clip_count(models: Sequence[ReportedModel], language: str) -> str:
    """How many clips a language's configs have: the same number for all of them, or from the fewest to the most."""
    configs = [entry for model in models for entry in model.results.configs.values()]
    counts = sorted({entry.utterances for entry in configs if entry.language == language})
    if not counts:
        return "no clips"
    return f"{counts[0]} clips" if len(counts) == 1 else f"{counts[0]} to {counts[-1]} clips a config"


def axis(scale: Scale) -> Html:
    """The head of a column of tracks: the numbers at its ends."""
    ends = [tag("span", tick_text(end)) for end in (scale.low, scale.high)]
    return tag("th", tag("div", ends, class_="ends"), scope="col")


def clips_each(models: Sequence[ReportedModel], language: str) -> str:
    """How many clips each config has, as a sentence without its full stop."""
    return f"Each config has {clip_count(models, language)}"


@dataclass(frozen=True)
class Half:
    """One half of the paper's figures: hard conditions in NWERD, or attacks in WERD."""

    name: str
    axis: str  # the measure and its unit
    score: Callable[[ReportedModel, str], ScoreValue | None]

    @property
    def measure(self) -> str:
        """The measure without its unit."""
        return self.axis.partition(",")[0]


def _under_attack(model: ReportedModel, language: str) -> ScoreValue | None:
    rows = model.rows(language)
    return rows.adversarial.werd if rows else None


HALVES = (
    Half("hard conditions", "NWERD, %", lambda model, language: model.average(language)),
    Half("attacks", "WERD under attack, points", _under_attack),
)


def scored(models: Sequence[ReportedModel], language: str, half: Half) -> list[tuple[ReportedModel, ScoreValue]]:
    """The models that have a score in a half, with it."""
    return [(model, score) for model in models if (score := half.score(model, language))]


def provenance(report: Report) -> Html:
    """Versions and hashes of everything."""
    rows = []
    for model in report.models:
        results = model.results
        run = results.run
        rows.append(
            [
                name(model),
                run.spec or "",
                run.revision or "",
                ", ".join(f"{k} {v}" for k, v in (run.options or {}).items()),
                number(len(dict(results.entries())), 0),
                ", ".join(f"{k} {v}" for k, v in (run.versions or {}).items()),
            ]
        )
    first = report.models[0].results
    difficulty = first.scoring.difficulty
    lead = (
        f"Scored by speech-robust-bench {first.software['speech-robust-bench']}; normaliser "
        f"{first.scoring.normaliser}; difficulty table {difficulty.name} (sha256 {difficulty.sha256[:12]})"
        f"; {first.options.replicates} bootstrap replicates."
    )
    heads = ["model", "spec", "revision", "options", "configs", "versions"]
    hashes = [[c, e.content_sha256 or "", e.rows] for c, e in _configs(report).items()]
    details = tag(
        "details", tag("summary", "Data"), table(["config", "content sha256", "clips"], hashes, class_="mono")
    )
    return section("provenance", "Provenance", lead, table(heads, rows), details)


def _configs(report: Report) -> dict[str, ScoredConfig]:
    configs: dict[str, ScoredConfig] = {}
    for model in report.models:
        configs |= dict(model.results.entries())
    return dict(sorted(configs.items()))


def measure_sections() -> list[Builder]:
    """The sections of measures; one that is a table has a row for each model and config."""
    return [
        load_object(each.section) if isinstance(each.section, str) else partial(_measure_table, each, each.section)
        for each in measures().values()
        if each.section
    ]


def _measure_table(measure: Measure, form: PageTable, report: Report, language: str) -> Html | None:
    rows = [
        [
            name(model),
            config,
            *(number(*cell) if isinstance(cell, tuple) else score(cell) for cell in form.cells(entry, own)),
        ]
        for model in report.ranked(language)
        for config, entry in model.results.configs.items()
        if entry.language == language and (own := measure.of(entry)) is not None
    ]
    if not rows:
        return None
    return section(measure.name, form.title, form.lead, table(["model", "config", *form.heads], rows))
