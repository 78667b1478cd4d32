"""Serve the leaderboard's files from memory. Nothing can be sent to it: only GET and HEAD are answered."""

from __future__ import annotations

import gzip
import mimetypes
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar
from urllib.parse import unquote, urlsplit

from speech_robust_bench.core.errors import UserError
from speech_robust_bench.push.leaderboard import board, site

PORTS = range(7860, 7960)
POLICY = "default-src 'self'; style-src 'self' 'unsafe-inline'; base-uri 'none'; form-action 'none'"


class Handler(BaseHTTPRequestHandler):
    """Answers from `files`: path -> (type, content, the same compressed)."""

    protocol_version = "HTTP/1.1"
    timeout = 30  # of a client that says nothing
    files: ClassVar[dict[str, tuple[str, bytes, bytes]]] = {}

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def _answer(self, with_body: bool) -> None:
        path = unquote(urlsplit(self.path).path).lstrip("/") or "index.html"
        if path not in self.files:
            self.send_error(HTTPStatus.NOT_FOUND)
            return
        kind, plain, packed = self.files[path]
        compressed = "gzip" in self.headers.get("Accept-Encoding", "")
        body = packed if compressed else plain
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", kind)
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
    """Takes many visitors at once."""

    request_queue_size = 1024
    daemon_threads = True


def make(results: str | Path, host: str = "127.0.0.1", port: int | None = None) -> Server:
    """A server of the leaderboard, bound to its address; `serve_forever` starts it."""
    content = site.files(board.load(results))
    ready = {path: (_kind(path), data, gzip.compress(data, mtime=0)) for path, data in content.items()}
    handler = type("BoardHandler", (Handler,), {"files": ready})
    for number in [port] if port is not None else PORTS:
        try:
            return Server((host, number), handler)
        except OSError as error:
            reason = error
    raise UserError(f"cannot listen on {host}, port {port or f'{PORTS[0]} to {PORTS[-1]}'}: {reason.strerror}")


def _kind(path: str) -> str:
    kind = mimetypes.guess_type(path)[0] or "application/octet-stream"
    return f"{kind}; charset=utf-8" if kind.startswith("text/") or kind.endswith("javascript") else kind
