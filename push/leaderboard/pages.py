"""The leaderboard's fragments of HTML. Whatever comes from a submission is escaped by `tag`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from speech_robust_bench.core.categories import ADVERSARIAL, AVERAGED, label
from speech_robust_bench.core.extensions import load_object
from speech_robust_bench.core.result_records import Measures, NormalisedRates, PastVersion, RerunRecord
from speech_robust_bench.push.leaderboard.board import Board, Entry, Row, Score, grid
from speech_robust_bench.push.leaderboard.board import published as paper_rows
from speech_robust_bench.report.charts import Point, Scale, Series, fixed, legend_mark, line_chart, spanning
from speech_robust_bench.report.html import Html, join, tag
from speech_robust_bench.report.sections.attacks import LEAD as ATTACK_LEAD
from speech_robust_bench.report.sections.attacks import TITLES as ATTACK_TITLES
from speech_robust_bench.report.sections.attacks import success_curves
from speech_robust_bench.scoring.aggregate import measure_of
from speech_robust_bench.scoring.attack_success import RATES
from speech_robust_bench.scoring.bank_provenance import stand_in_notes
from speech_robust_bench.scoring.measures import measures

MOST_TABLE_BYTES = 200_000  # of the rows on one page
MOST_PROBLEMS = 100  # that are named
SUITE_NOTE = "a suite: a part of the configs and clips, with wider intervals"
HUB = "https://huggingface.co/"


@dataclass(frozen=True)
class BoardPage:
    """The page of a measure, `<measure>.html`, which it names as its `board`; and its part of a model's own page."""

    title: str
    lead: str  # in HTML
    draw: Callable[[Sequence[Row], str], Html | None]  # some models in a language
    of_model: Callable[[Entry, str], Html | None]
    mark: str  # of the models that have the measure, in the ranking


def board_pages() -> dict[str, BoardPage]:
    """The pages that measures have, by measure."""
    return {name: load_object(measure.board) for name, measure in measures().items() if measure.board}


def marks(entry: Entry) -> list[str]:
    """How a model is marked in the ranking, for the measures that it has."""
    configs = entry.content.configs.values()
    return [page.mark for name, page in board_pages().items() if any(measures()[name].of(config) for config in configs)]


def table_cell(score: Score | None, best: bool = False, spread: bool = False) -> Html:
    """A number; its interval is in the title, and with `spread` beside it."""
    if not score:
        return tag("td", "–", data_sort="")
    span = f"{fixed(score[1])} to {fixed(score[2])}" if len(score) > 2 else None
    text = tag("b", fixed(score[0])) if best else fixed(score[0])
    beside = tag("small", f" {span}") if span and spread else None
    return tag("td", text, beside, data_sort=score[0], title=span)


def sort_table(heads: Sequence[Html], rows: Sequence[Html], class_: str = "", **data: str) -> Html:
    body = tag("table", tag("thead", tag("tr", heads)), tag("tbody", rows), class_=f"sortable {class_}".strip(), **data)
    return tag("div", body, class_="scroll")


def column_head(text: str, title: str | None = None, number: bool = True) -> Html:
    return tag("th", text, scope="col", tabindex=0, title=title or "sort", class_="n" if number else None)


def _best(columns: Sequence[Sequence[Score | None]]) -> list[float | None]:
    """The lowest value of each column, where there are at least two."""
    lowest = []
    for column in columns:
        values = [score[0] for score in column if score]
        lowest.append(min(values) if len(values) > 1 else None)
    return lowest


def _is(score: Score | None, value: float | None) -> bool:
    return score is not None and score[0] == value


