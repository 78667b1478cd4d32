"""What is printed cannot steer a terminal, wherever in a line or a table it stands, and never ends in a traceback."""

import io

import pytest
from rich.table import Table

from speech_robust_bench.core.progress import Console

HOSTILE = "evil\x1b]0;title\x07\x1b[2J[/x] name"


def printed(*objects, **how) -> str:
    out = io.StringIO()
    Console(file=out, width=200, color_system=None).print(*objects, **how)
    return out.getvalue()


def table():
    built = Table("model", "WER")
    built.add_row(HOSTILE, "1.0")
    built.add_row("two\nlines", "2.0")
    return built


@pytest.mark.parametrize("what", [HOSTILE, table()], ids=["line", "table"])
def test_no_escape_of_a_text_reaches_the_terminal(what):
    text = printed(what)
    assert "\x1b" not in text
    assert "\x07" not in text
    assert "evil?]0;title?" in text


def test_what_is_no_harm_is_printed_as_it_is():
    assert printed("naïve 日本語 [bold]x[/]") == "naïve 日本語 x\n"
    assert printed("[a] b", markup=False) == "[a] b\n"
    assert "two" in printed(table())


def test_styles_still_work():
    out = io.StringIO()
    Console(file=out, force_terminal=True, color_system="standard", width=80).print("[bold]x[/]")
    assert out.getvalue() == "\x1b[1mx\x1b[0m\n"
