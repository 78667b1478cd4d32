"""Groups of speakers: the log WER ratio of women to men by data set and category (the paper's Fig. 7), the WER of every
group, and groups as bars as wide as their share of the population (Aksenova et al., Fig. 1)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from speech_robust_bench.core.categories import label
from speech_robust_bench.core.result_records import Ratio, Slices
from speech_robust_bench.report.charts import Scale, fixed, track, width_bars
from speech_robust_bench.report.html import Html, table, tag
from speech_robust_bench.report.report_data import Report, ReportedModel
from speech_robust_bench.report.sections.parts import all_bounds, name, number, score, section


def speakers(report: Report, language: str) -> Html | None:
    """Groups of speakers: the log WER ratio of women to men, and the WER of every group."""
    ratios, groups = [], []
    for model in report.judged(language):
        for corpus, kinds in model.tables(language).slices.items():
            for kind, slices in kinds.items():
                what = f"{corpus}, {'clean' if kind == 'clean' else 'hard conditions'}"
                if slices.lwerr and slices.lwerr.value is not None:
                    ratios.append((model, what, slices.lwerr, _sizes(slices)))
                groups += _groups(model, what, slices)
    if not groups:
        return None
    parts = [_ratios(ratios)] if ratios else []
    if by_category := _by_category(report, language):
        parts.append(tag("div", by_category, class_="columns"))
    if populations := _populations(report, language):
        parts.append(populations)
    heads = ["model", "clips", "by", "group", "WER, %", "speakers", "utterances"]
    parts.append(tag("details", tag("summary", "WER of every group"), table(heads, groups)))
    lead = (
        "LWERR: log2 of the word error rate of female speakers divided by that of male speakers. +1 means twice the "
        "errors for women, -1 twice the errors for men. If the interval includes 0, the clips cannot tell which group "
        "has more errors. A group of fewer than 5 speakers has no interval. Models without a verdict are not shown."
    )
    return section("speakers", "Speakers", lead, parts)


def _groups(model: ReportedModel, what: str, slices: Slices) -> list[list[Any]]:
    rows = []
    for column, of_column in slices.groups.items():
        for group, cell in of_column.items():
            counts = number(cell.speakers, 0), number(cell.utterances, 0)
            rows.append([name(model), what, column, group, number(cell.wer), *counts])
    return rows


def _sizes(slices: Slices) -> str:
    """How many women and men, and clips of them, a ratio is over."""
    genders = slices.gender or {}
    return "; ".join(
        f"{gender}: {genders[gender].speakers} speakers, {genders[gender].utterances} clips"
        for gender in ("female", "male")
        if gender in genders
    )


def _ratios(ratios: Sequence[tuple[ReportedModel, str, Ratio, str]]) -> Html:
    reach = max([abs(bound) for bound in all_bounds([cell for _, _, cell, _ in ratios])] + [1.0])
    scale = Scale(-reach * 1.05, reach * 1.05)
    rows = [
        [
            tag("div", name(model), " ", tag("small", f"{what}; {over}", class_="below")),
            score(cell, 2),
            track(scale, cell.value, cell.interval, model.index, dot=True),
        ]
        for model, what, cell, over in ratios
    ]
    heads = ["model", "LWERR, log2", "← worse for men · worse for women →"]
    return table(heads, rows, class_="ranking")


def _by_category(report: Report, language: str) -> list[Html]:
    """LWERR of every category and model, a figure for each data set (Fig. 7)."""
    models = report.judged(language)
    rows = [
        (row.corpus, row.category, model, row.over, Ratio(value=row.lwerr, interval=row.interval))
        for model in models
        for row in (model.cards[language].lwerr if language in model.cards else ())
        if row.severity is None and row.lwerr is not None
    ]
    if not rows:
        return []
    reach = max([abs(bound) for bound in all_bounds([cell for *_, cell in rows])] + [1.0])
    scale = Scale(-reach * 1.05, reach * 1.05)
    figures = []
    for corpus in dict.fromkeys(row[0] for row in rows):
        groups = []
        for category in dict.fromkeys(row[1] for row in rows if row[0] == corpus):
            dots = [
                tag(
                    "div",
                    track(scale, cell.value, cell.interval, model.index, dot=True, over=over),
                    tag("span", fixed(cell.value, 2)),
                    class_="row",
                )
                for at, of, model, over, cell in rows
                if (at, of) == (corpus, category)
            ]
            what = tag("div", category, title=label(category), class_="what")
            groups.append(tag("div", what, tag("div", dots), class_="group"))
        figures.append(tag("figure", tag("figcaption", f"LWERR by category, {corpus}"), groups, class_="bars"))
    return figures


def _populations(report: Report, language: str) -> Html | None:
    """The groups of each model under hard conditions, as wide as their share of the population, or of the words."""
    figures = []
    for model in report.ranked(language):
        for corpus, kinds in model.tables(language).slices.items():
            for column, groups in (kinds["hard"].groups if "hard" in kinds else {}).items():
                rates = {group: cell.wer for group, cell in groups.items() if cell.wer is not None}
                if len(rates) < 2:
                    continue
                given = report.population if set(rates) == set(report.population) else None
                shares = given or {group: float(groups[group].words) for group in rates}
                what = "the population" if given else "the words"
                chart = width_bars(rates, shares, "WER, %", f"WER by {column}", model.index, of=what)
                caption = tag("figcaption", name(model), f" {corpus}, by {column}; width: share of {what}")
                figures.append(tag("figure", caption, chart))
    if not figures:
        return None
    summary = tag("summary", "WER and share of each group")
    return tag("details", summary, tag("div", figures, class_="columns"))
