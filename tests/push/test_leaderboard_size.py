"""A leaderboard of many models: work grows with their number alone, pages stay small, and its server holds."""

from __future__ import annotations

import socket
import struct
import threading
import time

import pytest
from support.many_models import write_models

from speech_robust_bench.push.leaderboard import board, pages, site

LARGEST_PAGE = 300_000


def test_every_model_is_on_one_page_of_bounded_size(tmp_path, monkeypatch):
    monkeypatch.setattr(pages, "MOST_TABLE_BYTES", 20_000)
    made = board.load(write_models(tmp_path / "verified", 60, configs=12))
    files = site.files(made)
    numbered = ["index.html", *(f"index-{n}.html" for n in range(2, 20) if f"index-{n}.html" in files)]
    assert len(numbered) > 2
    assert all(len(content) < LARGEST_PAGE for content in files.values())
    text = [files[path].decode() for path in numbered]
    for row in made.rows("en"):
        assert sum(f'data-name="{row.entry.name}"' in page for page in text) == 1
    for page in text:
        assert all(f'href="{path}"' in page for path in numbered)


def test_the_work_for_a_model_does_not_grow_with_their_number(tmp_path):
    """Counted in calls and not in seconds: each page used to look at every model."""
    calls = {}
    for models in (20, 80):
        made = board.load(write_models(tmp_path / str(models), models, configs=12))
        counted = [0]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(board.Entry, "attacks", _counting(board.Entry, "attacks", counted))
            site.files(made)
        calls[models] = counted[0] / models
    assert calls[80] <= 1.2 * calls[20]


def _counting(kind, name, counted):
    own = vars(kind)[name]

    def method(self, *args):
        counted[0] += 1
        return own.fget(self) if isinstance(own, property) else own(self, *args)

    return property(method) if isinstance(own, property) else method


@pytest.fixture
def served(tmp_path, monkeypatch):
    monkeypatch.setattr(site, "MOST_THREADS", 4)
    made = site.make(write_models(tmp_path / "verified", 3, configs=12), port=0)
    threading.Thread(target=made.serve_forever, args=(0.05,), daemon=True).start()
    yield made
    made.shutdown()
    made.server_close()


def _connect(served):
    client = socket.create_connection(served.server_address[:2], timeout=20)
    client.sendall(b"GET /index.html HTTP/1.1\r\nHost: x\r\n\r\n")
    return client


def test_a_visitor_who_leaves_is_no_error(served, capfd):
    for _ in range(8):
        client = _connect(served)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # a reset instead of goodbye
        client.close()
    with _connect(served) as client:
        assert client.recv(100).startswith(b"HTTP/1.1 200 OK")
    assert capfd.readouterr().err == ""


def test_visitors_have_a_bounded_number_of_threads(served):
    before = threading.active_count()
    clients = [_connect(served) for _ in range(12)]
    deadline = time.monotonic() + 20
    while threading.active_count() < before + 4 and time.monotonic() < deadline:
        threading.Event().wait(0.01)
    assert threading.active_count() <= before + 4
    for client in clients:  # each leaves its thread to the next
        assert client.recv(100).startswith(b"HTTP/1.1 200 OK")
        client.close()
