"""HTML by small functions. Whatever is not `Html` already is escaped, so no transcript can become markup."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable
from functools import cache
from typing import Any

_SPECIAL = re.compile(r"[&<>\"']")
VOID = frozenset({"circle", "line", "path", "rect", "polyline", "br", "meta", "img", "input"})


class Html(str):
    """Text that is markup."""


def tag(name: str, *children: Any, **attributes: Any) -> Html:
    """An element; `class_` is class, `data_x` is data-x, None leaves an attribute out.

    >>> tag("p", "a < b", tag("b", "c"), class_="x")
    '<p class="x">a &lt; b<b>c</b></p>'
    """
    attribute_text = ""
    for key, value in attributes.items():
        if value is not None:
            attribute_text += f' {_attribute(key)}="{_escaped(str(value))}"'
    if name in VOID and not children:
        return Html(f"<{name}{attribute_text}/>")
    return Html(f"<{name}{attribute_text}>{join(children)}</{name}>")


def join(parts: Iterable[Any]) -> Html:
    """Parts one after the other; lists are taken apart, None is nothing."""
    return Html("".join(_text(part) for part in parts))


def _text(part: Any) -> str:
    if part is None:
        return ""
    if isinstance(part, Html):
        return part
    if isinstance(part, (list, tuple)):
        return join(part)
    return _escaped(str(part))


def _escaped(text: str) -> str:
    return html.escape(text) if _SPECIAL.search(text) else text


@cache
def _attribute(key: str) -> str:
    return key.rstrip("_").replace("_", "-")


def table(heads: Iterable[Any], rows: Iterable[Iterable[Any]], *, class_: str = "", caption: str | None = None) -> Html:
    """A table that a click on a head sorts; a cell is content, or (content, the number to sort by)."""
    head = tag("tr", [cell if isinstance(cell, Html) else tag("th", cell, scope="col") for cell in heads])
    body = [tag("tr", [_cell(cell) for cell in row]) for row in rows]
    element = tag(
        "table",
        tag("caption", caption) if caption else None,
        tag("thead", head),
        tag("tbody", body),
        class_=f"sortable {class_}".strip(),
    )
    return tag("div", element, class_="scroll")


def _cell(cell: Any) -> Html:
    if isinstance(cell, Html) and cell.startswith("<td"):
        return cell
    if isinstance(cell, tuple):
        content, order = cell
        return tag("td", content, data_sort="" if order is None else order, class_="number")
    return tag("td", cell)
