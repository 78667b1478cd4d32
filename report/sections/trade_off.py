"""Accuracy on clean speech against robustness and speed, and the models that none beats in both (Figs. 5c and 5d)."""

from __future__ import annotations

from collections.abc import Sequence

from speech_robust_bench.report.charts import Axes, Curve, Point, Series, fixed, scatter
from speech_robust_bench.report.html import Html, tag
from speech_robust_bench.report.report_data import Report, ReportedModel
from speech_robust_bench.report.sections.parts import HALVES, Half, scored, section
from speech_robust_bench.scoring.table1 import clean_wer


def trade_off(report: Report, language: str) -> Html | None:
    """Utility against robustness in both halves, and speed against accuracy."""
    models = report.ranked(language)
    charts = [*(_against_clean(models, language, half) for half in HALVES), _speed(models, language)]
    figures = [chart for chart in charts if chart]
    if not figures:
        return None
    lead = "Down and to the left is better. The line is the Pareto front: no model beats those on it in both."
    return section("trade-off", "Utility against robustness", lead, tag("div", figures, class_="columns"))


def _against_clean(models: Sequence[ReportedModel], language: str, half: Half) -> Html | None:
    series = []
    for model, score in scored(models, language, half):
        if clean := clean_wer(model.rows(language) or {}):
            title = f"{model.name}: clean WER {fixed(clean['value'])}, {half.axis} {fixed(score['value'])}"
            point = Point(clean["value"], score["value"], title, score["interval"])
            series.append(Series(model.index, [point], model.name))
    return _with_front(series, Axes("WER on clean speech", half.axis), half.name)


def _speed(models: Sequence[ReportedModel], language: str) -> Html | None:
    """The real-time factor against WER on clean speech: what a second of speech costs."""
    series = []
    for model in models:
        clean, rtf = clean_wer(model.rows(language) or {}), model.results["speed"]["rtf"]
        if clean and rtf:
            title = f"{model.name}: {rtf:.3g} s for a second of speech, clean WER {fixed(clean['value'])}"
            series.append(Series(model.index, [Point(rtf, clean["value"], title, clean["interval"])], model.name))
    return _with_front(series, Axes("real-time factor", "WER on clean speech", log_x=True), "speed")


def _with_front(series: Sequence[Series], axes: Axes, caption: str) -> Html | None:
    if len(series) < 2:
        return None
    front = pareto_front([(point.x, point.y) for line in series for point in line.points])
    chart = scatter(series, axes, f"{axes.x} against {axes.y}", [Curve(front, steps=True)])
    return tag("figure", tag("figcaption", caption), chart)


def pareto_front(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """The points that no other is at least as good as in both and better in one; from left to right.

    >>> pareto_front([(1, 5), (2, 3), (3, 4), (4, 1)])
    [(1, 5), (2, 3), (4, 1)]
    """
    front: list[tuple[float, float]] = []
    for point in sorted(set(points)):
        if not front or point[1] < front[-1][1]:
            front.append(point)
    return front