def ranking(rows: Sequence[Row], chosen: Sequence[str] = ()) -> list[Html]:
    """The table of the first page, in parts of a page each; models that are not ranked stand last, with the reason."""
    if not rows:
        return [tag("p", "No verified model fits these filters.", class_="empty")]
    categories = list(rows[0].cells)
    ranked = [row for row in rows if row.place]
    best = _best([[row.score for row in ranked], *([row.cells[c] for row in ranked] for c in categories)])
    over = "the chosen categories" if chosen else "the paper's nine categories"
    best_of = f"what ranks: WER over difficulty, mean of {over}"
    heads = [
        column_head("#"),
        column_head("Model", number=False),
        tag("th", "NWER", scope="col", tabindex=0, title=best_of, class_="n", aria_sort="ascending"),
        column_head("Average NWERD", "what is lost against the model's own clean speech; ranks nobody"),
        column_head("Median NWERD", "the median over configs, which one bad config does not move"),
        column_head("Clean WER", "word error rate on clean speech, %"),
        *(column_head(f"{c} {_measure(c)}", f"{label(c)}; at a cell, its 95 % interval") for c in categories),
        column_head("Size", "millions of parameters"),
        column_head(
            "Checked", "reproduces: scores follow from the predictions; rerun: transcribed again", number=False
        ),
        tag("th", "", scope="col"),
    ]
    body = [
        tag(
            "tr",
            tag("td", row.place or "–", data_sort=row.place or ""),
            tag(
                "th",
                model_link(row.entry),
                tag("small", f" {row.entry.suite}", class_="suite", title=SUITE_NOTE) if row.entry.suite else None,
                [tag("small", f" {mark}") for mark in marks(row.entry)],
                tag("small", row.why, class_="why") if row.why else None,
                scope="row",
            ),
            table_cell(row.score, _is(row.score, best[0]), spread=True),
            table_cell(row.average),
            table_cell(row.median),
            table_cell([row.clean] if row.clean is not None else None),
            [table_cell(row.cells[c], _is(row.cells[c], best[i])) for i, c in enumerate(categories, 1)],
            tag("td", _size(row.entry.params_m), data_sort=row.entry.params_m or ""),
            tag("td", checked(row.entry)),
            tag("td", _links(row.entry), class_="links"),
            data_name=row.entry.name.lower(),
            data_size=row.entry.params_m if row.entry.params_m is not None else "",
            data_categories=" ".join(_plain(row.ranks_by.get(c)) for c in categories),
            class_=None if row.place else "unranked",
        )
        for row in rows
    ]
    return [sort_table(heads, part, "ranking", data_categories=" ".join(categories)) for part in _parts(body)]


def _parts(rows: Sequence[Html]) -> list[list[Html]]:
    """The rows of a table, as many in each part as fit into a page."""
    parts: list[list[Html]] = [[]]
    size = 0
    for row in rows:
        if parts[-1] and size + len(row) > MOST_TABLE_BYTES:
            parts.append([])
            size = 0
        parts[-1].append(row)
        size += len(row)
    return parts


def _plain(value: float | None) -> str:
    """A number for the script, which averages the categories that a visitor chooses."""
    return "-" if value is None else str(value)


def _measure(category: str) -> str:
    return measure_of(category).upper()


def checked(entry: Entry) -> str:
    """How far a model's predictions were checked."""
    again = entry.content.rerun
    return "rerun" if again and again.agrees else "reproduces"


def material(board: Board, language: str) -> Html:
    """Which material the scenarios were made from, where it is not the paper's."""
    configs = [config for entry in board.entries for config in entry.content.configs.values()]
    return join(tag("p", note, class_="lead") for note in stand_in_notes(configs, language))


def model_page(entry: Entry) -> str:
    """Where a model's page is on the site."""
    return f"model/{entry.stem}.html"


def model_link(entry: Entry) -> Html:
    return tag("a", entry.name, href=model_page(entry))


def _links(entry: Entry) -> Html:
    url = entry.content.predictions
    return join(
        [
            tag("a", "predictions", href=url, rel="noopener", target="_blank") if url else None,
            " " if url else None,
            tag("a", "reproduce", href=f"{model_page(entry)}#reproduce"),
        ]
    )


def _size(params_m: float | None) -> str:
    return "–" if params_m is None else f"{params_m:g} M"


