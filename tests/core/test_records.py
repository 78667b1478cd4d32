"""`run.json` and lines of predictions: what is taken, and what is said of the rest."""

import json

import pytest

from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.records import (
    FileFacts,
    Prediction,
    RunConfig,
    StreamEvent,
    SubmittedModel,
    SubmittedPrediction,
    convert,
    parse_line,
    read_run_record,
    to_json,
)

LINE = {"id": "a", "text": "one", "pred_text": None, "duration": 1.5, "time": 0, "speaker": "s", "error": "broken"}
STREAM = {"chunk_ms": 500, "speed": 1.0, "realtime": False, "took_ms": [100.0, 0.0, 0.0, 0.0]}
STREAM |= {"events": [[0.6, 0.5, "yes", "final"]]}
WRITTEN = (
    b'{"id": "a", "audio_filepath": "en_clean/a.flac", "duration": 1.5, "time": 0.25, "text": "one", "pred_text": '
    b'"\xc3\xa9", "speaker": null, "gender": null, "age": null, "accent": null, "language": "en", "loudness_dbfs": '
    b'-23.5, "snr_db": null, "stream": {"chunk_ms": 500, "speed": 1.0, "realtime": false, "took_ms": [100.0], '
    b'"events": [[0.6, 0.5, "yes", "final"]]}, "words": null}\n'
)


def test_a_problem_is_named_by_its_place(tmp_path):
    (tmp_path / "run.json").write_text(json.dumps({"configs": {"en_clean": {"rows": "7"}}}))
    with pytest.raises(
        UserError, match=r"run.json: 'configs\[...\].rows': expected `int \| null`, got `str`; delete it"
    ):
        read_run_record(tmp_path / "run.json")


@pytest.mark.parametrize(
    "content", ["[]", "{", "[" * 100_000, '{"options": {"a": NaN}}', '{"model": "\\ud800"}', "\xff"]
)
def test_what_is_no_run_json_is_one_line(tmp_path, content):
    (tmp_path / "run.json").write_bytes(content.encode("latin-1"))
    with pytest.raises(UserError) as refused:
        read_run_record(tmp_path / "run.json")
    assert len(str(refused.value).splitlines()) == 1


def test_a_line_comes_back_as_the_same_bytes():
    assert to_json(parse_line(WRITTEN)) == WRITTEN
    assert parse_line(WRITTEN.decode()) == parse_line(WRITTEN)


def test_what_is_absent_and_what_is_null_differ():
    absent = to_json(parse_line(json.dumps({"id": "a", "text": None})))
    assert {"words", "snr_db", "error"}.isdisjoint(json.loads(absent))
    null = json.loads(to_json(parse_line(json.dumps({"id": "a", "text": None, "words": None, "snr_db": None}))))
    assert (null["words"], null["snr_db"]) == (None, None)
    assert parse_line(json.dumps({"id": "a", "text": None, "words": None})).word_times == []


def test_keys_of_later_versions_are_passed_over():
    assert parse_line(json.dumps(LINE | {"mood": "gay"})) == parse_line(json.dumps(LINE))


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
        {"time": True},
        {"loudness_dbfs": float("nan")},
        {"speaker": {}},
        {"stream": {}},
        {"stream": STREAM | {"more": 1}},
        {"stream": STREAM | {"events": [[1, 2, "x"]]}},
        {"stream": STREAM | {"speed": float("inf")}},
        {"stream": STREAM | {"took_ms": ["fast"]}},
        {"stream": STREAM, "words": [["a", 1]]},
        {"word_confidences": [["a", 1.5]]},
        {"alternatives": "a b"},
        {"pred_turns": [["ann", -1.0, 2.0, "so"]]},
        {"turns": [["ann", 0.0, 1.0]]},
    ],
)
def test_what_is_no_prediction_is_refused(change):
    with pytest.raises(ValueError, match=r"."):
        parse_line(json.dumps(LINE | change))


