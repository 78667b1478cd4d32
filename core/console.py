"""The console that commands print on: whatever text the data holds, a terminal cannot be steered by it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import rich.console
from rich.console import ConsoleOptions, RenderableType
from rich.errors import MarkupError
from rich.segment import Segment

from speech_robust_bench.core.escape import for_terminal


class Console(rich.console.Console):
    """Rich's console, but every character of a text goes through `for_terminal`, in the cells of tables too."""

    def print(self, *objects: Any, **how: Any) -> None:
        cleaned = [_clean(each) if isinstance(each, str) else Cleaned(each) for each in objects]
        try:
            super().print(*cleaned, **how)
        except MarkupError:  # brackets in a name that Rich takes for a tag
            super().print(*cleaned, **{**how, "markup": False})


class Cleaned:
    """Something to print, its text cleaned after it was laid out and before it is written."""

    def __init__(self, renderable: RenderableType) -> None:
        self.renderable = renderable

    def __rich_console__(self, console: rich.console.Console, options: ConsoleOptions) -> Iterator[Segment]:
        for segment in console.render(self.renderable, options):
            yield segment if segment.control else Segment(_clean(segment.text), segment.style)


def _clean(text: str) -> str:
    return "\n".join(map(for_terminal, text.split("\n")))
