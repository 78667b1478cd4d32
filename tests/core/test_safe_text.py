"""Text that others wrote, where it leaves: no escape sequence reaches a terminal, no formula a spreadsheet."""

import csv
import io
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from speech_robust_bench.core.errors import for_csv, for_markdown, for_terminal

EVIL = '\x1b]0;pwned\x07\x1b[2J‮=HYPERLINK("http://x","y")\r\n|<b>'


@given(st.text())
def test_nothing_that_steers_a_terminal_is_left(text):
    left = for_terminal(text).replace("\u200c", "").replace("\u200d", "")
    assert left.isprintable()
    assert not set(left) & {chr(n) for n in (*range(32), *range(127, 160), 0x200E, 0x200F, 0x202E)}


@given(st.text(min_size=1))
def test_no_cell_begins_like_a_formula_and_csv_reads_it_back(text):
    cell = for_csv(text)
    assert not unicodedata.normalize("NFKC", cell).lstrip().startswith(("=", "+", "-", "@", "\t", "\r"))
    out = io.StringIO()
    csv.writer(out).writerow([cell, 1])
    assert next(csv.reader(io.StringIO(out.getvalue()))) == [cell, "1"]


@pytest.mark.parametrize("text", [EVIL, "a|b", "`x`", "[x](http://y)", "<script>"])
def test_markdown_shows_the_characters_and_takes_none_for_markup(text):
    escaped = for_markdown(text)
    for mark in "|<>`[]*":
        assert escaped.count(mark) == escaped.count(f"\\{mark}")


def test_length_is_bounded():
    assert for_terminal("x" * 500, most=80) == "x" * 77 + "..."
    assert for_terminal("short", most=80) == for_terminal("short", most=5) == "short"
