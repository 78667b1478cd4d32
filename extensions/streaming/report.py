"""Streamed recognisers in the report and on the leaderboard: accuracy against latency under every condition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from speech_robust_bench.extensions.streaming.measure import (
    CLEAN,
    FIGURES,
    HARD,
    Condition,
    conditions,
    figure_of,
    streaming_of,
    wer_of,
)
from speech_robust_bench.extensions.streaming.timeline import timelines
from speech_robust_bench.push.leaderboard.board import Entry, Row
from speech_robust_bench.push.leaderboard.pages import BoardPage, column_head, model_link, sort_table, table_cell
from speech_robust_bench.report.charts import Axes, Curve, Point, Series, fixed, legend_mark, scatter
from speech_robust_bench.report.html import Html, join, table, tag
from speech_robust_bench.report.report_data import Report
from speech_robust_bench.report.sections.overview import pareto_front
from speech_robust_bench.report.sections.parts import legend, name, number, section

LEAD = (
    "Further down and to the left is better. The dashed line is the Pareto front of a condition: no model is both more "
    "accurate and faster. The faint line is the front of clean speech, so the distance between the two is the cost of "
    "the condition. Latency is the median time from the end of a word until it and those before it no longer change."
)


def condition_label(which: str) -> str:
    """What a chart calls a condition."""
    return {CLEAN: "Clean", HARD: "All but clean"}.get(which) or which


def latency_charts(streamed: Sequence[tuple[int, str, Mapping[str, Condition]]], ranked: set[str]) -> list[Html]:
    """A chart for each condition: WER against the settling of words, with the Pareto front of the ranked models.

    All have the same axes, so that they can be compared.
    """
    fronts: dict[str, list[tuple[float, float]]] = {}
    series: dict[str, list[Series]] = {}
    for which in dict.fromkeys(which for _, _, by_condition in streamed for which in by_condition):
        points = [
            (index, who, by_condition[which].figures["settle"], by_condition[which].wer)
            for index, who, by_condition in streamed
            if which in by_condition
        ]
        known = [(i, who, x, y) for i, who, x, y in points if x is not None and y is not None]
        if known:
            fronts[which] = pareto_front([(x, y) for _, who, x, y in known if who in ranked])
            series[which] = [
                Series(i, [Point(x, y, f"{who}: {x:.2f} s, WER {fixed(y)}")], who) for i, who, x, y in known
            ]
    everything = [(p.x, p.y) for those in series.values() for line in those for p in line.points]
    return [_chart(which, series[which], fronts, everything) for which in series]


def _chart(
    which: str,
    series: Sequence[Series],
    fronts: Mapping[str, Sequence[tuple[float, float]]],
    everything: Sequence[tuple[float, float]],
) -> Html:
    curves = [Curve(fronts[which], steps=True)]
    if which != CLEAN and fronts.get(CLEAN):
        curves.append(Curve(fronts[CLEAN], steps=True, faint=True))
    axes = Axes("latency of a word, s", "WER", within=everything)
    chart = scatter(series, axes, f"WER against latency: {condition_label(which)}", curves)
    return tag("figure", tag("figcaption", condition_label(which)), chart)


def streaming(report: Report, language: str) -> Html | None:
    """The section; None where no model was streamed."""
    streamed = [
        (model, live) for model in report.ranked(language) if (live := conditions(model.results.configs, language))
    ]
    if not streamed:
        return None
    ranked = {model.name for model, standing in report.standings(language) if not standing.why}
    rows = [
        [name(model), condition_label(which), number(condition.wer), *cells(condition)]
        for model, live in streamed
        for which, condition in live.items()
    ]
    named = [(model.index, model.name, live) for model, live in streamed]
    return section(
        "streaming",
        "Used live",
        LEAD,
        legend([model for model, _ in streamed]),
        tag("div", latency_charts(named, ranked), class_="columns"),
        table(["model", "condition", "WER %", *(figure.head for figure in FIGURES.values())], rows),
        timelines(report, language),
    )


def cells(condition: Condition) -> list[tuple[str, float | None]]:
    """The figures of a condition as cells that sort."""
    return [number(*_scaled(condition, name)) for name in FIGURES]


def _scaled(condition: Condition, name: str) -> tuple[float | None, int]:
    """A figure in the unit of its head, and its digits."""
    value, percent = condition.figures[name], FIGURES[name].percent
    return (value and 100 * value, 1) if percent else (value, 2)


# --- the leaderboard -------------------------------------------------------------------------------------------------


def board_page(models: Sequence[Row], language: str) -> Html | None:
    """The models that were streamed: accuracy, latency and stability in every condition."""
    rows = [row for row in models if any(streaming_of(entry) for entry in row.entry.content.configs.values())]
    if not rows:
        return None
    of_model = {row.entry.name: conditions(row.entry.content.configs, language) for row in rows}
    ranked = {row.entry.name for row in rows if row.place}
    named = [(index, name, conditions) for index, (name, conditions) in enumerate(of_model.items())]
    legend = [tag("span", legend_mark(index), name, class_=f"s{index % 7}") for index, name, _ in named]
    heads = [column_head("Model", number=False), column_head("Condition", number=False), column_head("WER %")]
    heads += [column_head(figure.head) for figure in FIGURES.values()]
    body = [
        tag(
            "tr",
            tag("th", model_link(row.entry), tag("small", row.why, class_="why") if row.why else None, scope="row"),
            tag("td", condition_label(which)),
            table_cell(None if condition.wer is None else [condition.wer]),
            _live_cells(condition),
            class_=None if row.place else "unranked",
        )
        for row in rows
        for which, condition in of_model[row.entry.name].items()
    ]
    return join(
        [
            tag("h2", f"Language: {language}"),
            tag("p", LEAD, class_="lead"),
            tag("div", legend, class_="legend"),
            tag("div", latency_charts(named, ranked), class_="multiples wide"),
            sort_table(heads, body),
        ]
    )


def _live_cells(condition: Condition) -> list[Html]:
    return [
        tag("td", fixed(*_scaled(condition, name)), data_sort="" if value is None else value)
        for name, value in condition.figures.items()
    ]


def of_model(entry: Entry, language: str) -> Html | None:
    """The streaming measures of every config, on a model's page."""
    configs = {
        config: scores
        for config, scores in entry.content.configs.items()
        if scores.language == language and streaming_of(scores)
    }
    if not configs:
        return None
    heads = [
        column_head("Config", number=False),
        column_head("WER %"),
        *(column_head(figure.head) for figure in FIGURES.values()),
    ]
    body = []
    for config, scores in configs.items():
        wer, figures = wer_of(scores), {figure: figure_of(scores, figure) for figure in FIGURES}
        cells = [table_cell(None if wer is None else [wer]), *_live_cells(Condition(1, wer, figures))]
        body.append(tag("tr", tag("th", config, scope="row"), cells))
    return join([tag("h3", "Used live"), sort_table(heads, body)])


BOARD = BoardPage(
    "Used live",
    """
<p class="lead">Recognisers that got every clip chunk by chunk, as it would arrive. Latency and stability are recomputed
from the submitted events; the speed of the machine is as submitted.</p>
""",
    board_page,
    of_model,
    "live",
)
