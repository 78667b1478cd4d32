"""The same models in several languages: clean WER and NWERD side by side, and each category (the paper's Fig. 6)."""

from __future__ import annotations

from collections.abc import Sequence

from speech_robust_bench.core.categories import ADVERSARIAL, AVERAGED, column_title
from speech_robust_bench.report.charts import fixed, legend_mark, spanning, track
from speech_robust_bench.report.html import Html, table, tag
from speech_robust_bench.report.report_data import Report, ReportedModel
from speech_robust_bench.report.sections.parts import all_bounds, name, score, section
from speech_robust_bench.scoring.table1 import clean_wer


def languages(report: Report) -> Html | None:
    """The same models in several languages."""
    if len(report.languages) < 2:
        return None
    rows = []
    for model in report.models:
        for language in report.languages:
            if numbers := model.rows(language):
                rows.append([name(model), language, score(clean_wer(numbers)), score(model.average(language))])
    lead = "A model that is good in one language need not be in another: clean error rate and robustness, side by side."
    heads = ["model", "language", "clean WER", "NWERD"]
    gaps = [line for model in report.models if (line := _gap(model, report.languages))]
    notes = tag("ul", [tag("li", line) for line in gaps], class_="notes") if gaps else None
    figures = [figure for model in report.models if (figure := _by_category(model, report.languages))]
    key = tag("p", [_mark(i, language) for i, language in enumerate(report.languages)], class_="legend")
    bars = [key, tag("div", figures, class_="columns")] if figures else []
    return section("languages", "Languages", lead, table(heads, rows), notes, *bars)


def _mark(index: int, language: str) -> Html:
    return tag("span", legend_mark(index), tag("span", language), class_="model")


def _by_category(model: ReportedModel, names: Sequence[str]) -> Html | None:
    """NWERD of one model in each category, a bar for each language; attacks in WERD."""
    rows = {n: rows["categories"] for n in names if (rows := model.rows(n))}
    measures = {**dict.fromkeys(AVERAGED, "nwerd"), **dict.fromkeys(ADVERSARIAL, "werd")}
    cells = {
        category: {n: cell for n, categories in rows.items() if (cell := categories.get(category, {}).get(measure))}
        for category, measure in measures.items()
    }
    cells = {category: by_language for category, by_language in cells.items() if len(by_language) > 1}
    if not cells:
        return None
    scale = spanning(all_bounds([cell for by_language in cells.values() for cell in by_language.values()]))
    groups = []
    for category, by_language in cells.items():
        bars = [
            tag(
                "div",
                track(scale, cell["value"], cell["interval"], names.index(n)),
                tag("span", fixed(cell["value"])),
                class_="row",
            )
            for n, cell in by_language.items()
        ]
        groups.append(tag("div", tag("div", column_title(category), class_="what"), tag("div", bars), class_="group"))
    caption = tag("figcaption", name(model), " NWERD; WERD under attack")
    return tag("figure", caption, groups, class_="bars")


def _gap(model: ReportedModel, names: Sequence[str]) -> str | None:
    cells = {n: a["value"] for n in names if (a := model.average(n))}
    if len(cells) < 2:
        return None
    worst, best = max(cells, key=cells.__getitem__), min(cells, key=cells.__getitem__)
    return f"{model.name}: {fixed(cells[worst] - cells[best])} points of NWERD between {worst} and {best}"
