"""The first part of the page: the ranking, categories, languages, and accuracy against robustness."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from speech_robust_bench.core.categories import ADVERSARIAL, AVERAGED, label
from speech_robust_bench.core.result_records import ScoreValue
from speech_robust_bench.report.charts import Axes, Curve, Point, Series, fixed, legend_mark, scatter, spanning, track
from speech_robust_bench.report.html import Html, table, tag
from speech_robust_bench.report.report_data import Report, ReportedModel
from speech_robust_bench.report.sections.parts import (
    HALVES,
    LESS,
    Half,
    all_bounds,
    axis,
    clips_each,
    legend,
    name,
    number,
    score,
    scored,
    section,
)
from speech_robust_bench.scoring.bank_provenance import stand_in_notes
from speech_robust_bench.scoring.ranking import SENTENCE, Standing
from speech_robust_bench.scoring.table1 import clean_wer


def ranking(report: Report, language: str) -> Html | None:
    """The models by average NWER, with intervals, beside what else decides about a recogniser."""
    standings = report.standings(language)
    models = [model for model, _ in standings]
    scores = [_score(model, standing, language) for model, standing in standings]
    scale = spanning(all_bounds(scores))
    level = 100 * report.models[0].results.options.level
    rows = []
    for last, ((model, standing), nwer) in enumerate(zip(standings, scores, strict=True), 1):
        mark = track(scale, nwer.value, nwer.interval, model.index, dot=True) if nwer else ""
        numbers = model.tables(language)
        invented = numbers.hallucination.reject
        rows.append(
            [
                (str(standing.place or "–"), standing.place or last),
                name(model),
                score(nwer),
                mark,
                tag("span", str(numbers.overall.resampled or "–"), class_="over"),
                score(model.average(language)),
                score(clean_wer(numbers)),
                number(_percent(numbers.hallucination.insertions_per_word)),
                number(invented.words_per_minute if invented else None),
                number(_rtfx(model), 1),
                number(_failed(model, language), 0),
            ]
        )
    heads = [
        "",
        "model",
        tag("th", "NWER, %", scope="col", aria_sort="ascending"),
        axis(scale),
        "intervals over",
        "NWERD, %",
        "clean WER, %",
        "inserted words, %",
        "words/min in silence and noise",
        "RTFx",
        "failed clips",
    ]
    return section(
        "ranking",
        "Ranking",
        f"{SENTENCE} NWERD, the paper's metric, does not decide the rank: it subtracts the errors on clean speech, so "
        f"making more of them would improve it. Lines and small figures are {level:.0f} % intervals. RTFx: seconds of "
        f"speech recognised per second of computing. {clips_each(models, language)}.",
        tag("p", DEMO, class_="caveat") if _is_demo(models, language) else None,
        table(*_without_empty_columns(heads, rows), class_="ranking"),
        _not_averaged(standings, language),
    )


DEMO = "This is a demonstration, not a ranking: few clips, most of them synthetic voices."


def _without_empty_columns(heads: Sequence[Any], rows: Sequence[Sequence[Any]]) -> tuple[list[Any], list[list[Any]]]:
    kept = [place for place in range(len(heads)) if any(row[place] != ("–", None) for row in rows)]
    return [heads[place] for place in kept], [[row[place] for place in kept] for row in rows]


def _is_demo(models: Sequence[ReportedModel], language: str) -> bool:
    corpora = {e.corpus for model in models for e in model.results.configs.values() if e.language == language}
    return corpora == {"demo"}


def _rtfx(model: ReportedModel) -> float | None:
    rtf = model.results.speed.rtf
    return 1 / rtf if rtf else None


def _looping(model: ReportedModel, language: str) -> str | None:
    """What share of the inserted words is in loops, and the score without them."""
    loops, nwer = model.loops.get(language), model.average(language, "nwer")
    if not loops or not loops.looped:
        return None
    share = f"{100 * loops.looped / loops.inserted:.0f} % of its {loops.inserted:,} inserted words are in loops"
    without = f"; without them NWER is {fixed(loops.nwer)} instead of {fixed(nwer.value)}" if nwer else ""
    return f"{model.name}: {share} (phrases repeated over and over){without}"


def _score(model: ReportedModel, standing: Standing, language: str) -> ScoreValue | None:
    """The NWER that ranks; with its interval where that is of the same configs."""
    own = model.average(language, "nwer")
    if standing.nwer is None or (own and math.isclose(own.value, standing.nwer, abs_tol=1e-3)):  # results are rounded
        return own
    return ScoreValue(value=standing.nwer)


def _percent(share: float | None) -> float | None:
    return None if share is None else 100 * share


def _failed(model: ReportedModel, language: str) -> float:
    return float(sum(entry.failed for _, entry in model.results.entries() if entry.language == language))


def _not_averaged(standings: Sequence[tuple[ReportedModel, Standing]], language: str) -> Html | None:
    """Which of the paper's categories nobody ran, who has fewer configs than the others, and who is not ranked."""
    models = [model for model, _ in standings]
    missing = set(AVERAGED)
    for model in models:
        missing -= set(model.tables(language).overall.members)
    notes = []
    if missing:
        notes.append("Not in the average, because not scored: " + ", ".join(c for c in AVERAGED if c in missing))
    most = {c for model in models for c, e in model.results.configs.items() if e.language == language}
    for model in models:
        lost = sorted(c for c in most - set(model.results.configs) if most_category(models, c) not in ADVERSARIAL)
        if lost:
            notes.append(f"{model.name} lacks {', '.join(lost[:4])}{', ...' if len(lost) > 4 else ''}")
    notes += [line for model in models if (line := _looping(model, language))]
    notes += [f"{model.name} is not ranked: {standing.why}" for model, standing in standings if standing.why]
    notes += stand_in_notes([c for model in models for c in model.results.configs.values()], language)
    return tag("ul", [tag("li", note) for note in notes], class_="notes") if notes else None


