"""The top of the ranking in the page itself, seen while Gradio starts, which takes a browser one to two seconds.

An ASGI middleware puts a fragment of HTML behind `<body>` of the first page; a script in it takes it away as soon as
the app has drawn the same table. The page of one model (`?model=`) is left as it is.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

ROWS = 40  # more than a screen shows
Message = MutableMapping[str, Any]
_SCRIPT = """<script>(() => {
  const early = document.getElementById("early");
  if (matchMedia("(prefers-color-scheme: dark)").matches) early.className = "dark";
  const tables = document.getElementsByClassName("ranking");
  const look = () => (tables.length > 1 ? early.remove() : requestAnimationFrame(look));
  look();
})();</script>"""


def fragment(css: str, header: str, table: str) -> bytes:
    """What is shown first: the header, room for the filters, and some rows of the table; nothing without a table."""
    if "<table" not in table:
        return b""
    rows = table.split("</tr>")
    end = rows[-1]  # what closes the table and all around it
    made = "</tr>".join([*rows[: ROWS + 1], end] if len(rows) > ROWS + 1 else rows)
    return f'<div id="early"><style>{css}</style>{header}<div class="room"></div>{made}</div>{_SCRIPT}'.encode()


class Early:
    """The middleware."""

    def __init__(self, app: Callable[..., Awaitable[None]], html: bytes) -> None:
        self.app = app
        self.html = html

    async def __call__(self, scope: Message, receive: Any, send: Callable[[Message], Awaitable[None]]) -> None:
        first = scope["type"] == "http" and scope["method"] == "GET" and scope["path"] == "/"
        if not first or b"model=" in scope["query_string"]:
            await self.app(scope, receive, send)
            return
        start: Message = {}
        body = b""

        async def gather(message: Message) -> None:
            nonlocal body
            if message["type"] == "http.response.start":
                start.update(message)
                return
            body += message.get("body", b"")
            if message.get("more_body"):
                return
            whole = re.sub(rb"<body[^>]*>", lambda found: found[0] + self.html, body, count=1)
            headers = [(name, value) for name, value in start["headers"] if name.lower() != b"content-length"]
            await send({**start, "headers": [*headers, (b"content-length", str(len(whole)).encode())]})
            await send({"type": "http.response.body", "body": whole})

        await self.app(scope, receive, gather)
