"""The examples in the docstrings run, and what the page of the metrics lists is what the code lists."""

import doctest
import importlib
from pathlib import Path

import pytest

from speech_robust_bench.cli.main import main
from speech_robust_bench.scoring import modules

DOCS = Path(modules.__file__).resolve().parent.parent / "docs" / "metrics.md"


@pytest.mark.parametrize(
    "name",
    ["scoring", "bootstrap", "degradation", "difficulty", "groups", "aggregate", "text_formatting", "term_spotting"],
)
def test_examples_of_the_modules(name):
    run = doctest.testmod(importlib.import_module(f"speech_robust_bench.scoring.{name}"))
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
