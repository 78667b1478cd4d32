"""What goes with robustness: size, training data, family and architecture of models (the paper's Figs. 4 and 5).

Every chart comes twice where there are attacks: NWERD under hard conditions, WERD under attack.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from speech_robust_bench.report.charts import Axes, Curve, Point, Series, box_plot, scatter
from speech_robust_bench.report.html import Html, tag
from speech_robust_bench.report.report_data import Report, ReportedModel
from speech_robust_bench.report.sections.parts import HALVES, Half, scored, section
from speech_robust_bench.scoring.results import Json

Scored = Sequence[tuple[ReportedModel, Json]]


def correlates(report: Report, language: str) -> Html | None:
    """Parameters, hours of training, families and architectures against robustness."""
    models = report.ranked(language)
    charts = []
    for half in HALVES:
        those = scored(models, language, half)
        charts += [
            _correlate(those, half, lambda m: m.about.parameters, "parameters"),
            _correlate(those, half, lambda m: m.about.hours, "hours of training speech"),
            _families(those, half),
            _architectures(those, half),
        ]
    figures = [chart for chart in charts if chart]
    if not figures:
        return None
    lead = (
        "The dashed line is a robust regression (Theil and Sen) on the logarithm, drawn from three models on. Models "
        "of one family are joined. A box holds half of the models of an architecture, its line is their median."
    )
    return section("correlates", "What goes with robustness", lead, tag("div", figures, class_="columns"))


def _correlate(those: Scored, half: Half, of: Callable[[ReportedModel], float | None], label: str) -> Html | None:
    series = [
        Series(m.index, [Point(x, score["value"], f"{m.name}: {x:,.0f} {label}", score["interval"])], m.name)
        for m, score in those
        if (x := of(m))
    ]
    if len(series) < 2:
        return None
    line = theil_sen_log([(p.x, p.y) for line in series for p in line.points])
    chart = scatter(series, Axes(label, half.axis, log_x=True), f"{label} against {half.axis}", [Curve(line)])
    return tag("figure", tag("figcaption", f"by {label}, {half.name}"), chart)


def theil_sen_log(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """The ends of the Theil-Sen line of y on log x; none for fewer than three points or a single x."""
    import numpy as np
    from scipy.stats import theilslopes

    x, y = np.array(points, dtype=float).T
    if len(points) < 3 or len(set(x)) < 2:
        return []
    line = theilslopes(y, np.log10(x))
    return [(float(end), float(line.intercept + line.slope * np.log10(end))) for end in (x.min(), x.max())]


def _families(those: Scored, half: Half) -> Html | None:
    """Models of one family over their size, joined by a line (Fig. 4)."""
    families: dict[str, list[tuple[float, ReportedModel, Json]]] = {}
    for model, score in those:
        if model.about.family and model.about.parameters:
            families.setdefault(model.about.family, []).append((model.about.parameters, model, score))
    several = {family: sorted(members, key=lambda m: m[0]) for family, members in families.items() if len(members) > 1}
    if not several:
        return None
    series, curves = [], []
    for place, (family, members) in enumerate(several.items()):
        points = [
            Point(size, score["value"], f"{model.name} ({family}): {size:,.0f} parameters", score["interval"])
            for size, model, score in members
        ]
        series += [Series(place, points[:-1]), Series(place, points[-1:], family)]
        curves.append(Curve([(p.x, p.y) for p in points], place))
    axes = Axes("parameters", half.axis, log_x=True)
    chart = scatter(series, axes, f"families: parameters against {half.axis}", curves)
    return tag("figure", tag("figcaption", f"families, {half.name}"), chart)


def _architectures(those: Scored, half: Half) -> Html | None:
    groups: dict[str, list[Series]] = {}
    for model, score in those:
        if model.about.architecture:
            point = Point(0, score["value"], f"{model.name}: {half.axis} {score['value']:.1f}")
            groups.setdefault(model.about.architecture, []).append(Series(model.index, [point]))
    if not groups:
        return None
    chart = box_plot(dict(sorted(groups.items())), half.axis, f"{half.axis} by architecture")
    return tag("figure", tag("figcaption", f"by architecture, {half.name}"), chart)
