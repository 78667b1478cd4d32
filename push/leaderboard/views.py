"""The leaderboard's fragments of HTML. Whatever comes from a submission is escaped by `tag`."""

from __future__ import annotations

from collections.abc import Sequence

from srb.push.leaderboard.board import ADVERSARIAL, PAPER, Board, Difference, Entry, Json, Row, Score, grid, title
from srb.push.leaderboard.board import published as paper_rows
from srb.report.charts import Point, Scale, Series, fixed, legend_mark, line_chart, spanning
from srb.report.html import Html, join, tag

HUB = "https://huggingface.co/"


def _cell(score: Score | None, best: bool = False) -> Html:
    if not score:
        return tag("td", "–", data_sort="")
    span = f"{fixed(score[1])} to {fixed(score[2])}" if len(score) > 2 else None
    text = tag("b", fixed(score[0])) if best else fixed(score[0])
    return tag("td", text, data_sort=score[0], title=span)


def _table(heads: Sequence[Html], rows: Sequence[Html], class_: str = "") -> Html:
    made = tag("table", tag("thead", tag("tr", heads)), tag("tbody", rows), class_=f"sortable {class_}".strip())
    return tag("div", made, class_="scroll")


def _head(text: str, title: str | None = None, number: bool = True) -> Html:
    return tag("th", text, scope="col", tabindex=0, title=title or "sort", class_="n" if number else None)


def _best(columns: Sequence[Sequence[Score | None]]) -> list[float | None]:
    """The lowest value of each column, where there are at least two."""
    made = []
    for column in columns:
        values = [score[0] for score in column if score]
        made.append(min(values) if len(values) > 1 else None)
    return made


def _is(score: Score | None, value: float | None) -> bool:
    return score is not None and score[0] == value


def ranking(rows: Sequence[Row], chosen: Sequence[str] = ()) -> Html:
    """The table of the first page."""
    if not rows:
        return tag("p", "No verified model fits these filters.", class_="empty")
    categories = list(rows[0].cells)
    best = _best([[row.score for row in rows], *([row.cells[c] for row in rows] for c in categories)])
    average = "mean of the chosen categories" if chosen else "mean NWERD of the paper's nine categories"
    heads = [
        _head("#"),
        _head("Model", number=False),
        tag("th", "Average", scope="col", tabindex=0, title=average, class_="n", aria_sort="ascending"),
        _head("Clean", "word error rate on clean speech, %"),
        *(_head(title(c), f"{_measure(c)}; at a cell, its 95 % interval") for c in categories),
        _head("Size", "millions of parameters"),
        tag("th", "", scope="col"),
    ]
    body = [
        tag(
            "tr",
            tag("td", place, data_sort=place),
            tag("th", _model_link(row.entry.name), scope="row"),
            _cell(row.score, _is(row.score, best[0])),
            _cell([row.clean] if row.clean is not None else None),
            [_cell(row.cells[c], _is(row.cells[c], best[i])) for i, c in enumerate(categories, 1)],
            tag("td", _size(row.entry.params_m), data_sort=row.entry.params_m or ""),
            tag("td", _links(row.entry), class_="links"),
        )
        for place, row in enumerate(rows, 1)
    ]
    return _table(heads, body, "ranking")


def _measure(category: str) -> str:
    return "NWERD" if category in PAPER else "WERD"


def _model_link(name: str) -> Html:
    return tag("a", name, href=f"?model={name}", class_="model-link", data_model=name)


def _links(entry: Entry) -> Html:
    url = entry.made["predictions"]
    return join(
        [
            tag("a", "predictions", href=url, rel="noopener", target="_blank") if url else None,
            " " if url else None,
            tag("a", "reproduce", href=f"?model={entry.name}#reproduce", class_="model-link", data_model=entry.name),
        ]
    )


def _size(params_m: float | None) -> str:
    return "–" if params_m is None else f"{params_m:g} M"


