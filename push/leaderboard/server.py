"""Serve the leaderboard's files from memory. Nothing can be sent to it: only GET and HEAD are answered."""

from __future__ import annotations

import gzip
import mimetypes
import sys
import threading
from functools import lru_cache
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import unquote, urlsplit

from speech_robust_bench.core.errors import UserError
from speech_robust_bench.push.leaderboard import board, site

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
    handler = type("BoardHandler", (Handler,), {"files": dict(site.files(board.load(results)))})
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
