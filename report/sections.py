"""The sections of the page, each a function from a report (and a language) to markup, or to None if it has nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from srb.builders.scenarios import CATEGORIES as MEANINGS
from srb.builders.scenarios import SCENARIOS
from srb.metrics.aggregate import ADVERSARIAL, CATEGORIES
from srb.metrics.results import Json
from srb.metrics.table1 import TITLES, clean_wer
from srb.report.charts import (
    Point,
    Scale,
    Series,
    fixed,
    legend_mark,
    line_chart,
    scatter,
    series_class,
    spanning,
    tick_text,
    track,
)
from srb.report.gather import Model, Report
from srb.report.html import Html, table, tag
from srb.report.words import Clip, Edit

LESS = "Less is better."


def section(anchor: str, title: str, lead: str, *body: Any) -> Html:
    """A section with a sentence that says how to read it."""
    return tag("section", tag("h2", title), tag("p", lead, class_="lead"), *body, id=anchor)


def name(model: Model) -> Html:
    """A model's mark and name."""
    return tag("span", legend_mark(model.index), tag("span", model.name), class_="model")


def legend(models: Sequence[Model]) -> Html:
    """Which mark is which model."""
    return tag("p", [name(model) for model in models], class_="legend")


def score(cell: Json | None, digits: int = 1) -> tuple[Html, float | None]:
    """A score and its interval, as a cell that sorts by its value."""
    if cell is None or cell["value"] is None:
        return tag("span", "–"), None
    span = cell.get("interval")
    small = tag("small", f" {fixed(span[0], digits)} to {fixed(span[1], digits)}") if span else None
    return tag("span", fixed(cell["value"], digits), small), cell["value"]


def number(value: float | None, digits: int = 1, unit: str = "") -> tuple[str, float | None]:
    """A number as a cell that sorts."""
    return (fixed(value, digits) + unit if value is not None else "–"), value


def _all_bounds(cells: Sequence[Json | None]) -> list[float]:
    return [v for cell in cells if cell for v in (cell["value"], *(cell["interval"] or ()))]


def axis(scale: Scale) -> Html:
    """The head of a column of tracks: the numbers at its ends."""
    ends = [tag("span", tick_text(end)) for end in (scale.low, scale.high)]
    return tag("th", tag("div", ends, class_="ends"), scope="col")


# --- ranking ---------------------------------------------------------------------------------------------------------


def ranking(report: Report, language: str) -> Html | None:
    """The models by average NWERD, with intervals, beside what else decides about a recogniser."""
    models = report.ranked(language)
    scale = spanning(_all_bounds([model.average(language) for model in models]))
    level = 100 * report.models[0].results["options"]["level"]
    rows = []
    for place, model in enumerate(models, 1):
        average = model.average(language)
        mark = track(scale, average["value"], average["interval"], model.index, dot=True) if average else ""
        numbers = model.rows(language) or {}
        invented = numbers["hallucination"]["reject"]
        rows.append(
            [
                (str(place), place),
                name(model),
                score(average),
                mark,
                score(clean_wer(numbers)),
                number(_percent(numbers["hallucination"]["insertions_per_word"]), 1, " %"),
                number(invented["words_per_minute"] if invented else None),
                number(model.results["speed"]["rtf"], 3),
                number(_failed(model, language), 0),
            ]
        )
    heads = [
        "",
        "model",
        "NWERD",
        axis(scale),
        "clean WER",
        "inserted words",
        "words / min of no speech",
        "real-time factor",
    ]
    return section(
        "ranking",
        "Ranking",
        "NWERD: points of word error rate lost to hard conditions, each scenario divided by how hard it is, averaged "
        f"over the paper's categories that were run. {LESS} Lines and small figures are {level:.0f} % intervals.",
        table([*heads, "failed clips"], rows, class_="ranking"),
        _not_averaged(models, language),
    )


def _percent(share: float | None) -> float | None:
    return None if share is None else 100 * share


def _failed(model: Model, language: str) -> float:
    entries = [*model.results["configs"].values(), *model.results["reject"].values()]
    return float(sum(entry["failed"] for entry in entries if entry["language"] == language))


