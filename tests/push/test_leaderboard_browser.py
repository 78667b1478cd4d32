"""The leaderboard in Chromium: it is there in time, sorts, filters, opens a model's page, and fits a phone."""

from __future__ import annotations

import subprocess
import sys
import urllib.error
import urllib.request

import pytest
from support.browser import CHROMIUM, Browser
from support.many_models import write_models

pytestmark = pytest.mark.skipif(not CHROMIUM, reason="Chromium is not installed")
ROWS = "document.querySelectorAll('.srb table.ranking tbody tr:not([hidden])')"
FIRST = f"{ROWS}[0].querySelector('th').textContent"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_models(tmp_path_factory.mktemp("board") / "verified", models=40, configs=114)


def _serve(command, cwd):
    """The server on a free port of its own choice, and the address that it prints once it listens there."""
    process = subprocess.Popen([*command, "--port", "0"], cwd=cwd, stdout=subprocess.PIPE, text=True)
    line = process.stdout.readline()
    assert line, "the leaderboard does not start"
    return process, line.split()[0]


@pytest.fixture(scope="module")
def url(folder, tmp_path_factory):
    command = [sys.executable, "-m", "speech_robust_bench", "leaderboard", "--results", str(folder)]
    process, url = _serve(command, tmp_path_factory.mktemp("cwd"))
    yield url
    process.terminate()
    process.wait(60)
    process.stdout.close()


@pytest.fixture(scope="module")
def page(url):
    with Browser() as made:
        made.size(1280, 860)
        yield made


def _load(page, url, rows=40):
    page.open(url)
    page.wait(f"{ROWS}.length >= {rows} && document.readyState == 'complete'")


def test_the_first_page_has_the_whole_ranking_without_any_script(url):
    with urllib.request.urlopen(url) as answer:
        text = answer.read().decode()
    body = text[text.index("<body") :]
    assert "<script" not in body
    assert body.count("<tr ") == 40


def test_nothing_can_be_sent_to_it(url):
    """No upload, whatever the path: only GET and HEAD have an answer."""
    for path in ("", "upload", "gradio_api/upload"):
        for method in ("POST", "PUT", "DELETE", "PATCH"):
            asked = urllib.request.Request(url + path, data=b"x" * 1000, method=method)
            with pytest.raises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(asked)
            assert refused.value.code == 501
    for path in ("../setup.cfg", "%2e%2e/setup.cfg", "data/nobody.json"):
        with pytest.raises(urllib.error.HTTPError) as missing:
            urllib.request.urlopen(url + path)
        assert missing.value.code == 404


def test_it_sorts_at_a_click(page, url):
    _load(page, url)
    best = page.eval(FIRST)
    click = "[...document.querySelectorAll('.srb table.ranking thead th')].find(h => h.textContent == '{}').click()"
    page.eval(click.format("NWER %"))
    assert page.eval(FIRST) != best  # it was sorted by it already, so now the worst is first
    page.eval(click.format("#"))
    assert page.eval(FIRST) == best
    page.eval(click.format("Clean WER %"))
    values = page.eval(f"[...{ROWS}].map(r => Number(r.cells[5].dataset.sort))")
    assert values == sorted(values)


def _set(page, name, value):
    page.eval(
        f"(() => {{ const field = document.querySelector('form.filters').elements[{name!r}];"
        f"field.value = {value!r}; field.dispatchEvent(new Event('input', {{bubbles: true}})); }})()"
    )


def test_it_finds_and_filters(page, url):
    _load(page, url)
    _set(page, "find", "recogniser-01")
    page.wait(f"{ROWS}.length == 10")
    _set(page, "find", "")
    _set(page, "size", "0 100")
    sizes = page.eval(f"[...{ROWS}].map(r => Number(r.dataset.size))")
    assert sizes
    assert max(sizes) < 100


def test_chosen_categories_are_ranked_as_the_board_does(page, url, folder):
    from speech_robust_bench.push.leaderboard import board

    _load(page, url)
    for name in ("noise_white", "spatial"):
        page.eval(f"document.querySelector('input[value={name}]').click()")
    expected = board.load(folder).rows("en", categories=["noise_white", "spatial"])
    names = page.eval(f"[...{ROWS}].map(r => r.querySelector('th a').textContent)")
    assert names == [row.entry.name for row in expected]
    scores = page.eval(f"[...{ROWS}].map(r => Number(r.cells[2].dataset.sort))")
    assert scores == pytest.approx([row.score[0] for row in expected], abs=0.006)
    assert page.eval(f"[...{ROWS}].map(r => Number(r.cells[0].textContent))") == list(range(1, 41))


def test_a_language_has_its_page(page, url):
    _load(page, url + "ranking-es.html", rows=10)
    assert page.eval(f"{ROWS}.length") == 10  # every fourth model was run in Spanish
    heads = page.eval("[...document.querySelectorAll('.srb table.ranking thead th')].map(head => head.textContent)")
    assert [head for head in heads if head.endswith("NWERD %")][2:] == ["noise_white NWERD %"]


