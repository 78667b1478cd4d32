"""The categories against the head of the paper's Table 1."""

import csv
from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest

from speech_robust_bench.core.categories import ADVERSARIAL, AVERAGED, CATEGORIES, label

PAPER_TABLE_1 = Path(__file__).parents[1] / "scoring" / "data" / "paper_table1.csv"


def test_the_average_is_over_the_papers_nine_categories():
    head = next(csv.reader(PAPER_TABLE_1.open()))
    assert list(AVERAGED) == head[head.index("clean_wer") + 1 : head.index("avg")]
    assert list(ADVERSARIAL) == head[head.index("avg") + 1 : head.index("adv_avg")]


def test_only_the_papers_categories_are_averaged():
    assert [row.name for row in CATEGORIES.values() if row.averaged] == list(AVERAGED)
    assert not any(row.averaged and row.adversarial for row in CATEGORIES.values())


def test_every_category_has_a_label_of_its_own():
    assert label("noise_env") == "environmental noise"
    assert label("codec") == "encoding formats"
    assert label("nobody_knows") == "nobody_knows"
    assert len({label(name) for name in CATEGORIES}) == len(CATEGORIES)


def test_a_category_cannot_be_changed():
    with pytest.raises(FrozenInstanceError):
        CATEGORIES["clean"].averaged = True