def model(entry: Entry, language: str) -> Html:
    """The page of one model: facts, heat map, severity curves, how to reproduce it."""
    if language not in entry.made["languages"]:
        return tag("p", f"{entry.name} was not run in this language.", class_="empty")
    scores = grid(entry, language)
    overall, clean = entry.overall(language), entry.clean(language)
    facts = [
        ("Average NWERD", _interval(overall)),
        ("WER on clean speech", fixed(clean)),
        ("Size", _size(entry.params_m)),
        ("Speed", f"{1 / entry.made['rtf']:.0f} x real time" if entry.made["rtf"] else "–"),
        ("Failed clips", str(entry.made["failed"])),
        ("Licence", entry.made["model"].get("licence") or "–"),
        ("Trained on", entry.made["model"].get("training_data") or "–"),
    ]
    cards = [tag("div", tag("small", what), tag("b", value)) for what, value in facts]
    return tag(
        "div",
        tag("h2", entry.name),
        tag("div", cards, class_="facts"),
        tag("h3", "Scenario by severity"),
        tag("p", "WERD: points of word error rate lost against clean speech. Darker is worse.", class_="lead"),
        _heat_map(scores),
        tag("h3", "Severity curves"),
        tag("p", "WERD over severity, with 95 % intervals. The flatter, the more robust.", class_="lead"),
        _curves(scores),
        _reproduce(entry),
        class_="one",
    )


def _interval(score: Score | None) -> str:
    if not score:
        return "–"
    return fixed(score[0]) + (f" ({fixed(score[1])} to {fixed(score[2])})" if len(score) > 2 else "")


def _heat_map(scores: dict[str, dict[str, dict[int, Json]]]) -> Html:
    levels = sorted({level for by in scores.values() for rows in by.values() for level in rows if level})
    worst = max(
        (r["werd"][0] for by in scores.values() for x in by.values() for r in x.values() if "werd" in r), default=1
    )
    scale = Scale(0, max(min(worst, 100.0), 1.0))
    body = []
    for category, by_scenario in scores.items():
        for scenario, rows in by_scenario.items():
            cells = [_heat(scale, rows.get(level)) for level in levels] if 0 not in rows else []
            if 0 in rows:  # without severities: one cell as wide as the others together
                cells = [_heat(scale, rows[0], max(1, len(levels)))]
            body.append(tag("tr", tag("td", title(category)), tag("th", scenario, scope="row"), cells))
    heads = [tag("th", text, scope="col") for text in ("category", "scenario", *(f"severity {n}" for n in levels))]
    return tag("div", tag("table", tag("thead", tag("tr", heads)), tag("tbody", body), class_="heat"), class_="scroll")


def _heat(scale: Scale, row: Json | None, span: int | None = None) -> Html:
    score = row.get("werd") if row else None
    if not score:
        return tag("td", "–", class_="cell", colspan=span)
    share = scale(score[0])
    said = f"WERD {_interval(score)}, WER {_interval(row.get('wer') if row else None)}"
    hot = "cell hot" if share > 62 else "cell"
    return tag("td", fixed(score[0]), class_=hot, style=f"--v:{share}%", title=said, colspan=span)


def _curves(scores: dict[str, dict[str, dict[int, Json]]]) -> Html:
    """One small chart per category, a line per scenario, seven at most in a chart."""
    figures = []
    values = [v for by in scores.values() for x in by.values() for r in x.values() for v in r.get("werd", ())]
    y = spanning([min(max(value, -20.0), 150.0) for value in values])
    for category, by_scenario in scores.items():
        lines = {s: {n: r for n, r in rows.items() if n and "werd" in r} for s, rows in by_scenario.items()}
        names = [scenario for scenario, rows in lines.items() if len(rows) > 1]
        for start in range(0, len(names), 7):
            part = names[start : start + 7]
            series = [
                Series(
                    i,
                    [
                        Point(n, r["werd"][0], f"{s} {n}: {_interval(r['werd'])}", r["werd"][1:] or None)
                        for n, r in lines[s].items()
                    ],
                )
                for i, s in enumerate(part)
            ]
            legend = [tag("span", legend_mark(i), s, class_=f"s{i}") for i, s in enumerate(part)]
            caption = tag("figcaption", title(category), tag("div", legend, class_="legend"))
            figures.append(tag("figure", caption, line_chart(series, y, f"WERD of {title(category)} over severity")))
    return (
        tag("div", figures, class_="multiples") if figures else tag("p", "No scenario has severities.", class_="empty")
    )