def most_category(models: Sequence[ReportedModel], config: str) -> str:
    """The category that some model's results give a config."""
    return next(m.results.configs[config].category for m in models if config in m.results.configs)


def categories(report: Report, language: str) -> Html | None:
    """Bars per category, NWERD for the paper's, WERD for those that have no difficulty."""
    models = report.ranked(language)
    present = dict.fromkeys(c for m in models for c in m.tables(language).categories)
    paper = [c for c in AVERAGED if c in present]
    others = [c for c in present if c not in AVERAGED]
    parts = [_bars(models, language, paper, "nwerd", "NWERD, %")] if paper else []
    parts += (
        [_bars(models, language, others, "werd", "WERD, points: attacks and scenarios without a difficulty")]
        if others
        else []
    )
    if not parts:
        return None
    clips = clips_each(models, language)
    lead = f"The loss in each category of scenarios. {LESS} Thin lines are intervals. {clips}."
    return section("categories", "Categories", lead, legend(models), tag("div", parts, class_="columns"))


def _bars(models: Sequence[ReportedModel], language: str, names: Sequence[str], measure: str, title: str) -> Html:
    rows = {m.index: m.tables(language).categories for m in models}
    cells = {(i, c): own[c].score(measure) if c in own else None for i, own in rows.items() for c in names}
    scale = spanning(all_bounds(list(cells.values())))
    groups = []
    for category in names:
        bars = []
        for model in models:
            cell = cells[model.index, category]
            bar = track(scale, None, None, 0)
            if cell:
                over = str(rows[model.index][category].resampled or "")
                bar = track(scale, cell.value, cell.interval, model.index, over=over)
            bars.append(tag("div", bar, tag("span", fixed(cell.value if cell else None)), class_="row"))
        what = tag("div", category, title=label(category), class_="what")
        groups.append(tag("div", what, tag("div", bars), class_="group"))
    return tag("figure", tag("figcaption", title), groups, class_="bars")


