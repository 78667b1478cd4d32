"""Tables that a user gives: rows with their lines, numbers that are numbers, and one line for what is neither."""

import pytest

from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.untrusted_files import csv_cells, csv_rows, finite, read_text, whole


def test_a_text_is_read_with_or_without_a_byte_order_mark(tmp_path):
    path = tmp_path / "x.csv"
    path.write_bytes(b"\xef\xbb\xbfa,b\n")
    assert read_text(path) == "a,b\n"
    path.write_bytes("é".encode())
    assert read_text(path, most_bytes=2) == "é"


@pytest.mark.parametrize(("data", "told"), [(b"abc", "larger than 2 bytes"), (b"\xff", "not UTF-8 text")])
def test_what_cannot_be_read_is_one_line(tmp_path, data, told):
    (tmp_path / "x.csv").write_bytes(data)
    with pytest.raises(UserError, match=rf"^cannot read .*x\.csv: .*{told}$"):
        read_text(tmp_path / "x.csv", most_bytes=2)
    with pytest.raises(UserError, match=r"^cannot read .*none\.csv: No such file or directory$"):
        read_text(tmp_path / "none.csv")


def test_rows_have_the_number_of_their_last_line():
    assert csv_cells('a,b\n"x\ny",1\n\n2,3', "t") == [(1, ["a", "b"]), (3, ["x\ny", "1"]), (4, []), (5, ["2", "3"])]


def test_a_cell_that_is_too_long_is_named_by_its_line():
    with pytest.raises(UserError, match=r"^cannot read t: line 2 is not CSV \("):
        csv_cells("a\n" + "x" * 200_000, "t")


def test_rows_are_read_by_name_short_ones_too():
    text = " a ,b,c\n1,2,3\n\n4\n5,6,7,8\n"
    rows = [(2, {"a": "1", "b": "2", "c": "3"}), (4, {"a": "4", "b": "", "c": ""}), (5, {"a": "5", "b": "6", "c": "7"})]
    assert csv_rows(text, ["a", "c"], "t") == rows
    for odd in ("", "a,b\n"):
        with pytest.raises(UserError, match=r"^cannot read t: it has no column 'c'; its columns are a?(, )?c$"):
            csv_rows(odd, ["a", "c"] if odd else ["c"], "t")


def test_numbers_are_finite_and_whole_ones_can_be_held():
    assert finite(" 1.5 ", "t") == 1.5
    assert whole("5", "t") == 5
    assert whole("9007199254740992", "t") == 2**53
    assert whole("-9007199254740992.0", "t") == -(2**53)
    for text in ("", "x", "nan", "inf", "-inf", "1e999", "x" * 60):
        with pytest.raises(UserError) as refused:
            finite(text, "t")
        assert str(refused.value) == f"t: '{text[:40]}' is not a number"
    for text in ("1.5", "9007199254740994", "-9007199254740994"):
        with pytest.raises(UserError, match=rf"^t: '{text}' is not a whole number$"):
            whole(text, "t")