def _not_averaged(models: Sequence[Model], language: str) -> Html | None:
    """Which of the paper's categories nobody ran, and who has fewer configs than the others."""
    missing = set(CATEGORIES)
    for model in models:
        missing -= set((model.rows(language) or {})["overall"]["members"])
    notes = []
    if missing:
        notes.append(
            "Not in the average, because not scored: " + ", ".join(TITLES[c] for c in CATEGORIES if c in missing)
        )
    most = {c for model in models for c, e in model.results["configs"].items() if e["language"] == language}
    for model in models:
        lost = sorted(c for c in most - set(model.results["configs"]) if most_category(models, c) not in ADVERSARIAL)
        if lost:
            notes.append(f"{model.name} lacks {', '.join(lost[:4])}{', ...' if len(lost) > 4 else ''}: not comparable")
    return tag("ul", [tag("li", note) for note in notes], class_="notes") if notes else None


def most_category(models: Sequence[Model], config: str) -> str:
    """The category that some model's results give a config."""
    return next(m.results["configs"][config]["category"] for m in models if config in m.results["configs"])


# --- categories, scenarios, severities -------------------------------------------------------------------------------


def categories(report: Report, language: str) -> Html | None:
    """Bars per category, NWERD for the paper's, WERD for those that have no difficulty."""
    models = report.ranked(language)
    present = dict.fromkeys(c for m in models for c in (m.rows(language) or {})["categories"])
    paper = [c for c in CATEGORIES if c in present]
    others = [c for c in present if c not in CATEGORIES]
    parts = [_bars(models, language, paper, "nwerd", "NWERD")] if paper else []
    parts += (
        [_bars(models, language, others, "werd", "WERD, points; no difficulty is known for these")] if others else []
    )
    if not parts:
        return None
    lead = f"What each kind of condition costs. {LESS} Thin lines are intervals."
    return section("categories", "Categories", lead, legend(models), tag("div", parts, class_="columns"))


def _bars(models: Sequence[Model], language: str, names: Sequence[str], measure: str, title: str) -> Html:
    cells = {
        (m.index, c): (m.rows(language) or {})["categories"].get(c, {}).get(measure) for m in models for c in names
    }
    scale = spanning(_all_bounds(list(cells.values())))
    groups = []
    for category in names:
        bars = []
        for model in models:
            cell = cells[model.index, category]
            bar = track(scale, cell["value"], cell["interval"], model.index) if cell else track(scale, None, None, 0)
            bars.append(tag("div", bar, tag("span", fixed(cell["value"] if cell else None)), class_="row"))
        label = tag(
            "div", TITLES.get(category, category.replace("_", " ")), title=MEANINGS.get(category), class_="what"
        )
        groups.append(tag("div", label, tag("div", bars), class_="group"))
    return tag("figure", tag("figcaption", title), groups, class_="bars")


def _severities(models: Sequence[Model], language: str) -> dict[str, dict[int, dict[int, Json]]]:
    """Scenario -> model -> severity -> its row of scores."""
    made: dict[str, dict[int, dict[int, Json]]] = {}
    for model in models:
        for key, row in (model.rows(language) or {})["severities"].items():
            scenario, _, severity = key.partition("_sev")
            if row["werd"]:
                made.setdefault(scenario, {}).setdefault(model.index, {})[int(severity or 0)] = row
    place = {scenario: i for i, scenario in enumerate(SCENARIOS)}  # by category; a user's own come last
    return dict(sorted(made.items(), key=lambda item: (place.get(item[0], len(place)), item[0])))


def heat_map(report: Report, language: str) -> Html | None:
    """WERD of every scenario and severity, a table for each model on one scale of colour."""
    models = report.ranked(language)
    scores = _severities(models, language)
    if not scores:
        return None
    levels = sorted({s for by_model in scores.values() for rows in by_model.values() for s in rows})
    top = max(100.0, *(r["werd"]["value"] for by in scores.values() for rows in by.values() for r in rows.values()))
    scale = Scale(0, min(top, 150))
    figures = []
    for model in models:
        rows = []
        for scenario, by_model in scores.items():
            mine = by_model.get(model.index, {})
            rows.append([scenario, *(_heat(scale, mine.get(level)) for level in levels)])
        heads = ["scenario", *(f"severity {level}" if level else "–" for level in levels)]
        figures.append(tag("figure", tag("figcaption", name(model)), table(heads, rows, class_="heat")))
    key = tag("p", "0", tag("span", class_="ramp"), f"{scale.high:.0f} points or more", class_="key")
    lead = "WERD: points of word error rate lost against the same clips without the perturbation."
    return section("heat", "Scenario by severity", lead, key, tag("div", figures, class_="columns"))


