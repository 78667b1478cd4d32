"""The page of one model on the leaderboard: facts, heat map, severity curves, and how to reproduce its scores."""

from __future__ import annotations

from collections.abc import Mapping

from speech_robust_bench.core.categories import label
from speech_robust_bench.core.result_records import Measures, NormalisedRates, PastVersion, RerunRecord
from speech_robust_bench.push.leaderboard.board import Entry, grid
from speech_robust_bench.push.leaderboard.pages import HUB, board_pages, checked, score_text, size_text, units_text
from speech_robust_bench.report.charts import Point, Scale, Series, fixed, legend_mark, line_chart, spanning
from speech_robust_bench.report.html import Html, join, tag


def model(entry: Entry, language: str) -> Html:
    """The page of one model: facts, heat map, severity curves, how to reproduce it."""
    if language not in entry.content.languages:
        return tag("p", f"{entry.name} was not run in this language.", class_="empty")
    scores = grid(entry, language)
    clean = entry.clean(language)
    n = units_text(entry, language, "overall")
    facts = [
        ("NWER (ranking score), %", score_text(entry.overall(language, "nwer"), n)),
        ("Average NWERD, %", score_text(entry.overall(language), n)),
        ("Median NWERD, %", score_text(entry.median(language), n)),
        ("Clips", f"{entry.clips(language):,}"),
        ("Checked", checked(entry)),
        *([("Suite", entry.suite)] if entry.suite else []),
        *([("Edition", entry.edition)] if entry.edition else []),
        ("WER on clean speech, %", fixed(clean)),
        ("Size", size_text(entry.params_m)),
        ("Speed", f"{1 / entry.content.rtf:.0f} x real time" if entry.content.rtf else "–"),
        ("Failed clips", str(entry.content.failed)),
        ("Licence", entry.content.model.licence or "–"),
        ("Trained on", entry.content.model.training_data or "–"),
    ]
    cards = [tag("div", tag("small", what), tag("b", value)) for what, value in facts]
    return tag(
        "div",
        tag("h3", f"Language: {language}"),
        [tag("p", f"Flagged: {flag}", class_="flag") for flag in entry.content.flags or ()],
        tag("div", cards, class_="facts"),
        _normalisers(entry, language),
        tag("h3", "Scenario by severity"),
        tag("p", HEAT_LEAD, class_="lead"),
        _heat_map(scores, _clips_of_scenarios(entry, language)),
        tag("h3", "Severity curves"),
        tag("p", CURVES_LEAD, class_="lead"),
        _curves(scores),
        [page.of_model(entry, language) for page in board_pages().values()],
        _reproduce(entry),
        class_="one",
    )


HEAT_LEAD = (
    "WERD: points of word error rate lost compared with clean speech. Hover over a cell to see its 95 % interval; the "
    "last column is the number of clips in each cell."
)
CURVES_LEAD = (
    "WERD in points by severity, with 95 % intervals. Lower is better. A flat line can also be a model that fails "
    "everywhere, so look at its WER on clean speech too."
)


def _normalisers(entry: Entry, language: str) -> Html | None:
    """What other ways of comparing texts give: how much of the score is how the model writes."""
    others = [(name, rows[language]) for name, rows in (entry.content.by_normaliser or {}).items() if language in rows]
    if not others:
        return None
    overall = entry.overall(language)
    own = NormalisedRates(clean=entry.clean(language), nwerd=overall[0] if overall else None)
    body = [
        tag("tr", tag("th", name, scope="row"), tag("td", fixed(row.clean)), tag("td", fixed(row.nwerd)))
        for name, row in [(entry.content.scoring.normaliser, own), *others]
    ]
    heads = [tag("th", text, scope="col") for text in ("normaliser", "clean WER, %", "average NWERD, %")]
    table = tag("table", tag("thead", tag("tr", heads)), tag("tbody", body))
    return join([tag("h3", "By other normalisers"), tag("div", table, class_="scroll")])


def _clips_of_scenarios(entry: Entry, language: str) -> dict[str, str]:
    """How many clips each of a scenario's configs has."""
    counts: dict[str, list[int]] = {}
    for config in entry.content.configs.values():
        if config.language == language:
            counts.setdefault(config.scenario, []).append(config.utterances)
    return {name: f"{min(c):,}" if min(c) == max(c) else f"{min(c):,} to {max(c):,}" for name, c in counts.items()}


