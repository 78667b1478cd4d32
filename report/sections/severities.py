"""Scores of every scenario and severity: WERD as a heat map and as curves, NWERD as in the paper's Figs. 9 to 11.

What goes with robustness: size, training data, family and architecture of models (the paper's Figs. 4 and 5).

Every chart comes twice where there are attacks: NWERD under hard conditions, WERD under attack.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from speech_robust_bench.builders.scenarios import SCENARIOS
from speech_robust_bench.core.result_records import MeanRow, ScoreValue
from speech_robust_bench.report.charts import (
    Axes,
    Curve,
    Point,
    Scale,
    Series,
    box_plot,
    fixed,
    line_chart,
    scatter,
    spanning,
)
from speech_robust_bench.report.html import Html, table, tag
from speech_robust_bench.report.report_data import Report, ReportedModel
from speech_robust_bench.report.sections.parts import (
    HALVES,
    Half,
    all_bounds,
    clip_count,
    clips_each,
    legend,
    name,
    scored,
    section,
)

Severities = dict[str, dict[int, dict[int, MeanRow]]]  # scenario -> model -> severity -> its row of scores
# What the numbers of a scenario's parameter are, for the axes; others are bare numbers.
UNITS = {
    "snr_db": "SNR, dB",
    "gain_db": "gain, dB",
    "loss_db": "attenuation, dB",
    "delay_ms": "delay, ms",
    "chunk_ms": "chunk, ms",
    "corner_hz": "corner, Hz",
    "kbps": "kbit/s",
    "percent": "dropped, %",
    "loss_percent": "lost, %",
    "depth_percent": "depth, %",
    "semitones": "semitones",
    "factor": "factor",
    "fraction": "of the sampling rate",
    "level": "clipping level",
    "quality": "quality",
    "decay": "decay",
    "rt60_bin": "RT60, from short to long",
    "srmr_bin": "SRMR, from high to low",
}


def _severities(models: Sequence[ReportedModel], language: str) -> Severities:
    """Scenario -> model -> severity -> its row of scores."""
    scores: Severities = {}
    for model in models:
        for key, row in model.tables(language).severities.items():
            scenario, _, severity = key.partition("_sev")
            if row.werd:
                scores.setdefault(scenario, {}).setdefault(model.index, {})[int(severity or 0)] = row
    place = {scenario: i for i, scenario in enumerate(SCENARIOS)}  # by category; a user's own come last
    return dict(sorted(scores.items(), key=lambda item: (place.get(item[0], len(place)), item[0])))


def heat_map(report: Report, language: str) -> Html | None:
    """WERD of every scenario and severity, a table for each model on one scale of colour."""
    models = report.ranked(language)
    scores = _severities(models, language)
    if not scores:
        return None
    levels = sorted({s for by_model in scores.values() for rows in by_model.values() for s in rows})
    top = max(100.0, *(r.werd.value for by in scores.values() for rows in by.values() for r in rows.values() if r.werd))
    scale = Scale(0, min(top, 150))
    figures = []
    for model in models:
        rows = []
        for scenario, by_model in scores.items():
            mine = by_model.get(model.index, {})
            rows.append([scenario, *(_heat(scale, mine.get(level), "werd") for level in levels)])
        heads = ["scenario", *(tag("th", str(level), title=f"severity {level}") if level else "–" for level in levels)]
        figures.append(tag("figure", tag("figcaption", name(model)), table(heads, rows, class_="heat")))
    key = tag("p", "0", tag("span", class_="ramp"), f"{scale.high:.0f} points or more", class_="key")
    lead = (
        "WERD by severity (1 is the mildest): points of word error rate lost compared with the same clips without the "
        f"perturbation, {clip_count(models, language)}."
    )
    return section("heat", "Scenario by severity", lead, key, tag("div", figures, class_="columns"))


def _heat(scale: Scale, row: MeanRow | None, measure: str) -> Html:
    cell = row.score(measure) if row else None
    if row is None or cell is None:
        return tag("td", "", data_sort="")
    value, share, span = cell.value, scale(cell.value), cell.interval
    title = f"WER {fixed(row.wer.value)}, " if row.wer else ""
    title += f"{measure.upper()} {fixed(value)}"
    title += f" ({fixed(span[0])} to {fixed(span[1])})" if span else ""
    title += f", over {row.resampled}" if row.resampled else ""
    if measure == "werd":
        title += f", NWERD {fixed(row.nwerd.value)}" if row.nwerd else ", no NWERD (the scenario has no difficulty)"
    class_ = "cell hot" if share > 82 else "cell warm" if share > 50 else "cell"
    return tag("td", fixed(value), class_=class_, style=f"--v:{share:.0f}%", title=title, data_sort=value)


def perturbations(report: Report, language: str) -> Html | None:
    """NWERD of every scenario, averaged over severities, the models side by side (the paper's Figs. 9 and 10)."""
    models = report.ranked(language)
    rows = {m.index: m.tables(language).scenarios for m in models}
    known = [s for s in SCENARIOS if any(_nwerd(rows[m.index].get(s)) for m in models)]
    if not known:
        return None
    values = [c.value for m in models for s in known if (c := _nwerd(rows[m.index].get(s)))]
    scale = Scale(0, min(max(60.0, *values), 150))
    lines = [[s, *(_heat(scale, rows[m.index].get(s), "nwerd") for m in models)] for s in known]
    heads = ["scenario", *(tag("th", name(m), scope="col") for m in models)]
    key = tag("p", "0", tag("span", class_="ramp"), f"{scale.high:.0f} or more", class_="key")
    lead = (
        "NWERD of each perturbation in per cent, averaged over its severities: WERD divided by how hard the "
        f"perturbation is. {clips_each(models, language)}."
    )
    return section("perturbations", "Perturbations", lead, key, table(heads, lines, class_="heat"))


def _nwerd(row: MeanRow | None) -> ScoreValue | None:
    return row.nwerd if row else None


def curves(report: Report, language: str) -> Html | None:
    """WERD over severity, one small chart for each scenario that has several; NWERD (Fig. 11) to unfold."""
    models = report.ranked(language)
    scores = {s: by for s, by in _severities(models, language).items() if any(len(rows) > 1 for rows in by.values())}
    if not scores:
        return None
    lead = (
        "WERD in points by severity; bands are intervals. A flat curve near zero means robust; a flat curve high up "
        f"means failure at every severity. {clips_each(models, language)}."
    )
    body = [legend(models), _multiples(report, scores, "werd")]
    if normalised := _multiples(report, scores, "nwerd"):
        body.append(tag("details", tag("summary", "NWERD over severity"), normalised))
    return section("curves", "Severity curves", lead, *body)


def _multiples(report: Report, scores: Severities, measure: str) -> Html | None:
    cells = [
        cell for by in scores.values() for rows in by.values() for row in rows.values() if (cell := row.score(measure))
    ]
    if not cells:
        return None
    y = spanning([min(max(value, -20.0), 150.0) for value in all_bounds(cells)])
    figures = []
    for scenario, by_model in scores.items():
        series = [
            Series(index, [_point(level, cell, measure, report.models[index].name) for level, cell in known])
            for index, rows in by_model.items()
            if (known := [(level, cell) for level, row in sorted(rows.items()) if (cell := row.score(measure))])
        ]
        if series:
            ticks, unit = axis_of(scenario)
            chart = line_chart(series, y, f"{measure.upper()} of {scenario}", ticks=ticks, x_label=unit)
            figures.append(tag("figure", tag("figcaption", scenario), chart))
    return tag("div", figures, class_="multiples") if figures else None


def axis_of(scenario: str) -> tuple[dict[float, str], str]:
    """What stands under the severities of a scenario, and the unit: 30, 20, 10 and 0 dB instead of 1 to 4.

    >>> axis_of("noise")
    ({1: '30', 2: '20', 3: '10', 4: '0'}, 'SNR, dB')
    >>> axis_of("mine")
    ({}, 'severity')
    """
    row = SCENARIOS.get(scenario)
    if row is None or not row.graded or not all(isinstance(value, (int, float)) for value in row.severities):
        return {}, "severity"
    ticks: dict[float, str] = {level: f"{row.value(level):g}" for level in row.levels}
    return ticks, UNITS.get(row.parameter or "", "severity")


def _point(severity: int, score: ScoreValue, measure: str, model: str) -> Point:
    said = f"{model}, severity {severity}: {measure.upper()} {fixed(score.value)}"
    return Point(severity, score.value, said, score.interval)


Scored = Sequence[tuple[ReportedModel, ScoreValue]]


def correlates(report: Report, language: str) -> Html | None:
    """Parameters, hours of training, families and architectures against robustness, of the ranked models."""
    models = report.judged(language)
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
        "The dashed line is a Theil-Sen regression on the logarithm, drawn for three or more models. Lines join models "
        "of one family. A box spans the middle half of the models of an architecture; its line is their median."
    )
    return section("correlates", "Correlates of robustness", lead, tag("div", figures, class_="columns"))


