"""The columns that a corpus adds: under which names they are stored, what becomes of their values, what is refused."""

import time

import pytest

from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.rows import LONGEST_NAME, MOST_COLUMNS, column_names, column_values


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ("Region", "region"),
        ("home town / state", "home_town_state"),
        ("__device__", "device"),
        ("ﬁeld", "field"),
        ("source", "source_"),
        ("pesq", "pesq_"),
        ("pitch", "pitch_"),
        ("sentence_domain", "domain"),
        ("x" * 64, "x" * 64),
    ],
)
def test_a_column_is_stored_under_a_plain_name(given, stored):
    assert column_names([given], "list.csv") == {given: stored}


def test_columns_without_a_name_are_left_out_and_the_others_stay():
    assert column_names(["", "region", "???", "device"], "list.csv") == {"region": "region", "device": "device"}


def test_domain_stays_what_it_is_beside_sentence_domain():
    given = ["sentence_domain", "domain"]
    assert column_names(given, "list.csv") == dict(zip(given, given, strict=True))


def test_names_and_their_number_are_bounded():
    assert LONGEST_NAME == MOST_COLUMNS == 64
    assert len(column_names([f"c{number}" for number in range(64)], "list.csv")) == 64
    for given, told in (
        ([f"c{number}" for number in range(65)], "list.csv: has 65 columns beside those that SRB knows; at most 64"),
        (["y" * 65], f"list.csv: the column '{'y' * 40}...' has a name of more than 64 characters"),
        (["Home town", "home-town"], "list.csv: two of its columns would both be called 'home_town'"),
        (["source", "source_", "source!"], "list.csv: two of its columns would both be called 'source_'"),
    ):
        with pytest.raises(UserError) as refused:
            column_names(given, "list.csv")
        assert str(refused.value).startswith(told)


def test_plain_values_become_text_and_the_others_stay_behind():
    row = {"a": " north ", "b": 3, "c": 0.5, "d": True, "e": None, "f": float("nan"), "g": [1], "h": "  ", "i": 0}
    names = {column: column.upper() for column in [*row, "missing"]}
    assert column_values(row, names) == (("A", "north"), ("B", "3"), ("C", "0.5"), ("D", "true"), ("I", "0"))


def test_the_time_that_names_take_grows_with_their_number_alone():
    """Twenty thousand columns took seconds, a hundred thousand minutes."""
    start = time.process_time()
    with pytest.raises(UserError, match="has 50000 columns beside"):
        column_names((f"c{n}" for n in range(50_000)), "wide.csv")
    assert time.process_time() - start < 2
