"""The examples in the docstrings run, and every metric has one in its card."""

import doctest
import importlib
from pathlib import Path

import pytest

from speech_robust_bench.scoring import modules


@pytest.mark.parametrize(
    "name",
    [
        *(f"scoring.{name}" for name in ("scoring", "bootstrap", "degradation", "difficulty", "groups", "aggregate")),
        *(f"extensions.text_metrics.{name}" for name in ("text_formatting", "lenient_wer")),
    ],
)
def test_examples_of_the_modules(name):
    run = doctest.testmod(importlib.import_module(f"speech_robust_bench.{name}"))
    assert run.attempted >= 1
    assert run.failed == 0


@pytest.mark.parametrize("metric", modules.METRICS)
def test_every_metric_has_a_worked_example_in_its_card(metric):
    card = Path(modules.__file__).resolve().parent.parent / "metrics" / metric / "README.md"
    assert f'>>> {metric} = evaluate.load("{metric}")' in card.read_text("utf-8")