def _heat_map(scores: dict[str, dict[str, dict[int, Measures]]], clips: Mapping[str, str]) -> Html:
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
            cells.append(tag("td", clips.get(scenario, "–"), class_="clips"))
            body.append(tag("tr", tag("td", category, title=label(category)), tag("th", scenario, scope="row"), cells))
    titles = ("category", "scenario", *(f"severity {n}" for n in levels or (0,)), "clips")
    heads = [tag("th", _severity_head(text), scope="col") for text in titles]
    table = tag("table", tag("thead", tag("tr", heads)), tag("tbody", body), class_="heat")
    return join([_legend(scale), tag("div", table, class_="scroll")])


def _severity_head(text: str) -> Html | str:
    """The head of a column; narrow screens leave out the word severity."""
    if not text.startswith("severity "):
        return text
    level = text.removeprefix("severity ")
    return "all" if level == "0" else join([tag("span", "severity ", class_="word"), level])


def _legend(scale: Scale) -> Html:
    ends = [tag("span", fixed(scale.low, 0)), tag("span", class_="ramp"), tag("span", f"{fixed(scale.high, 0)} points")]
    return tag("div", ends, class_="heat-key")


def _heat(scale: Scale, row: Measures | None, span: int | None = None) -> Html:
    score = row.get("werd") if row else None
    if not score:
        return tag("td", "–", class_="cell", colspan=span)
    share = scale(score[0])
    said = f"WERD {score_text(score)}, WER {score_text(row.get('wer') if row else None)}"
    hot = "cell hot" if share > 62 else "cell"
    return tag("td", fixed(score[0]), class_=hot, style=f"--v:{share}%", title=said, colspan=span)


def _curves(scores: dict[str, dict[str, dict[int, Measures]]]) -> Html:
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
                        Point(n, r["werd"][0], f"{s} {n}: {score_text(r['werd'])}", r["werd"][1:] or None)
                        for n, r in lines[s].items()
                    ],
                )
                for i, s in enumerate(part)
            ]
            legend = [tag("span", legend_mark(i), s, class_=f"s{i}") for i, s in enumerate(part)]
            caption = tag("figcaption", category, tag("div", legend, class_="legend"))
            figures.append(tag("figure", caption, line_chart(series, y, f"WERD of {category} over severity")))
    return (
        tag("div", figures, class_="multiples")
        if figures
        else tag("p", "No scenario was run at more than one severity.", class_="empty")
    )


def _reproduce(entry: Entry) -> Html:
    content = entry.content
    url = content.model.url or (HUB + content.model.id if content.model.id else None)
    lines = [
        tag("li", "model: ", tag("a", url, href=url, rel="noopener", target="_blank") if url else "–"),
        tag("li", "revision: ", tag("code", content.revision or "–")),
        tag("li", "command: ", tag("code", content.reproduce) if content.reproduce else "–"),
        tag(
            "li",
            "predictions: ",
            tag("a", content.predictions, href=content.predictions, rel="noopener", target="_blank")
            if content.predictions
            else "–",
        ),
        tag("li", f"benchmark version {content.benchmark_version}, verified with srb {content.verified_with}"),
        _rerun_line(content.rerun),
        [_version_line(past) for past in reversed(content.history or [])],
    ]
    return tag("div", tag("h3", "How to reproduce"), tag("ul", lines), id="reproduce")


def _rerun_line(again: RerunRecord | None) -> Html | None:
    if not again:
        return None
    outcome = "agrees" if again.agrees else "does not agree"
    text = f"rerun {outcome}: {again.same} of {again.clips} clips give the same words (seed {again.seed})"
    return tag("li", text)


def _version_line(past: PastVersion) -> Html:
    """An earlier version of the model, which the ranking no longer shows."""
    scores = ", ".join(f"{language} NWERD {score_text(score)}" for language, score in past.nwerd.items())
    return tag("li", f"version {past.version}, revision {past.revision or '–'}: {scores}")
