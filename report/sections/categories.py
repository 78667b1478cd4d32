"""Bars for each category: NWERD for the paper's, WERD for those that have no difficulty."""

from __future__ import annotations

from collections.abc import Sequence

from speech_robust_bench.core.categories import AVERAGED, column_title, meaning
from speech_robust_bench.report.charts import fixed, spanning, track
from speech_robust_bench.report.html import Html, tag
from speech_robust_bench.report.report_data import Report, ReportedModel
from speech_robust_bench.report.sections.parts import LESS, all_bounds, legend, section


def categories(report: Report, language: str) -> Html | None:
    """Bars per category, NWERD for the paper's, WERD for those that have no difficulty."""
    models = report.ranked(language)
    present = dict.fromkeys(c for m in models for c in (m.rows(language) or {})["categories"])
    paper = [c for c in AVERAGED if c in present]
    others = [c for c in present if c not in AVERAGED]
    parts = [_bars(models, language, paper, "nwerd", "NWERD")] if paper else []
    parts += (
        [_bars(models, language, others, "werd", "WERD, points: attacks, and what has no known difficulty")]
        if others
        else []
    )
    if not parts:
        return None
    lead = f"What each kind of condition costs. {LESS} Thin lines are intervals."
    return section("categories", "Categories", lead, legend(models), tag("div", parts, class_="columns"))


def _bars(models: Sequence[ReportedModel], language: str, names: Sequence[str], measure: str, title: str) -> Html:
    cells = {
        (m.index, c): (m.rows(language) or {})["categories"].get(c, {}).get(measure) for m in models for c in names
    }
    scale = spanning(all_bounds(list(cells.values())))
    groups = []
    for category in names:
        bars = []
        for model in models:
            cell = cells[model.index, category]
            bar = track(scale, cell["value"], cell["interval"], model.index) if cell else track(scale, None, None, 0)
            bars.append(tag("div", bar, tag("span", fixed(cell["value"] if cell else None)), class_="row"))
        label = tag("div", column_title(category), title=meaning(category), class_="what")
        groups.append(tag("div", label, tag("div", bars), class_="group"))
    return tag("figure", tag("figcaption", title), groups, class_="bars")
