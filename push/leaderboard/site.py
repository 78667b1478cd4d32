"""The leaderboard as a static site: files that any web server serves, with no program behind them.

The ranking of each language is in the page itself; a small script sorts, filters and averages chosen categories in the
browser, and compares models from their bootstrap replicates (`data/<model>.json`). There is nothing to upload to and
nothing that visitors can keep busy. `export` writes the site as a static Space; the server has the files in memory and
answers only GET and HEAD.
"""

from __future__ import annotations

import gzip
import mimetypes
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import unquote, urlsplit

import msgspec
import numpy as np

from speech_robust_bench.core.categories import label
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.files import replacing_folder
from speech_robust_bench.push.leaderboard import board as boards
from speech_robust_bench.push.leaderboard import model_page, pages
from speech_robust_bench.push.leaderboard.board import Board, Entry, Row
from speech_robust_bench.report.html import Html, join, tag
from speech_robust_bench.scoring.ranking import RULE, SENTENCE
from speech_robust_bench.scoring.verdict_guard import CLEAN_CEILING, EMPTY_CEILING

FOLDER = Path(__file__).parent
MODELS_PER_CHART = 50
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
    "How well does a speech recogniser work in adverse conditions? Models are ranked by <b>NWER</b>: the word error "
    "rate divided by the difficulty of the scenario. <b>NWERD</b>, the paper's metric, subtracts the errors on clean "
    "speech first; it does not decide the rank, because making more errors on clean speech would improve it. Lower is "
    "better. Every verified score was recomputed from the submitted predictions."
)
ABOUT = f"""
<h2>Submit a model</h2>
<ol>
<li><code>srb run --model MODEL 'en_*' --data ORG/srb</code> stores the model's transcripts;
<code>srb score runs/MODEL</code> scores them.</li>
<li><code>srb submit runs/MODEL --to ORG/RESULTS --data ORG/srb</code> checks the run and opens a pull request
with predictions, results and hashes.</li>
<li><code>srb verify</code> recomputes every score. A submission whose scores differ is refused, with the lines that
differ.</li>
</ol>
<h2>What the numbers mean</h2>
<p><b>WER</b> is the word error rate in per cent. <b>WERD</b> is what a scenario adds to it, in points. <b>NWERD</b>
divides that by the scenario's difficulty, which comes from two models of how people judge speech quality; <b>NWER</b>
divides the WER itself. The average is over the paper's nine categories, the median over their configs. Intervals are
95 % intervals over speakers, or over clips where speakers are not known. Attacks are shown as WERD and are in no
average.</p>
<h2>Who is ranked</h2>
<p>{SENTENCE} A tie goes to the lower WER on clean speech ({RULE}). More errors, on clean speech too, can therefore
never improve a rank. NWERD, the paper's metric, is shown beside it. A model is not ranked, but listed last with the
reason, if its WER on clean speech is above {CLEAN_CEILING:g} %, if it leaves more than {EMPTY_CEILING:.0%} of the
clean clips empty, if it lacks a config that the others have, or if its predictions were flagged.</p>
<h2>What was checked</h2>
<p><b>reproduces</b>: every score follows from the submitted predictions. <b>rerun</b>: the maintainers loaded the
model at its revision, transcribed a sample of clips that was drawn after the submission, and its
transcripts agreed.</p>
"""
PRIVATE = """
<p class="lead">Models that the maintainers ran on data that nobody else has: the public scenarios, with random draws
and slightly changed clips that depend on a secret. Results of an edition are ranked only among themselves, because
noises, rooms and levels differ from the public data. A model that does much worse here than on the public board may
have seen the public data.</p>
"""


def files(board: Board, further: Mapping[str, str] = {}) -> dict[str, bytes]:
    """Every file of the site: path -> content. `further` are tabs for pages that somebody else serves."""
    contents: dict[str, tuple[str, Html]] = {
        "about.html": ("About", Html(ABOUT)),
        "published.html": ("As published", _published()),
        "compare.html": ("Compare", _compare(board)),
    }
    public = board.edition("")
    for language in public.languages:
        contents |= _numbered(language_page(public, language), "Verified", _ranking(public, language))
    contents |= _numbered("private.html", "Private", _private(board))
    for name, page in pages.board_pages().items():
        contents |= _numbered(f"{name}.html", page.title, _by_models(public, page.draw, Html(page.lead)))
    contents |= _numbered(
        "speed.html", "Speed", _by_models(public, pages.speed, tag("p", pages.SPEED_LEAD, class_="lead"))
    )
    contents |= _numbered("attacks.html", "Under attack", _by_models(public, pages.attacks))
    tabs = {**_tabs(board, contents), **further}
    site: dict[str, str | bytes] = {
        name: (FOLDER / name).read_bytes() for name in ("style.css", "script.js", "icon.svg")
    }
    site |= {path: _page(title, content, tabs, path) for path, (title, content) in contents.items()}
    for entry in board.entries:
        site[pages.model_page(entry)] = _page(entry.name, _model(entry), tabs, "", depth=1)
        site[f"data/{entry.stem}.json"] = _data(entry)
    return {path: content.encode() if isinstance(content, str) else content for path, content in site.items()}


