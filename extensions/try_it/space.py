"""The page "Try it" as a gradio app, beside the files of the leaderboard, and the Space that serves both.

Uploads are bounded in size, clips in length, work in memory, time and number at once (`visitor_clip`); what visitors
sent and heard is deleted after ten minutes.
"""

from __future__ import annotations

import io
import os
import socket
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from speech_robust_bench.cli.command import Command
from speech_robust_bench.core.audio import RATE
from speech_robust_bench.core.errors import UserError, install_hint
from speech_robust_bench.core.files import replacing_folder
from speech_robust_bench.core.options import Options, option
from speech_robust_bench.extensions.try_it.visitor_clip import MOST_BYTES, MOST_CLIP_S, perturbed, scenarios, start
from speech_robust_bench.push.leaderboard import board, site

if TYPE_CHECKING:
    import gradio
    from fastapi import FastAPI


PATH = "try-it"
TAB = {f"{PATH}/": "Try it"}
AT_ONCE = 2  # clips that are made at the same time
MOST_WAITING = 20
KEPT_S = 600
LEAD = f"""# Try a scenario
Upload or record a clip of speech, then hear it and see it under any scenario of the benchmark. A file can have
{MOST_BYTES // 1_000_000} MB; only its first {MOST_CLIP_S:g} seconds are used. Files are deleted after
{KEPT_S // 60} minutes.
[Back to the leaderboard](/)
"""
SPECTROGRAM = "0 to 8 kHz from bottom to top, 80 dB from black to bright"
README = """---
title: Speech Robust Bench
emoji: 👂
colorFrom: blue
colorTo: red
sdk: gradio
app_file: app.py
pinned: false
---

The leaderboard of Speech Robust Bench, built from verified results alone, and a page to try the scenarios.
"""
APP = '''"""The leaderboard, and beside it the page to try the scenarios."""

from pathlib import Path

from speech_robust_bench.extensions.try_it.space import serve

serve(Path(__file__).parent / "board", host="0.0.0.0", port=7860)
'''
REQUIREMENTS = "speech-robust-bench[push]\n"


def page() -> gradio.Blocks:
    """The page: a clip and a scenario in, sound and spectrogram out."""
    gr = _gradio()
    levels = scenarios()

    def severities(scenario: str) -> Any:
        known = [level for level in levels.get(scenario, ()) if level]
        return gr.update(choices=known, value=known[len(known) // 2] if known else None, visible=bool(known))

    def show(path: str | None, scenario: str, severity: int | None) -> tuple[Any, ...]:
        if not path:
            raise gr.Error("upload or record a clip first", print_exception=False)
        try:
            made = perturbed(path, scenario, severity or 0)
        except UserError as problem:
            raise gr.Error(str(problem), print_exception=False) from None
        return (RATE, made.after), _image(made.before_png), _image(made.after_png), made.told

    with gr.Blocks(
        title="Speech Robust Bench: try a scenario", analytics_enabled=False, delete_cache=(60, KEPT_S)
    ) as made:
        gr.Markdown(LEAD)
        with gr.Row():
            with gr.Column():
                clip = gr.Audio(label="Your clip", sources=["upload", "microphone"], type="filepath")
                scenario = gr.Dropdown(sorted(levels), value="noise", label="Scenario")
                severity = gr.Radio(
                    [level for level in levels["noise"] if level], value=3, label="Severity, from mild to severe"
                )
                button = gr.Button("Hear it", variant="primary", elem_id="hear")
            with gr.Column():
                heard = gr.Audio(label="Under the scenario", interactive=False, elem_id="heard")
                told = gr.Markdown(elem_id="told")
                after = gr.Image(label=f"Under the scenario: {SPECTROGRAM}", type="pil", elem_id="after")
                before = gr.Image(label=f"Before: {SPECTROGRAM}", type="pil", elem_id="before")
        scenario.change(severities, scenario, severity, queue=False, api_visibility="private")
        button.click(show, [clip, scenario, severity], [heard, before, after, told], concurrency_limit=AT_ONCE)
    made.queue(max_size=MOST_WAITING, default_concurrency_limit=AT_ONCE)
    return made


def _image(png: bytes) -> Any:
    from PIL import Image

    return Image.open(io.BytesIO(png))


def _gradio() -> Any:
    os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")
    try:
        import gradio
    except ImportError:
        raise UserError(f"the page needs gradio: {install_hint('push')}") from None
    return gradio


def make_app(files: Path) -> FastAPI:
    """The leaderboard's files at `/`, the page at `/try-it`."""
    gr = _gradio()
    from fastapi import FastAPI
    from fastapi.responses import RedirectResponse
    from fastapi.staticfiles import StaticFiles

    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    # Browsers ask for both because of gradio's page, which is not at the root.
    app.add_api_route("/manifest.json", lambda: {"name": site.TITLE})
    app.add_api_route("/favicon.ico", lambda: RedirectResponse("/icon.svg"))
    app = gr.mount_gradio_app(
        app,
        page(),
        f"/{PATH}",
        max_file_size=MOST_BYTES,
        footer_links=[],
        ssr_mode=False,
    )
    app.mount("/", StaticFiles(directory=files, html=True))
    return app


def serve(files: Path, host: str, port: int, ready: Callable[[str], None] = lambda address: None) -> None:
    """Serve the leaderboard and the page until interrupted."""
    app = make_app(files)
    import uvicorn

    try:
        listening = socket.create_server((host, port))
    except OSError as error:
        raise UserError(f"cannot listen on {host}, port {port}: {error.strerror}") from None
    with listening:
        start()
        ready(f"http://{host}:{listening.getsockname()[1]}/")
        config = uvicorn.Config(app, log_level="error", limit_concurrency=200, timeout_keep_alive=10)
        uvicorn.Server(config).run(sockets=[listening])


def export(results: str | Path, out: str | Path) -> Path:
    """Write the Space into a new folder: the leaderboard's files, the app and its requirements."""
    out = Path(out)
    if out.exists():
        raise UserError(f"{out}: is there already; name a new folder")
    with replacing_folder(out) as part:
        site.write(site.files(board.load(results), TAB), part / "board")
        for name, text in (("README.md", README), ("app.py", APP), ("requirements.txt", REQUIREMENTS)):
            (part / name).write_text(text, encoding="utf-8")
    return out


@dataclass(frozen=True, kw_only=True)
class Arguments(Options):
    results: str = option("verified", "folder of verified results", metavar="FOLDER")
    port: int = option(7860, "port to listen on", metavar="N")
    host: str = option("127.0.0.1", "address to listen on")
    export: str | None = option(None, "write the files of a gradio Space instead", metavar="FOLDER")


def run(args: Arguments) -> None:
    if args.export:
        print(export(args.results, args.export))
        return
    with tempfile.TemporaryDirectory(prefix="srb-") as scratch:
        files = Path(scratch) / "board"
        site.write(site.files(board.load(args.results), TAB), files)
        serve(files, args.host, args.port, lambda address: print(f"{address}  (Ctrl-C ends it)", flush=True))


COMMAND = Command(Arguments, run)
