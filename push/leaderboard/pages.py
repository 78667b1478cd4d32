"""The leaderboard's fragments of HTML. Whatever comes from a submission is escaped by `tag`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from speech_robust_bench.core.categories import ADVERSARIAL, AVERAGED, label
from speech_robust_bench.core.extensions import load_object
from speech_robust_bench.push.leaderboard.board import Board, Entry, Row, Score, paired_units
from speech_robust_bench.push.leaderboard.board import published as paper_rows
from speech_robust_bench.report.charts import (
    Axes,
    Point,
    Series,
    fixed,
    legend_mark,
    scatter,
)
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


def table_cell(score: Score | None, best: bool = False, n: str = "", spread: bool = False) -> Html:
    """A number; its interval and the number of units that it is over are in the title, and with `spread` below it."""
    if not score:
        return tag("td", "–", data_sort="")
    span = interval_text(score, n)
    text = tag("b", fixed(score[0])) if best else fixed(score[0])
    below = [tag("small", part, class_="spread") for part in span.split(", ", 1)] if span and spread else None
    return tag("td", text, below, data_sort=score[0], title=span or None)


def interval_text(score: Score, n: str) -> str:
    """The interval of a score and what it is over: `21.0 to 23.4, 40 speakers`."""
    return ", ".join(filter(None, [f"{fixed(score[1])} to {fixed(score[2])}", n])) if len(score) > 2 else ""


def score_text(score: Score | None, n: str = "") -> str:
    """A score and its interval: `22.2 (21.0 to 23.4, 40 speakers)`."""
    if not score:
        return "–"
    span = interval_text(score, n)
    return fixed(score[0]) + (f" ({span})" if span else "")


def units_text(entry: Entry, language: str, row: str) -> str:
    """How many speakers or clips a row's intervals are over."""
    unit, number = paired_units(entry, language, row)
    return f"{number:,} {unit.removesuffix(' of version 1')}"


def sort_table(heads: Sequence[Html], rows: Sequence[Html], class_: str = "", **data: str) -> Html:
    body = tag("table", tag("thead", tag("tr", heads)), tag("tbody", rows), class_=f"sortable {class_}".strip(), **data)
    return tag("div", body, class_="scroll")


def column_head(text: str | Html, title: str | None = None, number: bool = True, unit: str = "", **how: str) -> Html:
    """The head of a column, which sorts by it; a column of numbers has its unit there."""
    small = tag("small", f" {unit}") if unit else None
    return tag("th", text, small, scope="col", tabindex=0, title=title or "sort", class_="n" if number else None, **how)


def _best(columns: Sequence[Sequence[Score | None]]) -> list[float | None]:
    """The lowest value of each column, where there are at least two."""
    lowest = []
    for column in columns:
        values = [score[0] for score in column if score]
        lowest.append(min(values) if len(values) > 1 else None)
    return lowest


def _is(score: Score | None, value: float | None) -> bool:
    return score is not None and score[0] == value


NWER_TITLE = (
    "the ranking score: WER / difficulty, averaged over the paper's nine categories; below it the 95 % interval"
)
CHECKED_TITLE = "reproduces: the scores follow from the predictions; rerun: a sample was transcribed again"
RANKING_NOTE = (
    "NWER and NWERD are in per cent, divided by the scenario's difficulty; WERD is in points. Below each NWER are its "
    "95 % interval and the number of speakers or clips behind it. Hover over any other score to see its interval. "
    "Click a column heading to sort."
)


def ranking(rows: Sequence[Row], language: str) -> list[Html]:
    """The table of the first page, in parts of a page each; models that are not ranked stand last, with the reason."""
    if not rows:
        return [tag("p", "No verified model fits these filters.", class_="empty")]
    categories = list(rows[0].cells)
    ranked = [row for row in rows if row.place]
    best = _best([[row.score for row in ranked], *([row.cells[c] for row in ranked] for c in categories)])
    heads = [
        column_head("#"),
        column_head("Model", number=False),
        tag(
            "th",
            "NWER",
            tag("small", " %"),
            scope="col",
            tabindex=0,
            title=NWER_TITLE,
            class_="n",
            aria_sort="ascending",
        ),
        column_head("Average NWERD", "the loss compared with clean speech; does not decide the rank", unit="%"),
        column_head("Median NWERD", "the median over configs; a single bad config does not move it", unit="%"),
        column_head("Clean WER", "word error rate on clean speech", unit="%"),
        column_head("Clips", "all predictions that were scored"),
        column_head("Size", "millions of parameters"),
        column_head("Checked", CHECKED_TITLE, number=False),
        *(
            column_head(
                _breakable(f"{c} {_measure(c)}"), f"{label(c)}; hover over a cell for its 95 % interval", unit=_unit(c)
            )
            for c in categories
        ),
    ]
    body = [_ranking_row(row, language, best) for row in rows]
    return [sort_table(heads, part, "ranking", data_categories=" ".join(categories)) for part in _parts(body)]


