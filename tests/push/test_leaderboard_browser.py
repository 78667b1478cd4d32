"""The leaderboard in Chromium: it is there in time, sorts, filters, opens a model's page, and fits a phone."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
from browser import CHROMIUM, Browser
from many_models import write_models

pytest.importorskip("gradio", reason="gradio draws the leaderboard")
pytestmark = pytest.mark.skipif(not CHROMIUM, reason="Chromium is not installed")
ROWS = "document.querySelectorAll('.srb table.ranking tbody tr')"
FIRST = f"{ROWS}[0].querySelector('th').textContent"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_models(tmp_path_factory.mktemp("board") / "verified", models=200, configs=114)


def _serve(command, cwd):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen(
        [*command, "--port", str(port)], cwd=cwd, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    until = time.monotonic() + 90
    while True:
        try:  # the port alone: the first page is for the browser to ask for
            socket.create_connection(("127.0.0.1", port), timeout=5).close()
            return process, f"http://127.0.0.1:{port}/"
        except OSError:
            assert time.monotonic() < until
            assert process.poll() is None, "the leaderboard does not start"
            time.sleep(0.2)


@pytest.fixture(scope="module")
def url(folder, tmp_path_factory):
    command = [sys.executable, "-m", "srb.cli.main", "leaderboard", "--results", str(folder)]
    process, url = _serve(command, tmp_path_factory.mktemp("cwd"))
    yield url
    process.terminate()
    process.wait(30)


@pytest.fixture(scope="module")
def page(url):
    with Browser() as made:
        made.size(1280, 860)
        yield made


def _load(page, url):
    """Until the app stands."""
    page.open(url)
    page.wait(f"{ROWS}.length >= 200 && !document.querySelector('#early')")


def _tab(page, name):
    page.eval(f"[...document.querySelectorAll('button[role=tab]')].find(b => b.textContent.trim() == {name!r}).click()")


def test_it_is_there_in_under_two_seconds(url):
    """By the clock until the ranking is painted, by the page's own computing time until all of the app stands.

    In a new browser each time, and the server's very first page is among them. A busy machine is given three attempts.
    """
    painted, computed = [], []
    for _ in range(3):
        with Browser() as fresh:
            fresh.size(1280, 860)
            fresh.call("Performance.enable", timeDomain="threadTicks")
            _load(fresh, url)
            painted.append(fresh.eval("performance.getEntriesByName('first-contentful-paint')[0].startTime") / 1000)
            metrics = fresh.call("Performance.getMetrics")["metrics"]
            computed.append(next(one["value"] for one in metrics if one["name"] == "TaskDuration"))
        if min(painted) < 2 and min(computed) < 2:
            return
    pytest.fail(f"seconds until it was painted: {painted}, of computing: {computed}")


def test_the_first_page_has_the_ranking_before_any_script_runs(url):
    with urllib.request.urlopen(url) as answer:
        text = answer.read().decode()
    body = text[text.index("<body") :]
    assert body.index('<table class="sortable ranking">') < body.index("<script")
    assert body.count("<tr>", 0, body.index("<script")) == 41  # the head and forty models
    with urllib.request.urlopen(url + "?model=recogniser-001") as answer:
        assert b'id="early"' not in answer.read()


def test_it_sorts_at_a_click(page, url):
    _load(page, url)
    best = page.eval(FIRST)
    click = "[...document.querySelectorAll('.srb table.ranking thead th')].find(h => h.textContent == '{}').click()"
    page.eval(click.format("Average"))
    assert page.eval(FIRST) != best  # it was sorted by it already, so now the worst is first
    page.eval(click.format("Average"))
    assert page.eval(FIRST) == best
    page.eval(click.format("Clean"))
    values = page.eval(f"[...{ROWS}].map(r => Number(r.cells[3].dataset.sort))")
    assert values == sorted(values)


def test_it_finds_and_filters(page, url):
    _load(page, url)
    page.eval(
        "(() => { const box = document.querySelector('input[type=text], textarea');"
        "const all = [...document.querySelectorAll('label')].find(l => l.textContent.includes('Find a model'));"
        "const field = all.querySelector('textarea, input') ?? box;"
        "field.value = 'recogniser-01'; field.dispatchEvent(new Event('input', {bubbles: true})); })()"
    )
    page.wait(f"{ROWS}.length == 10")


def test_it_filters_by_language(page, url):
    _load(page, url)
    page.eval("document.querySelector('input[aria-label=Language]').focus()")
    page.wait(
        "[...document.querySelectorAll('ul[role=listbox] li')].some(one => one.textContent.trim().endsWith('es'))"
    )
    page.eval(
        "[...document.querySelectorAll('ul[role=listbox] li')].find(one => one.textContent.trim().endsWith('es'))"
        ".dispatchEvent(new MouseEvent('mousedown', {bubbles: true}))"
    )
    page.wait(f"{ROWS}.length == 50")  # every fourth model was run in Spanish
    heads = page.eval("[...document.querySelectorAll('.srb table.ranking thead th')].map(head => head.textContent)")
    assert heads == ["#", "Model", "Average", "Clean", "White noise", "Size", ""]
    _tab(page, "Model")
    page.wait("document.querySelectorAll('.srb table.heat tbody tr').length == 1")
    _tab(page, "As published")
    page.wait("document.querySelectorAll('.srb table.published tbody tr').length > 1")


def test_a_row_leads_to_its_model(page, url):
    _load(page, url)
    name = page.eval(FIRST)
    link = page.eval(f"{ROWS}[0].querySelector('th a').href")
    page.open(link)
    page.wait(f"document.querySelector('.srb .one h2')?.textContent == {name!r}")
    assert page.eval("document.querySelectorAll('.srb table.heat tbody tr').length") > 10
    assert page.eval("document.querySelectorAll('.srb .multiples svg polyline').length") > 10
    assert "srb run" in page.eval("document.querySelector('#reproduce').textContent")


def test_two_models_are_compared_and_the_papers_rows_are_apart(page, url):
    _load(page, url)
    _tab(page, "Compare")
    page.wait("[...document.querySelectorAll('.srb th')].some(h => h.textContent == 'p (Holm)')")
    _tab(page, "As published")
    page.wait("document.querySelectorAll('.srb table.published tbody tr').length > 5")
    assert "whisper-large-v2" not in page.eval("document.querySelector('.srb table.ranking')?.textContent ?? ''")


def test_nothing_is_wider_than_a_phone(page, url):
    page.size(390, 844, mobile=True)
    try:
        _load(page, url)
        assert page.eval("document.documentElement.scrollWidth") <= 390
    finally:
        page.size(1280, 860)


def test_no_script_complained(page):
    assert page.errors == []


def test_the_exported_space_stands_alone(folder, tmp_path):
    """Its app starts from its own folder, without this package."""
    from srb.push.leaderboard.space import export

    few = tmp_path / "few"
    few.mkdir()
    for path in list(folder.glob("recogniser-00*")):
        (few / path.name).write_bytes(path.read_bytes())
    space = export(few, tmp_path / "space")
    assert {"README.md", "app.py", "requirements.txt", "srb", "verified"} == {path.name for path in space.iterdir()}
    import gradio

    code = (
        "import sys; sys.path[:0] = ['.', sys.argv[1]]\n"
        "import srb.push.leaderboard.app as app\n"
        "assert app.__file__.startswith(sys.argv[2]), app.__file__\n"
        "made = app.make(app.boards.load('verified')); print('made', len(made.blocks) > 10)"
    )
    packages = str(Path(gradio.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-S", "-c", code, packages, str(space)], cwd=space, capture_output=True, text=True, timeout=120
    )
    assert "made True" in done.stdout, done.stderr[-2000:]
