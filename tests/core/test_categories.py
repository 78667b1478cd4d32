"""The categories against the head of the paper's Table 1."""

import csv
from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest

from speech_robust_bench.core.categories import ADVERSARIAL, AVERAGED, CATEGORIES, column_title, label, meaning

PAPER_TABLE_1 = Path(__file__).parents[1] / "scoring" / "data" / "paper_table1.csv"


def test_the_average_is_over_the_papers_nine_and_the_adversarial_are_two():
    head = next(csv.reader(PAPER_TABLE_1.open()))
    assert list(AVERAGED) == head[head.index("clean_wer") + 1 : head.index("avg")]
    assert list(ADVERSARIAL) == head[head.index("avg") + 1 : head.index("adv_avg")]


def test_only_the_papers_categories_are_averaged():
    assert [row.name for row in CATEGORIES.values() if row.averaged] == list(AVERAGED)
    assert not any(row.averaged and row.adversarial for row in CATEGORIES.values())


def test_titles_are_those_of_the_papers_columns():
    titles = "accent, audio proc, noise (env), noise (white), sfx, social (far), social (near), spatial, synth speech"
    assert [column_title(name) for name in AVERAGED] == titles.split(", ")
    assert [column_title(name) for name in ADVERSARIAL] == ["adv (UA)", "adv (US)"]
    assert column_title("adv_other") == "adv other"
    assert column_title("some_new_one") == "some new one"


def test_every_category_has_a_label_and_a_meaning():
    assert label("noise_env") == "Env. noise"
    assert [label(name) for name in ADVERSARIAL] == ["Adv., agnostic", "Adv., specific"]
    assert label("adv_other") == "Adv other"
    assert meaning("codec") == "encoding formats"
    assert meaning("nobody_knows") is None
    assert all(meaning(name) for name in CATEGORIES)
    assert len({meaning(name) for name in CATEGORIES}) == len({label(name) for name in CATEGORIES}) == len(CATEGORIES)


def test_a_category_cannot_be_changed():
    with pytest.raises(FrozenInstanceError):
        CATEGORIES["clean"].averaged = True