@pytest.mark.parametrize("line", ["[]", "3", "{", "[" * 100_000, '{"id": "a"}', '{"text": "a"}'])
def test_what_is_no_object_is_refused(line):
    with pytest.raises(ValueError, match=r"."):
        parse_line(line)


@pytest.mark.parametrize("key", ["asked", "options", "versions", "machine", "configs"])
def test_what_should_be_an_object_is_one(tmp_path, key):
    (tmp_path / "run.json").write_text(json.dumps({key: [1]}))
    with pytest.raises(UserError, match=f"run.json: '{key}': expected `object | null`, got `array`"):
        read_run_record(tmp_path / "run.json")
    content = {"en_clean": {}} if key == "configs" else {"anything": [None]}
    (tmp_path / "run.json").write_text(json.dumps({key: content}))
    expected = {"en_clean": RunConfig()} if key == "configs" else content
    assert getattr(read_run_record(tmp_path / "run.json"), key) == expected


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"id": None}, "id"),
        ({"id": 3}, "id"),
        ({"pred_text": 3}, "pred_text"),
        ({"duration": -0.5}, "duration"),
        ({"time": -0.5}, "time"),
        ({"columns": {"region": 1}}, "columns"),
        ({"stream": STREAM | {"chunk_ms": 1.5}}, "stream.chunk_ms"),
    ],
)
def test_what_is_wrong_with_a_line_names_the_field(change, field):
    with pytest.raises(ValueError, match=f"^'{field}"):
        parse_line(json.dumps(LINE | change))


def test_no_time_and_no_length_are_numbers_like_others():
    quiet = parse_line(json.dumps(LINE | {"duration": 0, "time": None, "loudness_dbfs": -90.5}))
    assert (quiet.seconds, quiet.time, quiet.loudness_dbfs) == (0.0, None, -90.5)


def test_a_label_is_of_the_line_or_of_the_corpus():
    line = Prediction(id="a", text="one", gender="female", columns={"region": "north"})
    assert [line.label(column) for column in ("gender", "region", "age", "mood")] == ["female", "north", None, None]


def test_events_have_names_and_places():
    (event,) = parse_line(json.dumps(LINE | {"stream": STREAM})).stream.events
    assert event == StreamEvent(0.6, 0.5, "yes", "final") == (0.6, 0.5, "yes", "final")


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"mood": "gay"}, "mood"),
        ({"columns": {"region": "north"}}, "columns"),
        ({"duration": 36_001}, "duration"),
        ({"id": ""}, "id"),
        ({"id": "a" * 301}, "id"),
        ({"masked": "1 2\n"}, "masked"),
        ({"masked": "one"}, "masked"),
        ({"snr_db": 401}, "snr_db"),
        ({"error": "x" * 2_001}, "error"),
    ],
)
def test_a_strangers_line_keeps_to_bounds(change, field):
    line = {**LINE, "audio_filepath": "en_clean/a.flac"}
    assert convert(line, SubmittedPrediction).id == "a"
    with pytest.raises(ValueError, match=field):
        convert(line | change, SubmittedPrediction)


@pytest.mark.parametrize(
    "change",
    [
        {"owner": "a--b"},
        {"owner": "a\n"},
        {"name": "../a"},
        {"url": "http://a.b"},
        {"url": "https://a.b/\nx"},
        {"licence": "<b>"},
        {"params_m": -1},
        {"params_m": "many"},
        {"stars": 5},
    ],
)
def test_what_a_stranger_says_of_a_model_keeps_to_bounds(change):
    model = {"owner": "ann", "name": "m-1", "url": "https://a.b/c", "licence": "MIT", "params_m": 3}
    assert convert(model, SubmittedModel).full_name == "ann/m-1"
    with pytest.raises(ValueError, match=next(iter(change))):
        convert(model | change, SubmittedModel)


def test_a_size_is_a_whole_number_that_others_can_hold():
    assert convert({"sha256": "0", "size": 2**53}, FileFacts).size == 2**53
    for size in (2**53 + 1, 1.0, True):
        with pytest.raises(ValueError, match="size"):
            convert({"sha256": "0", "size": size}, FileFacts)
