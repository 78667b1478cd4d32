"""The leaderboard as a Gradio app: filters, a page per model, comparisons. What it shows is in `board` and `views`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gradio as gr
from starlette.middleware import Middleware

from srb.builders.errors import UserError
from srb.push.leaderboard import board as boards
from srb.push.leaderboard import early, views
from srb.report.html import Html, tag

FOLDER = Path(__file__).parent
# In the head, because Gradio lets the style sheet reach only what is inside of this.
PHONE = "@media (max-width: 640px) { .gradio-container .main { padding: 10px !important; } }"
TITLE = "Speech Robust Bench"
LEAD = (
    "How much accuracy does a speech recogniser lose when the world is not clean? <b>NWERD</b> is the word error rate "
    "lost against clean speech over how hard the scenario is; lower is more robust. Every verified score was computed "
    "again from the submitted predictions."
)
HEADER = f'<div class="srb"><h1>{TITLE}</h1><p>{LEAD}</p></div>'
# HTML and not Markdown, whose component is a third of what the browser would have to load.
ABOUT = """
<h3>Submit a model</h3>
<ol>
<li><code>srb run --model MODEL --data ORG/srb</code>, which keeps what the model heard, then
<code>srb score runs/MODEL</code>.</li>
<li><code>srb submit runs/MODEL --to ORG/RESULTS</code> checks the run and opens a pull request: predictions, results,
hashes.</li>
<li><code>srb verify</code> computes every score again. What does not reproduce is refused, with the lines that
differ.</li>
</ol>
<h3>What the numbers mean</h3>
<p><b>WER</b> is the word error rate in per cent. <b>WERD</b> is what a scenario adds to it. <b>NWERD</b> divides that
by the scenario's difficulty, which comes from two models of how people judge speech quality. The average is over the
paper's nine categories. Intervals are 95 % bootstrap intervals over clips. Attacks are shown as WERD and are in no
average.</p>
"""


def _framed(content: Html) -> str:
    return tag("div", content, class_="srb")


def make(board: boards.Board) -> Any:
    """The app over verified results."""
    languages = board.languages
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

    def arrive(request: gr.Request) -> tuple[Any, Any, Any]:
        """`?model=NAME` opens that model's page."""
        asked = request.query_params.get("model")
        if asked not in {entry.name for entry in board.entries}:
            return gr.skip(), gr.skip(), gr.skip()
        return gr.update(selected="model"), asked, show_model(asked, first)

    with gr.Blocks(title=f"{TITLE} leaderboard", analytics_enabled=False) as app:
        gr.HTML(HEADER, padding=False)
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
            with gr.Tab("Model", id="model") as model_tab:
                which = gr.Dropdown(names, value=names[0] if names else None, label="Model")
                page = gr.HTML(padding=False)
            with gr.Tab("Compare", id="compare") as compare_tab:
                chosen = gr.Dropdown(names, value=names[:2], multiselect=True, label="Two or more models (six at most)")
                pairs = gr.HTML(padding=False)
            with gr.Tab("As published", id="published"):
                paper = gr.HTML(_framed(views.published(first)), padding=False)
            with gr.Tab("About", id="about"):
                gr.HTML(_framed(Html(ABOUT)), padding=False)
        filters: list[Any] = [language, category, size, text]
        for one in filters:
            one.change(rank, filters, table, show_progress="hidden")
        language.change(choose_language, language, [category, which, chosen, paper], show_progress="hidden")
        # A page is drawn when somebody looks at it: the first one is there sooner.
        for event in (which.change, model_tab.select):
            event(show_model, [which, language], page, show_progress="hidden")
        for event in (chosen.change, compare_tab.select):
            event(contrast, [chosen, language], pairs, show_progress="hidden")
        app.load(arrive, None, [tabs, which, page], show_progress="hidden")
    return app


def launch(folder: str | Path, **how: Any) -> Any:
    """Serve the app."""
    board = boards.load(folder)
    css = (FOLDER / "style.css").read_text("utf-8")
    head = f"<style>{PHONE}</style><script>{(FOLDER / 'script.js').read_text('utf-8')}</script>"
    first = early.fragment(css, HEADER, _framed(views.ranking(board.rows(board.languages[0]))))
    middleware = [Middleware(early.Early, html=first)]
    fonts = ("system-ui", "sans-serif"), ("ui-monospace", "monospace")  # none to fetch
    theme = gr.themes.Default(font=fonts[0], font_mono=fonts[1])
    return make(board).launch(css=css, head=head, theme=theme, app_kwargs={"middleware": middleware}, **how)
