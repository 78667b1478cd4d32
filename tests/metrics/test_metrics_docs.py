"""The examples in the documentation and in the docstrings run, and its listing is what the code lists."""

import doctest
import importlib
from pathlib import Path

import pytest

from srb.cli.main import main
from srb.metrics import modules

DOCS = Path(modules.__file__).resolve().parent.parent / "docs" / "metrics.md"


def test_examples_of_the_documentation(here, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = doctest.testfile(str(DOCS), module_relative=False, encoding="utf-8")
    assert run.attempted >= 20
    assert run.failed == 0


@pytest.mark.parametrize("name", ["scoring", "bootstrap", "degradation", "difficulty", "groups", "aggregate"])
def test_examples_of_the_modules(name):
    run = doctest.testmod(importlib.import_module(f"srb.metrics.{name}"))
    assert run.attempted >= 1
    assert run.failed == 0


def test_listing_of_the_cells_that_differ(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["difficulty", "--explain"]) == 0
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    listing = "\n".join(lines[lines.index("srb-1 minus paper-table3") :])
    assert listing.strip() in DOCS.read_text("utf-8")


@pytest.mark.parametrize("metric", modules.METRICS)
def test_every_metric_has_a_worked_example_in_the_documentation(metric):
    assert f'evaluate.load("{metric}")' in DOCS.read_text("utf-8")
