"""The leaderboard as a Gradio app: filters, a page per model, comparisons. What it shows is in `board` and `views`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gradio as gr

from srb.builders.errors import UserError
from srb.push.leaderboard import board as boards
from srb.push.leaderboard import views
from srb.report.html import Html, tag

FOLDER = Path(__file__).parent
TITLE = "Speech Robust Bench"
LEAD = (
    "How much accuracy does a speech recogniser lose when the world is not clean? **NWERD** is the word error rate "
    "lost against clean speech over how hard the scenario is; lower is more robust. Every verified score was computed "
    "again from the submitted predictions."
)
ABOUT = """
### Submit a model
1. `srb run --model MODEL --data ORG/srb`, which keeps what the model heard, then `srb score runs/MODEL`.
2. `srb submit runs/MODEL --to ORG/RESULTS` checks the run and opens a pull request: predictions, results, hashes.
3. `srb verify` computes every score again. What does not reproduce is refused, with the lines that differ.

### What the numbers mean
**WER** is the word error rate in per cent. **WERD** is what a scenario adds to it. **NWERD** divides that by the
scenario's difficulty, which comes from two models of how people judge speech quality. The average is over the paper's
nine categories. Intervals are 95 % bootstrap intervals over clips. Attacks are shown as WERD and are in no average.
"""


def _framed(content: Html) -> str:
    return tag("div", content, class_="srb")


def make(folder: str | Path) -> Any:
    """The app over a folder of verified results."""
    board = boards.load(folder)
    languages = board.languages or ["en"]
    first = languages[0]
    names = [row.entry.name for row in board.rows(first)]

    def rank(language: str, categories: list[str], size: str, text: str) -> str:
        return _framed(views.ranking(board.rows(language, categories, size, text or ""), categories))

    def choose_language(language: str) -> tuple[Any, Any, Any, str]:
        known = [row.entry.name for row in board.rows(language)]
        choices = [(boards.title(c), c) for c in board.categories(language)]
        return (
            gr.update(choices=choices, value=[]),
            gr.update(choices=known, value=known[0] if known else None),
            gr.update(choices=known, value=known[:2]),
            _framed(views.published(language)),
        )

    def show_model(name: str | None, language: str) -> str:
        try:
            return _framed(views.model(board.find(name or ""), language))
        except UserError as problem:
            return _framed(tag("p", str(problem), class_="empty"))

    def contrast(chosen: list[str], language: str) -> str:
        try:
            entries = [board.find(name) for name in chosen[:6]]
            return _framed(views.comparison(boards.compare(entries, language)))
        except UserError as problem:
            return _framed(tag("p", str(problem), class_="empty"))

    def arrive(request: gr.Request) -> tuple[Any, Any, str, str]:
        """What is drawn after the first page is there; `?model=NAME` opens that model's page."""
        asked = request.query_params.get("model")
        known = asked in {entry.name for entry in board.entries}
        shown = asked if known else names[0] if names else None
        tab = gr.update(selected="model") if known else gr.update()
        return tab, gr.update(value=shown), show_model(shown, first), contrast(names[:2], first)

    with gr.Blocks(title=f"{TITLE} leaderboard", analytics_enabled=False) as app:
        gr.Markdown(f"# {TITLE}\n{LEAD}")
        with gr.Row():
            language = gr.Dropdown(languages, value=first, label="Language", scale=1, min_width=110)
            category = gr.Dropdown(
                [(boards.title(c), c) for c in board.categories(first)],
                value=[],
                multiselect=True,
                label="Categories (none: all)",
                scale=3,
                min_width=200,
            )
            size = gr.Dropdown(list(boards.SIZES), value="all", label="Size", scale=1, min_width=130)
            text = gr.Textbox(label="Find a model", scale=1, min_width=130)
        with gr.Tabs() as tabs:
            with gr.Tab("Verified", id="ranking"):
                table = gr.HTML(rank(first, [], "all", ""), padding=False)
                gr.HTML(_framed(views.problems(board)), padding=False)
            with gr.Tab("Model", id="model"):
                which = gr.Dropdown(names, value=names[0] if names else None, label="Model")
                page = gr.HTML(padding=False)
            with gr.Tab("Compare", id="compare"):
                chosen = gr.Dropdown(names, value=names[:2], multiselect=True, label="Two or more models (six at most)")
                pairs = gr.HTML(padding=False)
            with gr.Tab("As published", id="published"):
                paper = gr.HTML(_framed(views.published(first)), padding=False)
            with gr.Tab("About", id="about"):
                gr.Markdown(ABOUT)
        filters: list[Any] = [language, category, size, text]
        for one in filters:
            one.change(rank, filters, table, show_progress="hidden")
        language.change(choose_language, language, [category, which, chosen, paper], show_progress="hidden")
        which.change(show_model, [which, language], page, show_progress="hidden")
        chosen.change(contrast, [chosen, language], pairs, show_progress="hidden")
        app.load(arrive, None, [tabs, which, page, pairs], show_progress="hidden")
    return app


def launch(folder: str | Path, **how: Any) -> Any:
    """Serve the app."""
    app = make(folder)
    head = f"<script>{(FOLDER / 'script.js').read_text('utf-8')}</script>"
    theme = gr.themes.Default(
        font=("system-ui", "sans-serif"), font_mono=("ui-monospace", "monospace")
    )  # none to fetch
    return app.launch(css=(FOLDER / "style.css").read_text("utf-8"), head=head, theme=theme, **how)