def language_page(board: Board, language: str) -> str:
    """The page of a language's ranking; the first language's is the front page."""
    return "index.html" if language == board.languages[0] else f"ranking-{language}.html"


def _numbered(path: str, title: str, parts: Sequence[Html]) -> dict[str, tuple[str, Html]]:
    """A page for each part, `path` being the first, with links from each to all."""
    stem = path.removesuffix(".html")
    paths = [path if number == 1 else f"{stem}-{number}.html" for number in range(1, len(parts) + 1)]
    made = {}
    for own, part in zip(paths, parts, strict=True):
        links = [tag("a", n, href=to, aria_current="page" if to == own else None) for n, to in enumerate(paths, 1)]
        made[own] = title, join([part, tag("nav", "Pages ", links, class_="pages") if len(paths) > 1 else None])
    return made


def _by_models(board: Board, draw: Callable[[Sequence[Row], str], Html | None], lead: Html | None = None) -> list[Html]:
    """What some models of each language have, as few models to a page as keep it small."""
    groups: list[list[Html]] = []
    for language in board.languages:
        for rows in batched(board.rows(language), MODELS_PER_CHART):
            part = draw(rows, language)
            if part and (not groups or sum(map(len, groups[-1])) + len(part) > pages.MOST_TABLE_BYTES):
                groups.append([])
            if part:
                groups[-1].append(part)
    return [join([lead, *parts]) for parts in groups]


def batched(rows: Iterable[Row], size: int) -> Iterator[list[Row]]:
    """The rows in lists of at most that size."""
    waiting = iter(rows)
    while part := list(islice(waiting, size)):
        yield part


def _tabs(board: Board, contents: Mapping[str, tuple[str, Html]]) -> dict[str, str]:
    """The pages that every page links to."""
    public = board.edition("")
    tabs = {language_page(public, language): f"Verified ({language})" for language in public.languages}
    if board.private_editions:
        tabs["private.html"] = "Private"
    filled = (f"{name}.html" for name in ("speed", *pages.board_pages(), "attacks"))
    tabs |= {path: contents[path][0] for path in filled if path in contents}
    return tabs | {"compare.html": "Compare", "published.html": "As published", "about.html": "About"}


def _page(title: str, content: Html, tabs: Mapping[str, str], active: str, depth: int = 0) -> str:
    up = "../" * depth
    links = [
        tag("a", text, href=up + path, aria_current="page" if path == active else None) for path, text in tabs.items()
    ]
    head = [
        tag("meta", charset="utf-8"),
        tag("meta", name_="viewport", content="width=device-width, initial-scale=1"),
        tag("title", f"{title} - {TITLE} leaderboard"),
        Html(f'<link rel="icon" href="{up}icon.svg">'),
        Html(f'<link rel="stylesheet" href="{up}style.css">'),
        Html(f'<script src="{up}script.js" defer></script>'),
    ]
    body = [tag("h1", TITLE), tag("p", Html(LEAD)), tag("nav", links), tag("main", content)]
    return f'<!doctype html>\n<html lang="en">{tag("head", head)}{tag("body", body, class_="srb")}</html>\n'


def _ranking(board: Board, language: str) -> list[Html]:
    """The ranking in parts that are small enough for a page each."""
    legend = tag("p", pages.RANKING_NOTE, class_="lead")
    notes = [legend, pages.material(board, language), pages.problems(board)]
    filters = _filters(board, language)
    return [join([filters, table, *notes]) for table in pages.ranking(board.rows(language), language)]


def _private(board: Board) -> list[Html]:
    """A ranking for each private edition and language, beside which no other results stand."""
    parts = []
    for name in board.private_editions:
        private = board.edition(name)
        for language in private.languages:
            head, note = tag("h2", f"{name}, language: {language}"), pages.material(private, language)
            parts += [
                join([Html(PRIVATE), head, table, note]) for table in pages.ranking(private.rows(language), language)
            ]
    return parts