def _heat(scale: Scale, row: Json | None) -> Html:
    if row is None or row["werd"] is None:
        return tag("td", "", data_sort="")
    value, share = row["werd"]["value"], scale(row["werd"]["value"])
    span = row["werd"]["interval"]
    title = f"WER {fixed(row['wer']['value'])}, WERD {fixed(value)}"
    title += f" ({fixed(span[0])} to {fixed(span[1])})" if span else ""
    title += f", NWERD {fixed(row['nwerd']['value'])}" if row["nwerd"] else ", no difficulty known, no NWERD"
    class_ = "cell hot" if share > 82 else "cell warm" if share > 50 else "cell"
    return tag("td", fixed(value), class_=class_, style=f"--v:{share:.0f}%", title=title, data_sort=value)


def curves(report: Report, language: str) -> Html | None:
    """WERD over severity, one small chart for each scenario that has several."""
    models = report.ranked(language)
    scores = {s: by for s, by in _severities(models, language).items() if any(len(rows) > 1 for rows in by.values())}
    if not scores:
        return None
    cells = [row["werd"] for by in scores.values() for rows in by.values() for row in rows.values()]
    bounds = list(_all_bounds(cells))
    y = spanning([min(max(value, -20.0), 150.0) for value in bounds])
    figures = []
    for scenario, by_model in scores.items():
        series = [
            Series(index, [_point(level, row, report.models[index].name) for level, row in sorted(rows.items())])
            for index, rows in by_model.items()
        ]
        chart = line_chart(series, y, f"WERD of {scenario} over severity")
        figures.append(tag("figure", tag("figcaption", scenario), chart))
    lead = "WERD in points over severity, bands are intervals. The flatter, the more robust."
    return section("curves", "Severity curves", lead, legend(models), tag("div", figures, class_="multiples"))


def _point(severity: int, row: Json, model: str) -> Point:
    werd = row["werd"]
    return Point(
        severity, werd["value"], f"{model}, severity {severity}: WERD {fixed(werd['value'])}", werd["interval"]
    )


# --- models against each other ---------------------------------------------------------------------------------------


def trade_off(report: Report, language: str) -> Html | None:
    """Utility against robustness, with the models that no other beats in both."""
    series, points = [], []
    for model in report.ranked(language):
        average, clean = model.average(language), clean_wer(model.rows(language) or {})
        if average and clean:
            title = f"{model.name}: clean WER {fixed(clean['value'])}, NWERD {fixed(average['value'])}"
            point = Point(clean["value"], average["value"], title, average["interval"])
            series.append(Series(model.index, [point], model.name))
            points.append((clean["value"], average["value"]))
    if len(series) < 2:
        return None
    label = "clean WER against average NWERD"
    chart = scatter(series, "WER on clean speech", "NWERD", label, curve=pareto_front(points), steps=True)
    lead = "Down and to the left is better. The line is the Pareto front: no model beats those on it in both."
    return section("trade-off", "Utility against robustness", lead, chart)


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


def correlates(report: Report, language: str) -> Html | None:
    """Parameters, hours of training and architecture against robustness (the paper's Figs. 4 and 5)."""
    models = [model for model in report.ranked(language) if model.average(language)]
    charts = [
        _correlate(models, language, lambda m: m.about.parameters, "parameters"),
        _correlate(models, language, lambda m: m.about.hours, "hours of training speech"),
        _architectures(models, language),
    ]
    charts = [chart for chart in charts if chart]
    if not charts:
        return None
    lead = "The line is a robust regression (Theil and Sen) of NWERD on the logarithm, drawn from three models on."
    return section("correlates", "What goes with robustness", lead, tag("div", charts, class_="columns"))


def _correlate(models: Sequence[Model], language: str, of: Callable[[Model], float | None], label: str) -> Html | None:
    known = [(model, value, model.average(language)) for model in models if (value := of(model))]
    if len(known) < 2:
        return None
    series = [
        Series(m.index, [Point(x, a["value"], f"{m.name}: {x:,.0f} {label}", a["interval"])], m.name)
        for m, x, a in known
        if a
    ]
    points = [(p.x, p.y) for one in series for p in one.points]
    chart = scatter(series, label, "NWERD", f"{label} against NWERD", log_x=True, curve=theil_sen_log(points))
    return tag("figure", tag("figcaption", f"by {label}"), chart)