def test_a_row_leads_to_its_model(page, url):
    _load(page, url)
    name = page.eval(FIRST)
    page.open(page.eval(f"{ROWS}[0].querySelector('th a').href"))
    page.wait(f"document.querySelector('.srb h2')?.textContent == {name!r}")
    assert page.eval("document.querySelectorAll('.srb table.heat tbody tr').length") > 10
    assert page.eval("document.querySelectorAll('.srb .multiples svg polyline').length") > 10
    assert page.eval("document.querySelectorAll('.srb .heat-key .ramp').length") >= 1
    assert "srb run" in page.eval("document.querySelector('#reproduce').textContent")


def test_models_are_compared_as_the_board_does(page, url, folder):
    """The script's intervals and corrected p-values are those of `board.compare`, to what the page shows."""
    from speech_robust_bench.push.leaderboard import board

    page.open(url + "compare.html")
    page.wait("document.querySelector('form.compare select[name=models]')?.options.length == 40")
    page.eval(
        "(() => { const list = document.querySelector('select[name=models]');"
        "for (const i of [0, 1, 2]) list.options[i].selected = true;"
        "list.dispatchEvent(new Event('input', {bubbles: true})); })()"
    )
    page.wait("document.querySelectorAll('#pairs tbody tr').length > 5")
    shown = page.eval(
        "[...document.querySelectorAll('#pairs tbody tr')].map(r => [...r.cells].map(c => c.textContent))"
    )
    loaded = board.load(folder)
    entries = [loaded.find(f"acme/recogniser-00{n}") for n in range(3)]
    expected = {(row.a, row.b, row.name): row for row in board.compare(entries, "en")}
    names = {("Average" if name == "overall" else name): name for _, _, name in expected}
    assert len(shown) == len(expected)
    for name, a, b, _, _, _, difference, interval, _, p, better in shown:
        row = expected[a, b, names[name]]
        low, high = (float(end) for end in interval.split(" to "))
        assert (low, high) == pytest.approx(row.interval, abs=0.1)
        assert float(difference) == pytest.approx(row.difference, abs=0.051)
        assert float(p) == pytest.approx(row.p, abs=0.02)  # the page has the replicates in hundredths
        assert better == (row.better() or "cannot be told apart")


def test_the_papers_rows_are_apart(page, url):
    page.open(url + "published.html")
    page.wait("document.querySelectorAll('.srb table.published tbody tr').length > 10")
    page.open(url)
    assert "whisper-large-v2" not in page.wait("document.querySelector('.srb table.ranking')?.textContent")


RIGHT = "[...document.querySelectorAll({!r})].map(e => e.getBoundingClientRect().right)"


def test_the_ranking_is_in_the_order_that_it_shows(page, url):
    _load(page, url)
    assert page.eval("document.querySelector('.srb th[aria-sort=ascending]').textContent") == "NWER %"
    scores = page.eval(f"[...{ROWS}].map(r => parseFloat(r.cells[2].textContent))")
    assert scores == sorted(scores)
    assert "2,620 clips" in page.eval(f"{ROWS}[0].cells[2].textContent")  # what the interval is over


def test_scores_and_links_are_not_cut(page, url):
    _load(page, url)
    assert max(page.eval(RIGHT.format(".srb table.ranking a[href$='#reproduce']"))) < 1240
    page.size(390, 844, mobile=True)
    try:
        _load(page, url)
        assert max(page.eval(RIGHT.format(".srb table.ranking .spread"))) < 380
    finally:
        page.size(1280, 860)


def test_speed_stands_beside_robustness(page, url):
    page.open(url + "speed.html")
    page.wait("document.querySelectorAll('.srb figure.speed svg title').length >= 40")
    told = page.eval("document.querySelector('.srb figure.speed svg title').textContent")
    assert " x, NWER " in told


def test_nothing_is_wider_than_a_phone(page, url):
    page.size(390, 844, mobile=True)
    try:
        for path in ("", "compare.html", "about.html", "speed.html", "model/acme--recogniser-000.html"):
            page.open(url + path)
            page.wait("document.readyState == 'complete' && document.querySelector('main') !== null")
            assert page.eval("document.documentElement.scrollWidth") <= 390, path
    finally:
        page.size(1280, 860)


def test_no_script_complained(page):
    assert page.errors == []


def test_the_exported_space_is_the_same_files(folder, tmp_path, url):
    from speech_robust_bench.push.leaderboard.site import export

    space = export(folder, tmp_path / "space")
    assert "sdk: static" in (space / "README.md").read_text()
    with urllib.request.urlopen(url) as answer:
        assert answer.read() == (space / "index.html").read_bytes()