def _correlate(those: Scored, half: Half, of: Callable[[ReportedModel], float | None], label: str) -> Html | None:
    series = [
        Series(m.index, [Point(x, score.value, f"{m.name}: {x:,.0f} {label}", score.interval)], m.name)
        for m, score in those
        if (x := of(m))
    ]
    if len(series) < 2:
        return None
    line = theil_sen_log([(p.x, p.y) for line in series for p in line.points])
    chart = scatter(series, Axes(label, half.axis, log_x=True), f"{label} against {half.measure}", [Curve(line)])
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
    families: dict[str, list[tuple[float, ReportedModel, ScoreValue]]] = {}
    for model, score in those:
        if model.about.family and model.about.parameters:
            families.setdefault(model.about.family, []).append((model.about.parameters, model, score))
    several = {family: sorted(members, key=lambda m: m[0]) for family, members in families.items() if len(members) > 1}
    if not several:
        return None
    series, curves = [], []
    for place, (family, members) in enumerate(several.items()):
        points = [
            Point(size, score.value, f"{model.name} ({family}): {size:,.0f} parameters", score.interval)
            for size, model, score in members
        ]
        series += [Series(place, points[:-1]), Series(place, points[-1:], family)]
        curves.append(Curve([(p.x, p.y) for p in points], place))
    axes = Axes("parameters", half.axis, log_x=True)
    chart = scatter(series, axes, f"families: parameters against {half.measure}", curves)
    return tag("figure", tag("figcaption", f"families, {half.name}"), chart)


def _architectures(those: Scored, half: Half) -> Html | None:
    groups: dict[str, list[Series]] = {}
    for model, score in those:
        if model.about.architecture:
            point = Point(0, score.value, f"{model.name}: {half.measure} {score.value:.1f}")
            groups.setdefault(model.about.architecture, []).append(Series(model.index, [point]))
    if not groups:
        return None
    chart = box_plot(dict(sorted(groups.items())), half.axis, f"{half.measure} by architecture")
    return tag("figure", tag("figcaption", f"by architecture, {half.name}"), chart)