def _filters(board: Board, language: str) -> Html:
    """Read by the script: what it cannot do without one, it does not show."""
    boxes = [
        tag("label", tag("input", type="checkbox", name_="category", value=category), category, title=label(category))
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
    return join([tag("h2", entry.name), *(model_page.model(entry, language) for language in entry.content.languages)])


def _compare(board: Board) -> Html:
    options = [
        tag("option", f"{entry.name} {entry.edition}".strip(), value=entry.stem)
        for entry in sorted(board.entries, key=lambda entry: (entry.name, entry.edition))
    ]
    names = [
        _compared_as(language, name)
        for name in ("", *board.private_editions)
        for language in board.edition(name).languages
    ]
    languages = [tag("option", name, value=name) for name in names]
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
        units = boards.paired_units(entry, language, name)
        if value is not None:
            rows[f"{_compared_as(language, entry.edition)}/{name}/{measure}"] = {
                "label": "Average" if name == "overall" else name,
                "value": value,
                "draws": _hundredths(draws),
                "units": units[1],
                "of": units[0],
                "why": boards.no_verdict(entry, language, units[1]),
            }
    return msgspec.json.encode({"name": entry.name, "rows": rows}).decode()


def _compared_as(language: str, edition: str) -> str:
    """What the comparison calls a language: only rows of one edition are compared."""
    return f"{language} {edition}" if edition else language


def _hundredths(draws: np.ndarray) -> list[int]:
    return np.rint(draws.astype(float) * 100).astype(int).tolist()


def export(results: str | Path, out: str | Path) -> Path:
    """Write the site into a new folder, with the card that makes it a static Space."""
    out = Path(out)
    if out.exists():
        raise UserError(f"{out}: is there already; name a new folder")
    with replacing_folder(out) as part:
        write({**files(boards.load(results)), "README.md": README.encode()}, part)
    return out


def write(content: Mapping[str, bytes], folder: Path) -> None:
    """Write the files of a site."""
    for path, data in content.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)


PORTS = range(7860, 7960)
MOST_THREADS = 128
POLICY = "default-src 'self'; style-src 'self' 'unsafe-inline'; base-uri 'none'; form-action 'none'"


class Handler(BaseHTTPRequestHandler):
    """Answers from `files`: path -> content."""

    protocol_version = "HTTP/1.1"
    timeout = 10  # seconds of a client that says nothing, or takes nothing
    files: ClassVar[dict[str, bytes]] = {}

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def _answer(self, with_body: bool) -> None:
        path = unquote(urlsplit(self.path).path).lstrip("/") or "index.html"
        if path not in self.files:
            self.send_error(HTTPStatus.NOT_FOUND)
            return
        compressed = "gzip" in self.headers.get("Accept-Encoding", "")
        body = _packed(self.files[path]) if compressed else self.files[path]
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", _kind(path))
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Security-Policy", POLICY)
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Cache-Control", "max-age=60")
        if compressed:
            self.send_header("Content-Encoding", "gzip")
        self.end_headers()
        if with_body:
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Says nothing: addresses of visitors are nobody's business."""


class Server(ThreadingHTTPServer):
    """Takes many visitors at once, each in a thread; further ones wait in the system's queue."""

    request_queue_size = 1024
    daemon_threads = True

    def __init__(self, address: tuple[str, int], handler: type[Handler]) -> None:
        self._free = threading.Semaphore(MOST_THREADS)
        super().__init__(address, handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        self._free.acquire()
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A visitor who leaves in the middle is no error."""
        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            super().handle_error(request, client_address)


def make(results: str | Path, host: str = "127.0.0.1", port: int | None = None) -> Server:
    """A server of the leaderboard, bound to its address; `serve_forever` starts it."""
    handler = type("BoardHandler", (Handler,), {"files": dict(files(boards.load(results)))})
    for number in [port] if port is not None else PORTS:
        try:
            return Server((host, number), handler)
        except OSError as error:
            reason = error
    raise UserError(f"cannot listen on {host}, port {port or f'{PORTS[0]} to {PORTS[-1]}'}: {reason.strerror}")


@lru_cache(maxsize=512)
def _packed(content: bytes) -> bytes:
    return gzip.compress(content, mtime=0)


def _kind(path: str) -> str:
    kind = mimetypes.guess_type(path)[0] or "application/octet-stream"
    return f"{kind}; charset=utf-8" if kind.startswith("text/") or kind.endswith("javascript") else kind
