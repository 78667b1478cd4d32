"""Plain English: no page, help text, message or docstring has a phrase of `word_list.txt`."""

import ast
import json
import re
from pathlib import Path

import pytest

from speech_robust_bench.cli.command import commands
from speech_robust_bench.cli.main import main

ROOT = Path(__file__).parents[2]
FOLDERS = ["core", "builders", "scoring", "metrics", "models", "attacks", "report", "push", "cli", "extensions"]
FOLDERS += ["speech_robust_bench"]
LIST = [
    line.split("\t")
    for line in (Path(__file__).parent / "word_list.txt").read_text("utf-8").splitlines()
    if line and not line.startswith("#")
]


def phrases(text: str) -> list[str]:
    """The phrases of the list in a text, each with what to write instead."""
    flat = " ".join(text.split())
    return [f"'{match[0]}': {better}" for pattern, better in LIST for match in re.finditer(pattern, flat)]


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("What is wrong with an argument is one `ValueError` that names the thing and the way out.", 3),
        ("One point from 300 clips cannot be had.", 1),
        ("of --stream: wait for the audio to be spoken", 1),
        ("with --stream: pace the audio in real time", 0),
        ("What the scores mean, and what is checked", 0),
    ],
)
def test_the_list_finds_what_it_should(text, count):
    assert len(phrases(text)) == count


def pages() -> list[Path]:
    named = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "benchmarks/README.md", ROOT / "results/README.md"]
    return [*named, *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "metrics").glob("*/README.md"))]


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_pages(page):
    assert phrases(page.read_text("utf-8")) == []


def test_the_notebook():
    cells = json.loads((ROOT / "docs/tutorials/tour.ipynb").read_text("utf-8"))["cells"]
    assert [found for cell in cells for found in phrases("".join(cell["source"]))] == []


@pytest.mark.parametrize("command", ["", *commands()])
def test_help(command, capsys):
    with pytest.raises(SystemExit):
        main([command, "--help"] if command else ["--help"])
    assert phrases(capsys.readouterr().out) == []


@pytest.mark.parametrize("folder", FOLDERS)
def test_docstrings_and_messages(folder):
    """Every string of the code: docstrings, help, messages and texts of pages."""
    found = {}
    for path in sorted((ROOT / folder).rglob("*.py")):
        tree = ast.parse(path.read_text("utf-8"))
        strings = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
        found |= {f"{path.relative_to(ROOT)}:{node.lineno}": phrases(node.value) for node in strings}
    assert {place: texts for place, texts in found.items() if texts} == {}
