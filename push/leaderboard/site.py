"""The leaderboard as a static site: files that any web server serves, with no program behind them.

The ranking of each language is in the page itself; a small script sorts, filters and averages chosen categories in the
browser, and compares models from their bootstrap replicates (`data/<model>.json`). There is nothing to upload to and
nothing to keep busy, whoever comes. `export` writes the site as a static Space.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from speech_robust_bench.core.categories import label
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.files import write_atomically
from speech_robust_bench.push.leaderboard import board as boards
from speech_robust_bench.push.leaderboard import pages
from speech_robust_bench.push.leaderboard.board import Board, Entry
from speech_robust_bench.report.html import Html, join, tag
from speech_robust_bench.scoring.ranking import CLEAN_CEILING, EMPTY_CEILING, RULE, SENTENCE

FOLDER = Path(__file__).parent
TITLE = "Speech Robust Bench"
README = """---
title: Speech Robust Bench
emoji: 👂
colorFrom: blue
colorTo: red
sdk: static
app_file: index.html
pinned: false
---

The leaderboard of Speech Robust Bench. Built from verified results alone.
"""
LEAD = (
    "How well does a speech recogniser work when the world is not clean? <b>NWER</b>, which ranks, is the word error "
    "rate over how hard the scenario is; <b>NWERD</b> is the part of it that clean speech does not have. Lower is "
    "better. Every verified score was computed again from the submitted predictions."
)
ABOUT = f"""
<h2>Submit a model</h2>
<ol>
<li><code>srb run --model MODEL 'en_*' --data ORG/srb</code> keeps the model's transcripts, then
<code>srb score runs/MODEL</code>.</li>
<li><code>srb submit runs/MODEL --to ORG/RESULTS --data ORG/srb</code> checks the run and opens a pull request:
predictions, results, hashes.</li>
<li><code>srb verify</code> computes every score again. What does not reproduce is refused, with the lines that
differ.</li>
</ol>
<h2>What the numbers mean</h2>
<p><b>WER</b> is the word error rate in per cent. <b>WERD</b> is what a scenario adds to it, in points. <b>NWERD</b>
divides that by the scenario's difficulty, which comes from two models of how people judge speech quality; <b>NWER</b>
divides the WER itself. The average is over the paper's nine categories, the median over their configs. Intervals are
95 % bootstrap intervals over clips. Attacks are shown as WERD and are in no average.</p>
<h2>Who is ranked</h2>
<p>{SENTENCE} A tie goes to the lower WER on clean speech ({RULE}). So no error anywhere improves a place. NWERD is the
paper's metric; errors on clean speech lower it, so it is shown and ranks nobody. Not ranked, and listed last with the
reason, is a model whose WER on clean speech is above {CLEAN_CEILING:g}, that leaves more than {EMPTY_CEILING:.0%} of
the clean clips empty, that lacks a config that the others have, or whose predictions were flagged.</p>
<h2>What was checked</h2>
<p><b>reproduces</b>: every score follows from the predictions that were sent. <b>rerun</b>: the maintainers loaded the
model at its revision, transcribed clips that were drawn afterwards, and got the same words.</p>
"""
LIVE = """
<p class="lead">Recognisers that were sent every clip chunk by chunk, as it would arrive. Latency and stability follow
from the events that were sent in, and were computed again; how quick the machine was is as submitted.</p>
"""


def files(board: Board) -> dict[str, bytes]:
    """Every file of the site: path -> content."""
    site: dict[str, str | bytes] = {
        "style.css": (FOLDER / "style.css").read_bytes(),
        "script.js": (FOLDER / "script.js").read_bytes(),
        "about.html": _page("About", Html(ABOUT), board, "about.html"),
        "published.html": _page("As published", _published(), board, "published.html"),
        "compare.html": _page("Compare", _compare(board), board, "compare.html"),
    }
    for language in board.languages:
        path = language_page(board, language)
        site[path] = _page("Verified", _ranking(board, language), board, path)
    if streamed := [part for language in board.languages if (part := pages.streaming(board, language))]:
        site["streaming.html"] = _page("Used live", join([Html(LIVE), *streamed]), board, "streaming.html")
    if attacked := [part for language in board.languages if (part := pages.attacks(board, language))]:
        site["attacks.html"] = _page("Under attack", join(attacked), board, "attacks.html")
    for entry in board.entries:
        site[pages.model_page(entry)] = _page(entry.name, _model(entry), board, "", depth=1)
        site[f"data/{entry.stem}.json"] = _data(entry)
    return {path: content.encode() if isinstance(content, str) else content for path, content in site.items()}


def language_page(board: Board, language: str) -> str:
    """The page of a language's ranking; the first language's is the front page."""
    return "index.html" if language == board.languages[0] else f"ranking-{language}.html"


def _page(title: str, content: Html, board: Board, active: str, depth: int = 0) -> str:
    up = "../" * depth
    tabs = {**{language_page(board, language): f"Verified ({language})" for language in board.languages}}
    if any(entry.live for entry in board.entries):
        tabs["streaming.html"] = "Used live"
    if any(entry.attacks(language) for entry in board.entries for language in board.languages):
        tabs["attacks.html"] = "Under attack"
    tabs |= {"compare.html": "Compare", "published.html": "As published", "about.html": "About"}
    links = [
        tag("a", text, href=up + path, aria_current="page" if path == active else None) for path, text in tabs.items()
    ]
    head = [
        tag("meta", charset="utf-8"),
        tag("meta", name_="viewport", content="width=device-width, initial-scale=1"),
        tag("title", f"{title} - {TITLE} leaderboard"),
        Html(f'<link rel="stylesheet" href="{up}style.css">'),
        Html(f'<script src="{up}script.js" defer></script>'),
    ]
    body = [tag("h1", TITLE), tag("p", Html(LEAD)), tag("nav", links), tag("main", content)]
    return f'<!doctype html>\n<html lang="en">{tag("head", head)}{tag("body", body, class_="srb")}</html>\n'


def _ranking(board: Board, language: str) -> Html:
    rows = board.rows(language)
    return join(
        [_filters(board, language), pages.ranking(rows), pages.material(board, language), pages.problems(board)]
    )


def _filters(board: Board, language: str) -> Html:
    """Read by the script: what it cannot do without one, it does not show."""
    boxes = [
        tag("label", tag("input", type="checkbox", name_="category", value=category), label(category))
        for category in board.categories(language)
    ]
    sizes = [
        tag("option", name, value=f"{low:g} {high:g}" if name != "all" else "")
        for name, (low, high) in boards.SIZES.items()
    ]
    return tag(
        "form",
        tag("label", "Find a model ", Html('<input type="search" name="find" autocomplete="off">')),
        tag("label", "Size ", tag("select", sizes, name_="size")),
        tag("details", tag("summary", "Rank by chosen categories"), tag("div", boxes, class_="boxes")),
        class_="filters",
        hidden="",
    )


def _model(entry: Entry) -> Html:
    return join([tag("h2", entry.name), *(pages.model(entry, language) for language in entry.content["languages"])])


def _compare(board: Board) -> Html:
    options = [tag("option", entry.name, value=entry.stem) for entry in sorted(board.entries, key=lambda e: e.name)]
    languages = [tag("option", language, value=language) for language in board.languages]
    return tag(
        "form",
        tag("label", "Language ", tag("select", languages, name_="language")),
        tag("label", "Two to six models ", tag("select", options, name_="models", multiple="", size=8)),
        tag("div", tag("p", "Choose two or more models.", class_="empty"), id="pairs"),
        class_="compare",
    )


def _published() -> Html:
    languages = sorted({row.language for row in boards.published()})
    return join([join([tag("h2", language), pages.published(language)]) for language in languages])


def _data(entry: Entry) -> str:
    """What the comparison needs of a model: each row's value and its bootstrap replicates, in hundredths."""
    rows = {}
    for key, draws in entry.draws.items():
        language, name, measure = key.split("/")
        value = boards.row_value(entry, language, name, measure)
        if value is not None:
            rows[key] = {
                "label": "Average" if name == "overall" else label(name),
                "value": value,
                "draws": _hundredths(draws),
            }
    return json.dumps({"name": entry.name, "rows": rows}, separators=(",", ":"))


def _hundredths(draws: np.ndarray) -> list[int]:
    return np.rint(draws.astype(float) * 100).astype(int).tolist()


def export(results: str | Path, out: str | Path) -> Path:
    """Write the site into a new folder, with the card that makes it a static Space."""
    out = Path(out)
    if out.exists():
        raise UserError(f"{out}: is there already; name a new folder")
    for path, content in {**files(boards.load(results)), "README.md": README.encode()}.items():
        place = out / path
        place.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(place, content)
    return out