def theil_sen_log(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """The ends of the Theil-Sen line of y on log x; none for fewer than three points or a single x."""
    import numpy as np
    from scipy.stats import theilslopes

    x, y = np.array(points, dtype=float).T
    if len(points) < 3 or len(set(x)) < 2:
        return []
    fit = theilslopes(y, np.log10(x))
    return [(float(end), float(fit.intercept + fit.slope * np.log10(end))) for end in (x.min(), x.max())]


def _architectures(models: Sequence[Model], language: str) -> Html | None:
    kinds = sorted({model.about.architecture for model in models if model.about.architecture})
    if not kinds:
        return None
    scale = spanning(_all_bounds([model.average(language) for model in models]))
    groups = []
    for kind in kinds:
        rows = [
            tag("div", name(model), track(scale, a["value"], a["interval"], model.index, dot=True), class_="row named")
            for model in models
            if model.about.architecture == kind and (a := model.average(language))
        ]
        groups.append(tag("div", tag("div", kind, class_="what"), tag("div", rows), class_="group"))
    return tag("figure", tag("figcaption", "by architecture, NWERD"), groups, class_="bars")


# --- people and languages --------------------------------------------------------------------------------------------


def disparity(report: Report, language: str) -> Html | None:
    """Groups of speakers: the log WER ratio of women to men, and the WER of every group."""
    ratios, groups = [], []
    for model in report.ranked(language):
        for corpus, kinds in (model.rows(language) or {})["slices"].items():
            for kind, slices in kinds.items():
                what = f"{corpus}, {'clean' if kind == 'clean' else 'hard conditions'}"
                if slices.get("lwerr") and slices["lwerr"]["value"] is not None:
                    ratios.append((model, what, slices["lwerr"]))
                groups += _groups(model, what, slices)
    if not groups:
        return None
    parts = [_ratios(ratios)] if ratios else []
    heads = ["model", "clips", "by", "group", "WER", "speakers", "utterances"]
    parts.append(tag("details", tag("summary", "WER of every group"), table(heads, groups)))
    lead = (
        "LWERR: log2 of the word error rate of female over male speakers. +1 means twice the errors for women, -1 for "
        "men; an interval that spans 0 shows no difference."
    )
    return section("speakers", "Speakers", lead, parts)


def _groups(model: Model, what: str, slices: Json) -> list[list[Any]]:
    rows = []
    for column in ("gender", "accent", "age"):
        for group, cell in slices.get(column, {}).items():
            counts = [number(cell[key], 0) for key in ("speakers", "utterances")]
            rows.append([name(model), what, column, group, number(cell["wer"]), *counts])
    return rows


def _ratios(ratios: Sequence[tuple[Model, str, Json]]) -> Html:
    reach = max([abs(bound) for bound in _all_bounds([cell for *_, cell in ratios])] + [1.0])
    scale = Scale(-reach * 1.05, reach * 1.05)
    rows = [
        [name(model), what, score(cell, 2), track(scale, cell["value"], cell["interval"], model.index, dot=True)]
        for model, what, cell in ratios
    ]
    return table(["model", "clips", "LWERR", "← worse for men · worse for women →"], rows, class_="ranking")


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
    return section("languages", "Languages", lead, table(heads, rows), notes)


def _gap(model: Model, names: Sequence[str]) -> str | None:
    cells = {n: a["value"] for n in names if (a := model.average(n))}
    if len(cells) < 2:
        return None
    worst, best = max(cells, key=cells.__getitem__), min(cells, key=cells.__getitem__)
    return f"{model.name}: {fixed(cells[worst] - cells[best])} points of NWERD between {worst} and {best}"


# --- words and clips -------------------------------------------------------------------------------------------------


def words(report: Report, language: str) -> Html | None:
    """The words that hard conditions cost most, and those that were never said."""
    figures = []
    for model in report.ranked(language):
        study = model.studies.get(language)
        if not study or not study.words:
            continue
        rows = [
            [
                word.word,
                (f"{word.missed} of {word.said}", word.missed / word.said),
                number(100 * word.clean_missed / word.clean_said if word.clean_said else None, 0, " %"),
                ", ".join(text for text, _ in word.heard_as.most_common(3)) or "nothing",
            ]
            for word in study.words
        ]
        inserted = ", ".join(f"{text} ({count})" for text, count in study.inserted) or "none"
        figures.append(
            tag(
                "figure",
                tag("figcaption", name(model)),
                table(["word", "missed", "missed, clean", "heard as"], rows),
                tag("p", "Heard but never said: ", inserted, class_="lead"),
            )
        )
    if not figures:
        return None
    lead = "Words that were missed most often beyond what clean speech explains."
    return section("words", "Worst words", lead, tag("div", figures, class_="columns"))


def clips(report: Report, language: str) -> Html | None:
    """The clips that lost most, one of each scenario, word by word, to listen to where audio is embedded."""
    cards = []
    for model in report.ranked(language):
        study = model.studies.get(language)
        cards += [_card(report, model, clip) for clip in study.clips] if study else []
    if not cards:
        return None
    lead = tag(
        "span",
        "Against what was said: ",
        tag("del", "missed"),
        ", ",
        tag("ins", "heard instead"),
        ". The worst clip of each scenario.",
    )
    body = tag("div", cards, class_="cards")
    return tag("section", tag("h2", "Worst clips"), tag("p", lead, class_="lead"), body, id="clips")


def _card(report: Report, model: Model, clip: Clip) -> Html:
    source = model.results["configs"][clip.config]["source"]
    sides = [("perturbed", clip.config, clip.edits), ("clean", source, clip.clean_edits)]
    parts = [
        tag(
            "div",
            tag("h4", label),
            _player(report, config, clip.id, f"{label}: {clip.id}"),
            tag("p", "no transcript: the recogniser failed") if label == "perturbed" and clip.failed else _diff(edits),
        )
        for label, config, edits in sides
        if config and edits is not None
    ]
    worse = f"{clip.errors} errors in {clip.words} words, clean {clip.clean_errors}"
    head = tag("h3", name(model), tag("span", clip.config))
    return tag("article", head, tag("p", f"{clip.id}: {worse}", class_="lead"), parts, class_=series_class(model.index))


def _player(report: Report, config: str, clip: str, label: str) -> Html | None:
    source = report.audio.get((config, clip))
    return tag("audio", controls="", preload="none", src=source, aria_label=label) if source else None


def _diff(edits: Sequence[Edit]) -> Html:
    pieces: list[Any] = []
    for edit in edits:
        if edit.kind == "equal":
            pieces.append(" ".join(edit.said))
        else:
            pieces += [tag("del", " ".join(edit.said))] if edit.said else []
            pieces += [tag("ins", " ".join(edit.heard))] if edit.heard else []
        pieces.append(" ")
    return tag("p", pieces, class_="diff")


# --- provenance ------------------------------------------------------------------------------------------------------


def provenance(report: Report) -> Html:
    """Versions and hashes of everything."""
    rows = []
    for model in report.models:
        made = model.results
        run = made["run"]
        rows.append(
            [
                name(model),
                run["spec"] or "",
                run["revision"] or "",
                ", ".join(f"{k} {v}" for k, v in (run["options"] or {}).items()),
                (str(len(made["configs"]) + len(made["reject"])), len(made["configs"]) + len(made["reject"])),
                ", ".join(f"{k} {v}" for k, v in (run["versions"] or {}).items()),
            ]
        )
    first = report.models[0].results
    difficulty = first["scoring"]["difficulty"]
    lead = (
        f"Scored by speech-robust-bench {first['software']['speech-robust-bench']}; normaliser "
        f"{first['scoring']['normaliser']}; difficulty table {difficulty['name']} (sha256 {difficulty['sha256'][:12]})"
        f"; {first['options']['replicates']} bootstrap replicates."
    )
    heads = ["model", "spec", "revision", "options", "configs", "versions"]
    hashes = [[c, e["content_sha256"] or "", e["rows"]] for c, e in _configs(report).items()]
    details = tag(
        "details", tag("summary", "Data"), table(["config", "content sha256", "clips"], hashes, class_="mono")
    )
    return section("provenance", "Provenance", lead, table(heads, rows), details)


def _configs(report: Report) -> dict[str, Json]:
    made: dict[str, Json] = {}
    for model in report.models:
        made |= model.results["configs"] | model.results["reject"]
    return dict(sorted(made.items()))


BY_LANGUAGE = (ranking, categories, heat_map, curves, trade_off, correlates, disparity, words, clips)
