"""`run.json` and lines of predictions: what is taken, and what is said of the rest."""

import json

import pytest

from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.json_shapes import (
    anything,
    dict_of,
    fixed_list,
    integer,
    list_of,
    maybe,
    nullable,
    number,
    object_of,
    text,
    truth,
)
from speech_robust_bench.core.run_files import parse_line, read_run_json

LINE = {"id": "a", "text": "one", "pred_text": None, "duration": 1.5, "time": 0, "speaker": "s", "error": "broken"}
STREAM = {"chunk_ms": 500, "speed": 1.0, "realtime": False, "took_ms": [100.0, 0.0, 0.0, 0.0]}
STREAM |= {"events": [[0.6, 0.5, "yes", "final"]]}


@pytest.mark.parametrize(
    ("shape", "good", "bad"),
    [
        (text, "a", 1),
        (object_of(a=anything), {"a": None}, {}),
        (number, 1.5, True),
        (number, 0, "1"),
        (integer, -3, 1.0),
        (integer, 2**53, 2**53 + 1),
        (truth, False, 0),
        (maybe(text), None, []),
        (nullable(text), None, {}),
        (list_of(number), [], [None]),
        (list_of(number), [1, 2], (1, 2)),
        (fixed_list(text, number), ["a", 1], ["a"]),
        (fixed_list(text, number), ["a", 1], [1, "a"]),
        (dict_of(integer), {"a": 1}, {"a": "1"}),
        (object_of(a=text, b=maybe(text)), {"a": "x", "more": 3}, {"b": "x"}),
        (object_of(a=nullable(text)), {"a": None}, {}),
        (object_of(a=text), {"a": ""}, []),
    ],
)
def test_a_shape_takes_one_and_says_what_is_wrong_with_the_other(shape, good, bad):
    assert shape(good) is None
    assert isinstance(shape(bad), str)


def test_a_problem_is_named_by_its_place(tmp_path):
    (tmp_path / "run.json").write_text(json.dumps({"configs": {"en_clean": {"rows": "7"}}}))
    with pytest.raises(UserError, match=r"run.json: 'configs' 'en_clean' 'rows' is not a whole number; delete it and"):
        read_run_json(tmp_path / "run.json")


@pytest.mark.parametrize(
    "content", ["[]", "{", "[" * 100_000, '{"options": {"a": NaN}}', '{"model": "\\ud800"}', "\xff"]
)
def test_what_is_no_run_json_is_one_line(tmp_path, content):
    (tmp_path / "run.json").write_bytes(content.encode("latin-1"))
    with pytest.raises(UserError) as refused:
        read_run_json(tmp_path / "run.json")
    assert len(str(refused.value).splitlines()) == 1


def test_objects_that_are_null_are_left_out(tmp_path):
    (tmp_path / "run.json").write_text('{"model": null, "options": null, "configs": null}')
    assert read_run_json(tmp_path / "run.json") == {"model": None}


def test_a_line_is_taken_as_it_is():
    for line in (
        LINE,
        LINE | {"pred_text": "\u00e9", "loudness_dbfs": -23.5},
        LINE | {"stream": STREAM, "words": None},
    ):
        assert parse_line(json.dumps(line)) == line
        assert parse_line(json.dumps(line).encode()) == line


@pytest.mark.parametrize(
    "change",
    [
        {"id": None},
        {"id": 3},
        {"text": 3},
        {"columns": ["north"]},
        {"columns": {"region": 3}},
        {"pred_text": ["one"]},
        {"pred_text": "\ud800"},
        {"duration": -1},
        {"duration": float("nan")},
        {"time": float("inf")},
        {"time": "1"},
        {"loudness_dbfs": float("nan")},
        {"speaker": {}},
        {"stream": {}},
        {"stream": STREAM | {"events": [[1, 2, "x"]]}},
        {"stream": STREAM | {"speed": float("inf")}},
        {"stream": STREAM | {"took_ms": ["fast"]}},
        {"stream": STREAM, "words": [["a", 1]]},
    ],
)
def test_what_is_no_prediction_is_refused(change):
    with pytest.raises(ValueError, match=r"."):
        parse_line(json.dumps(LINE | change))


@pytest.mark.parametrize("line", ["[]", "3", "{", "[" * 100_000])
def test_what_is_no_object_is_refused(line):
    with pytest.raises(ValueError, match=r"."):
        parse_line(line)


@pytest.mark.parametrize("key", ["asked", "options", "versions", "machine", "configs"])
def test_what_should_be_an_object_is_one(tmp_path, key):
    (tmp_path / "run.json").write_text(json.dumps({key: [1]}))
    with pytest.raises(UserError, match=f"run.json: '{key}' is not an object"):
        read_run_json(tmp_path / "run.json")
    content = {key: {"en_clean": {}} if key == "configs" else {"anything": [None]}}
    (tmp_path / "run.json").write_text(json.dumps(content))
    assert read_run_json(tmp_path / "run.json") == content


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"id": None}, "has no id"),
        ({"id": 3}, "has an odd id"),
        ({"pred_text": 3}, "has an odd pred_text"),
        ({"duration": -0.5}, "has an odd duration"),
        ({"time": -0.5}, "has an odd time"),
        ({"loudness_dbfs": float("inf")}, "has an odd loudness_dbfs"),
        ({"columns": {"region": 1}}, "has odd columns"),
    ],
)
def test_what_is_wrong_with_a_line_is_said(change, why):
    with pytest.raises(ValueError, match=f"^{why}"):
        parse_line(json.dumps(LINE | change))


def test_no_time_and_no_length_are_numbers_like_others():
    quiet = LINE | {"duration": 0, "time": None, "loudness_dbfs": -90.5}
    assert parse_line(json.dumps(quiet)) == quiet
    short = LINE | {"duration": 0.25}
    assert parse_line(json.dumps(short)) == short
