"""Hooks of the site's build (`hooks:` in mkdocs.yml): adds the pages that are not written below `docs/`.

These are the generated reference, the notebook with its stored outputs, and the repository's own pages (contributing,
measurements, results, changelog). A link from a page to a file of the repository that is not on the site loses its
target and keeps its text; a link to a file that does not exist fails the strict build.
"""

from __future__ import annotations

import html
import json
import logging
import posixpath
import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

sys.path.insert(0, str(Path(__file__).parent))
import reference

ROOT = Path(__file__).parents[2]
LOG = logging.getLogger("mkdocs.hooks.site")
NOTEBOOK = "tutorials/tour.ipynb"
# file of the repository -> its page on the site
REPOSITORY_PAGES = {
    "CONTRIBUTING.md": "project/contributing.md",
    "CHANGELOG.md": "project/changelog.md",
    "benchmarks/README.md": "project/measurements.md",
    "results/README.md": "project/results.md",
}
_LINK = re.compile(r"(\]\()(?!https?:|mailto:|#)([^)#\s]+)(#[^)\s]*)?\)")
_SRCDOC = re.compile(r'srcdoc="[^"]*"')
_FENCED = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages, and their place in the navigation."""
    generated = reference.pages()
    notebook = Path(config.docs_dir, NOTEBOOK)
    texts = {
        **generated,
        **{page: (ROOT / path).read_text("utf-8") for path, page in REPOSITORY_PAGES.items()},
        NOTEBOOK.replace(".ipynb", ".md"): notebook_page(json.loads(notebook.read_text("utf-8"))),
    }
    for path, text in texts.items():
        files.append(File.generated(config, path, content=text))
    *parts, project = config.nav or []
    config.nav = [*parts, {"Reference": _navigation(generated)}, project]
    return files


def on_page_markdown(markdown: str, *, page: Any, config: MkDocsConfig, files: Files) -> str:
    """Point links at pages of the site."""
    origin = next((path for path, name in REPOSITORY_PAGES.items() if name == page.file.src_uri), None)
    where = origin or f"docs/{page.file.src_uri}"
    parts = _FENCED.split(markdown)
    for place in range(0, len(parts), 2):  # between code blocks
        parts[place] = _relinked(parts[place], where, page.file.src_uri)
    return "".join(parts)


def _relinked(text: str, where: str, source: str) -> str:
    """The text with every link that leaves `docs/` pointing at a page of the site, or at nothing."""

    def replaced(match: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(where), match[2]))
        if target.startswith("docs/"):
            page = target.removeprefix("docs/")
        elif target in REPOSITORY_PAGES:
            page = REPOSITORY_PAGES[target]
        else:
            if not (ROOT / target).exists():
                LOG.warning(f"{where}: the link to {match[2]} leads nowhere")
            return "]()"
        return f"{match[1]}{posixpath.relpath(page, posixpath.dirname(source))}{match[3] or ''})"

    return re.sub(r"\[((?:[^\[\]]|\[[^\]]*\])*)\]\(\)", r"\1", _LINK.sub(replaced, text))


def _navigation(pages: dict[str, str]) -> list[Any]:
    """Pages by their first heading; those in a folder stand below the page of the folder's name."""
    below: dict[str, list[Any]] = {}
    for path, text in pages.items():
        title = re.search(r"^# `?(.*?)`?$", text, re.MULTILINE)
        entry = {title[1] if title else path: path}
        folder = posixpath.dirname(path)
        below.setdefault("" if folder == "reference" else f"{folder}.md", []).append(entry)
    nav: list[Any] = ["reference/index.md"]
    for entry in below[""]:
        (title, path), *_ = entry.items()
        nav.append({title: [path, *below[path]]} if path in below else entry)
    return nav


# --- the notebook ----------------------------------------------------------------------------------------------------


def notebook_page(notebook: dict[str, Any]) -> str:
    """The notebook as a page: its text, its code, and the outputs that are stored with it."""
    parts = []
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
            continue
        parts.append(f"```python\n{source}\n```")
        parts += [_output(output) for output in cell["outputs"]]
    return "\n\n".join(parts) + "\n"


def _output(output: dict[str, Any]) -> str:
    data = output.get("data", {})
    if "text/html" in data:
        # Markdown would take blank lines for the end of the HTML. A page in an attribute keeps its lines: its script is
        # run only as it was hashed.
        rendered = _SRCDOC.sub(lambda match: match[0].replace("\n", "&#10;"), "".join(data["text/html"]))
        return f'<div class="notebook-output">{re.sub(chr(10) + "+", " ", rendered)}</div>'
    if "text/markdown" in data:
        return "".join(data["text/markdown"])
    text = "".join(output.get("text") or data.get("text/plain", ""))
    return f'<pre class="notebook-output" style="overflow-x: auto">{html.escape(text)}</pre>'