def model(entry: Entry, language: str) -> Html:
    """The page of one model: facts, heat map, severity curves, how to reproduce it."""
    if language not in entry.content.languages:
        return tag("p", f"{entry.name} was not run in this language.", class_="empty")
    scores = grid(entry, language)
    overall, clean = entry.overall(language), entry.clean(language)
    facts = [
        ("NWER, which ranks", _interval(entry.overall(language, "nwer"))),
        ("Average NWERD", _interval(overall)),
        ("Median NWERD", _interval(entry.median(language))),
        ("Checked", checked(entry)),
        *([("Suite", entry.suite)] if entry.suite else []),
        *([("Edition", entry.edition)] if entry.edition else []),
        ("WER on clean speech", fixed(clean)),
        ("Size", _size(entry.params_m)),
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
        tag("p", "WERD: points of word error rate lost against clean speech.", class_="lead"),
        _heat_map(scores),
        tag("h3", "Severity curves"),
        tag("p", "WERD over severity, with 95 % intervals. The flatter, the more robust.", class_="lead"),
        _curves(scores),
        [page.of_model(entry, language) for page in board_pages().values()],
        _reproduce(entry),
        class_="one",
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
    heads = [tag("th", text, scope="col") for text in ("normaliser", "clean WER", "average NWERD")]
    table = tag("table", tag("thead", tag("tr", heads)), tag("tbody", body))
    return join([tag("h3", "By other normalisers"), tag("div", table, class_="scroll")])


def _interval(score: Score | None) -> str:
    if not score:
        return "–"
    return fixed(score[0]) + (f" ({fixed(score[1])} to {fixed(score[2])})" if len(score) > 2 else "")


def _heat_map(scores: dict[str, dict[str, dict[int, Measures]]]) -> Html:
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
            body.append(tag("tr", tag("td", category, title=label(category)), tag("th", scenario, scope="row"), cells))
    heads = [tag("th", text, scope="col") for text in ("category", "scenario", *(f"severity {n}" for n in levels))]
    table = tag("table", tag("thead", tag("tr", heads)), tag("tbody", body), class_="heat")
    return join([_legend(scale), tag("div", table, class_="scroll")])


def _legend(scale: Scale) -> Html:
    ends = [tag("span", fixed(scale.low, 0)), tag("span", class_="ramp"), tag("span", f"{fixed(scale.high, 0)} points")]
    return tag("div", ends, class_="heat-key")


def _heat(scale: Scale, row: Measures | None, span: int | None = None) -> Html:
    score = row.get("werd") if row else None
    if not score:
        return tag("td", "–", class_="cell", colspan=span)
    share = scale(score[0])
    said = f"WERD {_interval(score)}, WER {_interval(row.get('wer') if row else None)}"
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
                        Point(n, r["werd"][0], f"{s} {n}: {_interval(r['werd'])}", r["werd"][1:] or None)
                        for n, r in lines[s].items()
                    ],
                )
                for i, s in enumerate(part)
            ]
            legend = [tag("span", legend_mark(i), s, class_=f"s{i}") for i, s in enumerate(part)]
            caption = tag("figcaption", category, tag("div", legend, class_="legend"))
            figures.append(tag("figure", caption, line_chart(series, y, f"WERD of {category} over severity")))
    return (
        tag("div", figures, class_="multiples") if figures else tag("p", "No scenario has severities.", class_="empty")
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
    scores = ", ".join(f"{language} NWERD {_interval(score)}" for language, score in past.nwerd.items())
    return tag("li", f"version {past.version}, revision {past.revision or '–'}: {scores}")


def published(language: str) -> Html:
    """The paper's rows, which nobody here has verified."""
    rows = [row for row in paper_rows() if row.language == language]
    if not rows:
        return tag("p", "The paper has no rows in this language.", class_="empty")
    names = [*AVERAGED, *ADVERSARIAL]
    heads = [column_head("Model", number=False), column_head("Size"), column_head("Clean"), column_head("Average")]
    heads += [column_head(name, label(name)) for name in names]

    def cell(value: float | None) -> Html:
        return table_cell(None if value is None else [value])

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
    return join([tag("p", lead, class_="lead"), sort_table(heads, body, "published")])


def attacks(models: Sequence[Row], language: str) -> Html | None:
    """Those that were attacked: what each attack at each bound did to them."""
    rows = [(row, attacked) for row in models if (attacked := row.entry.attacks(language))]
    if not rows:
        return None
    legend = [
        tag("span", legend_mark(index), row.entry.name, class_=f"s{index % 7}") for index, (row, _) in enumerate(rows)
    ]
    rates = [rate for rate in RATES if any(rate in result.rates for _, attacked in rows for result in attacked)]
    heads = [
        column_head("Model", number=False),
        column_head("Attack", number=False),
        column_head("Bound dB"),
        column_head("Clips"),
    ]
    heads += [column_head("WER %"), column_head("Noise WER %"), *(column_head(ATTACK_TITLES[rate]) for rate in rates)]
    body = [
        tag(
            "tr",
            tag("th", model_link(row.entry), tag("small", row.why, class_="why") if row.why else None, scope="row"),
            tag("td", result.attack),
            table_cell(None if result.snr_db is None else [result.snr_db]),
            tag("td", result.clips, data_sort=result.clips),
            [
                table_cell(None if value is None else [value])
                for value in (
                    result.wer,
                    result.noise_wer,
                    *(result.rates.get(rate) for rate in rates),
                )
            ],
            class_=None if row.place else "unranked",
        )
        for row, attacked in rows
        for result in attacked
    ]
    curves = success_curves([(index, attacked) for index, (_, attacked) in enumerate(rows)])
    return join(
        [
            tag("h2", f"Language: {language}"),
            tag("p", ATTACK_LEAD, class_="lead"),
            tag("div", legend, class_="legend") if curves else None,
            tag("div", curves, class_="multiples") if curves else None,
            sort_table(heads, body),
        ]
    )


def problems(board: Board) -> Html:
    """The files that were left out."""
    if not board.problems:
        return join([])
    named = [p[:300] for p in board.problems[:MOST_PROBLEMS]]
    more = [f"and {len(board.problems) - MOST_PROBLEMS} more"] if len(board.problems) > MOST_PROBLEMS else []
    return tag(
        "details",
        tag("summary", f"{len(board.problems)} files left out"),
        tag("ul", [tag("li", p) for p in (*named, *more)]),
    )