def languages(report: Report) -> Html | None:
    """The same models in several languages."""
    if len(report.languages) < 2:
        return None
    rows = []
    for model in report.models:
        for language in report.languages:
            if numbers := model.rows(language):
                rows.append([name(model), language, score(clean_wer(numbers)), score(model.average(language))])
    lead = "A model that is good in one language may be bad in another: WER on clean speech and NWERD side by side."
    heads = ["model", "language", "clean WER, %", "NWERD, %"]
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
    rows = {n: rows.categories for n in names if (rows := model.rows(n))}
    measures = {**dict.fromkeys(AVERAGED, "nwerd"), **dict.fromkeys(ADVERSARIAL, "werd")}
    cells = {
        category: {n: cell for n, own in rows.items() if category in own and (cell := own[category].score(measure))}
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
                track(scale, cell.value, cell.interval, names.index(n)),
                tag("span", fixed(cell.value)),
                class_="row",
            )
            for n, cell in by_language.items()
        ]
        what = tag("div", category, title=label(category), class_="what")
        groups.append(tag("div", what, tag("div", bars), class_="group"))
    caption = tag("figcaption", name(model), " NWERD; WERD under attack")
    return tag("figure", caption, groups, class_="bars")


def _gap(model: ReportedModel, names: Sequence[str]) -> str | None:
    cells = {n: a.value for n in names if (a := model.average(n))}
    if len(cells) < 2:
        return None
    worst, best = max(cells, key=cells.__getitem__), min(cells, key=cells.__getitem__)
    return f"{model.name}: {fixed(cells[worst] - cells[best])} points of NWERD between {worst} and {best}"


def trade_off(report: Report, language: str) -> Html | None:
    """Utility and speed against robustness, of the models that are ranked."""
    models = report.judged(language)
    charts = [*(_against_clean(models, language, half) for half in HALVES), _speed(models, language)]
    figures = [chart for chart in charts if chart]
    if not figures:
        return None
    lead = (
        "Lower is more robust. Further left is more accurate on clean speech; further right is faster. The dashed "
        "line is the Pareto front: no model is better than those on it in both respects. "
        f"{clips_each(models, language)}."
    )
    return section("trade-off", "Utility and speed against robustness", lead, tag("div", figures, class_="columns"))


def _against_clean(models: Sequence[ReportedModel], language: str, half: Half) -> Html | None:
    series = []
    for model, cell in scored(models, language, half):
        if clean := clean_wer(model.tables(language)):
            title = f"{model.name}: clean WER {fixed(clean.value)}, {half.measure} {fixed(cell.value)}"
            point = Point(clean.value, cell.value, title, cell.interval)
            series.append(Series(model.index, [point], model.name))
    return _with_front(series, Axes("WER on clean speech, %", half.axis), half.name)


def _speed(models: Sequence[ReportedModel], language: str) -> Html | None:
    """RTFx against the score that ranks."""
    series = []
    for model in models:
        nwer, rtfx = model.average(language, "nwer"), _rtfx(model)
        if nwer and rtfx:
            title = f"{model.name}: RTFx {rtfx:.3g}, NWER {fixed(nwer.value)} %"
            series.append(Series(model.index, [Point(rtfx, nwer.value, title, nwer.interval)], model.name))
    axes = Axes("RTFx, seconds of speech per second", "NWER, %", log_x=True)
    return _with_front(series, axes, "speed", more_is_better=True)


def _with_front(series: Sequence[Series], axes: Axes, caption: str, more_is_better: bool = False) -> Html | None:
    if len(series) < 2:
        return None
    sign = -1 if more_is_better else 1
    front = pareto_front([(sign * point.x, point.y) for line in series for point in line.points])
    curve = Curve([(sign * x, y) for x, y in front], steps=not more_is_better)
    chart = scatter(series, axes, f"{axes.x} against {axes.y}", [curve])
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
