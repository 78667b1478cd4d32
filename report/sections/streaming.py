"""Recognisers used live: accuracy against latency under every condition, and one clip as its words came."""

from __future__ import annotations

from speech_robust_bench.report.html import Html, table, tag
from speech_robust_bench.report.latency_charts import COLUMNS, LEAD, condition_label, latency_charts
from speech_robust_bench.report.report_data import Report
from speech_robust_bench.report.sections.parts import legend, name, number, section
from speech_robust_bench.report.sections.timeline import timelines
from speech_robust_bench.scoring.stream_conditions import Condition, conditions


def streaming(report: Report, language: str) -> Html | None:
    """The section, where some model was used live."""
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
        table(["model", "condition", "WER %", *(column[0] for column in COLUMNS)], rows),
        timelines(report, language),
    )


def cells(condition: Condition) -> list[tuple[str, float | None]]:
    """The figures of a condition as cells that sort."""
    values = [(condition.figures[figure], factor, digits) for _, figure, factor, digits in COLUMNS]
    return [number(None if value is None else factor * value, digits) for value, factor, digits in values]