def _reproduce(entry: Entry) -> Html:
    made = entry.made
    about = made["model"]
    url = about.get("url") or (HUB + about["id"] if about.get("id") else None)
    lines = [
        tag("li", "model: ", tag("a", url, href=url, rel="noopener", target="_blank") if url else "–"),
        tag("li", "revision: ", tag("code", made.get("revision") or "–")),
        tag("li", "command: ", tag("code", made["reproduce"])),
        tag(
            "li",
            "predictions: ",
            tag("a", made["predictions"], href=made["predictions"], rel="noopener", target="_blank")
            if made["predictions"]
            else "–",
        ),
        tag("li", f"benchmark version {made['benchmark_version']}, verified with srb {made['verified_with']}"),
    ]
    return tag("div", tag("h3", "How to reproduce"), tag("ul", lines), id="reproduce")


def comparison(differences: Sequence[Difference]) -> Html:
    """Pairs of models, row by row."""
    if not differences:
        return tag("p", "Choose two or more models that were run in this language.", class_="empty")
    heads = [
        _head("Row", number=False),
        _head("A", number=False),
        _head("B", number=False),
        _head("Measure", number=False),
        *(_head(text) for text in ("score A", "score B", "A − B", "95 % interval", "p (Holm)")),
        _head("More robust", number=False),
    ]
    order = sorted(differences, key=lambda row: (row.name != "overall", row.name))
    body = [
        tag(
            "tr",
            tag("th", "Average" if row.name == "overall" else title(row.name), scope="row"),
            tag("td", row.a),
            tag("td", row.b),
            tag("td", row.measure.upper()),
            [tag("td", fixed(v), data_sort=v) for v in (row.value_a, row.value_b, row.difference)],
            tag("td", f"{row.interval[0]:+.1f} to {row.interval[1]:+.1f}", data_sort=row.interval[0]),
            tag("td", f"{row.p:.3f}", data_sort=row.p),
            tag("td", tag("b", winner) if (winner := row.better()) else "cannot be told apart"),
        )
        for row in order
    ]
    note = (
        f"Paired bootstrap over the same clips, 1000 replicates; p-values corrected for {len(differences)} "
        "comparisons. Lower is more robust."
    )
    return join([_table(heads, body), tag("p", note, class_="lead")])


def published(language: str) -> Html:
    """The paper's rows, which nobody here has verified."""
    rows = [row for row in paper_rows() if row.language == language]
    if not rows:
        return tag("p", "The paper has no rows in this language.", class_="empty")
    names = [*PAPER, *ADVERSARIAL]
    heads = [_head("Model", number=False), _head("Size"), _head("Clean"), _head("Average")]
    heads += [_head(title(name)) for name in names]

    def cell(value: float | None) -> Html:
        return _cell(None if value is None else [value])

    body = [
        tag(
            "tr",
            tag("th", row.model, scope="row"),
            tag("td", _size(row.params_m), data_sort=row.params_m or ""),
            cell(row.clean),
            cell(row.average),
            [cell(row.cells[name]) for name in names],
        )
        for row in rows
    ]
    lead = (
        "As published: Table 1 of Speech Robust Bench (Shah et al.), measured by its authors on their own data. Not "
        "verified here, and not comparable digit by digit with the verified rows."
    )
    return join([tag("p", lead, class_="lead"), _table(heads, body, "published")])


def problems(board: Board) -> Html:
    """The files that were left out."""
    if not board.problems:
        return join([])
    return tag(
        "details",
        tag("summary", f"{len(board.problems)} files left out"),
        tag("ul", [tag("li", p) for p in board.problems]),
    )
