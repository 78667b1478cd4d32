"""An HTML page as lines of text: sections, headings, tables and the labels of charts, without markup and scripts."""

from __future__ import annotations

from collections import Counter
from html.parser import HTMLParser

SHAPES = ("circle", "line", "path", "polygon", "polyline", "rect")
BLOCKS = ("div", "h1", "h2", "h3", "h4", "li", "main", "nav", "option", "p", "pre", "section", "summary", "table", "tr")
# Elements of a chart whose text is a label of its own.
LABELS = ("text", "title", "tspan")
IGNORED = ("script", "style")


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self._words: list[str] = []
        self._labels: list[str] = []
        self._shapes: Counter[str] | None = None
        self._ignored = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in IGNORED:
            self._ignored += 1
        elif tag == "svg":
            self._shapes, self._labels = Counter(), []
        elif self._shapes is not None:
            self._shapes[tag] += tag in SHAPES
            self._labels += [" /"] if tag in LABELS else []
        elif tag in ("td", "th"):
            self._words.append(" |")
        elif tag in BLOCKS:
            self.flush()
        if tag == "section":
            self.lines.append(f"== {dict(attrs).get('id')} ==")

    def handle_endtag(self, tag: str) -> None:
        if tag in IGNORED:
            self._ignored -= 1
        elif tag == "svg":
            self._end_chart()
        elif tag in BLOCKS and self._shapes is None:
            self.flush()

    def handle_data(self, data: str) -> None:
        if not self._ignored:
            (self._words if self._shapes is None else self._labels).append(data)

    def _end_chart(self) -> None:
        shapes, self._shapes = self._shapes or Counter(), None
        labels = " ".join("".join(self._labels).split())
        if labels.strip("/ "):  # the mark of a model in a legend has none
            self.flush()
            counts = ", ".join(f"{count} {shape}" for shape, count in sorted(shapes.items()) if count)
            self.lines.append(f"chart of {counts}:{labels}")

    def flush(self) -> None:
        line = " ".join(" ".join(self._words).split())
        if line:
            self.lines.append(line)
        self._words = []


def page_text(html: str) -> str:
    """The text of a page, a block or a table row to a line; a chart is one line with its shapes counted."""
    page = _Page()
    page.feed(html)
    page.flush()
    return "\n".join(page.lines) + "\n"