def _ranking_row(row: Row, language: str, best: Sequence[float | None]) -> Html:
    entry, categories = row.entry, list(row.cells)
    model = [
        model_link(entry),
        tag("small", f" {entry.suite}", class_="suite", title=SUITE_NOTE) if entry.suite else None,
        [tag("small", f" {mark}") for mark in marks(entry)],
        tag("small", row.why, class_="why") if row.why else None,
    ]
    clips = entry.clips(language)
    return tag(
        "tr",
        tag("td", row.place or "–", data_sort=row.place or ""),
        tag("th", model, scope="row"),
        table_cell(row.score, _is(row.score, best[0]), units_text(entry, language, "overall"), spread=True),
        table_cell(row.average, n=units_text(entry, language, "overall")),
        table_cell(row.median, n=units_text(entry, language, "overall")),
        table_cell([row.clean] if row.clean is not None else None),
        tag("td", f"{clips:,}", data_sort=clips),
        tag("td", size_text(entry.params_m), data_sort=entry.params_m or ""),
        tag("td", tag("a", checked(entry), href=f"{model_page(entry)}#reproduce", title="how to reproduce it")),
        [
            table_cell(row.cells[c], _is(row.cells[c], best[i]), units_text(entry, language, c))
            for i, c in enumerate(categories, 1)
        ],
        data_name=entry.name.lower(),
        data_size=entry.params_m if entry.params_m is not None else "",
        data_categories=" ".join(_plain(row.ranks_by.get(c)) for c in categories),
        class_=None if row.place else "unranked",
    )


def _unit(category: str) -> str:
    return "points" if _measure(category) == "WERD" else "%"


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


def size_text(params_m: float | None) -> str:
    """Millions of parameters."""
    return "–" if params_m is None else f"{params_m:g} M"


def published(language: str) -> Html:
    """The paper's rows, which nobody here has verified."""
    rows = [row for row in paper_rows() if row.language == language]
    rows.sort(key=lambda row: math.inf if row.average is None else row.average)
    if not rows:
        return tag("p", "The paper has no rows in this language.", class_="empty")
    names = [*AVERAGED, *ADVERSARIAL]
    heads = [
        column_head("Model", number=False),
        column_head("Size"),
        column_head("Clean WER", unit="%"),
        column_head("Average NWERD", unit="%", aria_sort="ascending"),
        *(column_head(_breakable(f"{c} {_measure(c)}"), label(c), unit=_unit(c)) for c in names),
    ]

    def cell(value: float | None) -> Html:
        return table_cell(None if value is None else [value])

    body = [
        tag(
            "tr",
            tag("th", row.model, scope="row"),
            tag("td", size_text(row.params_m), data_sort=row.params_m or ""),
            cell(row.clean),
            cell(row.average),
            [cell(row.cells[name]) for name in names],
        )
        for row in rows
    ]
    lead = (
        "Table 1 of Speech Robust Bench (Shah et al.), measured by its authors on their own data. The paper gives no "
        "intervals and no numbers of clips. These rows have not been verified and are not directly comparable with the "
        "verified ones."
    )
    return join([tag("p", lead, class_="lead"), sort_table(heads, body, "published")])


def _breakable(name: str) -> Html:
    """A name that may be broken after an underscore, so that its column can be narrow."""
    first, *rest = name.split("_")
    return join([first, *([Html("_<wbr>"), part] for part in rest)])


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


SPEED_LEAD = (
    "RTFx is the number of seconds of speech recognised per second of computing. It was measured on the submitter's "
    "own machine, so it is a rough guide. NWER is in per cent, with its 95 % interval. Fast and robust models are at "
    "the lower right."
)


def speed(models: Sequence[Row], language: str) -> Html | None:
    """How fast models are beside how robust they are: a chart, and its numbers."""
    timed = [(row, 1 / row.entry.content.rtf, row.score) for row in models if row.entry.content.rtf and row.score]
    if len(timed) < 2:
        return None
    series = [
        Series(
            index,
            [Point(rtfx, score[0], f"{row.entry.name}: {rtfx:.1f} x, NWER {score_text(score)}", score[1:] or None)],
        )
        for index, (row, rtfx, score) in enumerate(timed)
    ]
    chart = scatter(series, Axes("RTFx, seconds of speech per second", "NWER, %", log_x=True), "speed against NWER")
    heads = [
        column_head("Model", number=False),
        column_head("RTFx"),
        column_head("NWER", unit="%"),
        column_head("Clips"),
    ]
    body = [
        tag(
            "tr",
            tag("th", tag("span", legend_mark(index), class_=f"s{index % 7}"), " ", model_link(row.entry), scope="row"),
            table_cell([rtfx]),
            table_cell(score, n=units_text(row.entry, language, "overall"), spread=True),
            tag("td", f"{row.entry.clips(language):,}", data_sort=row.entry.clips(language)),
        )
        for index, (row, rtfx, score) in enumerate(timed)
    ]
    return join([tag("h2", f"Language: {language}"), tag("figure", chart, class_="speed"), sort_table(heads, body)])


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
