"""What a stranger's JSON may not hold, wherever in it that stands and however it is written."""

from __future__ import annotations

import json

import msgspec
import pytest

from speech_robust_bench.core.records import FileFacts
from speech_robust_bench.core.untrusted_files import DEPTH, Refused, decode_guarded, read_object


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (r'{"a": "\u0007"}', "a control character (U+0007)"),
        (r'{"a": ["\b"]}', "a control character (U+0008)"),
        (r'{"a": {"\u202e": 1}}', "a control character (U+202E)"),
        ('{"a": "\u202e"}', "a control character (U+202E)"),
        (r'{"a": "\ud800"}', "a control character (U+D800)"),
        ('{"a": 9007199254740993}', "an integer beyond 2**53"),
        ('{"a": [-9007199254740993]}', "an integer beyond 2**53"),
        ('{"a": [NaN]}', "NaN is not a number that JSON has"),
        ('{"a": -Infinity}', "-Infinity is not a number that JSON has"),
        ('{"a": 1e999}', "1e999 is too large a number"),
        ('{"a": {"b": 1, "b": 2}}', "a key occurs twice"),
        (r'{"a": 1, "\u0061": 2}', "a key occurs twice"),
        ('{"a": ' + "[" * (DEPTH + 1) + "]" * (DEPTH + 1) + "}", f"nested deeper than {DEPTH}"),
        ("[1]", "not a JSON object"),
    ],
)
def test_what_json_does_not_mean_alike_everywhere_is_refused(text, why):
    with pytest.raises(Refused) as refused:
        read_object(text.encode())
    assert str(refused.value) == why


def test_everything_else_is_what_python_reads():
    text = json.dumps({"é": ["\t\n", 2**53, -1.5e300, None, True], "deep": [[[[[[[[[1]]]]]]]]], "wide": [{}] * 50})
    assert read_object(text.encode()) == json.loads(text)


def test_a_record_is_decoded_strictly():
    assert decode_guarded(b'{"sha256": "0", "size": 3}', FileFacts) == FileFacts(sha256="0", size=3)
    for text, why in ((b'{"sha256": "0", "size": "3"}', "'size': expected `int`"), (b"{}", "missing required")):
        with pytest.raises(Refused, match=why):
            decode_guarded(text, FileFacts)


class _Pair(msgspec.Struct, forbid_unknown_fields=True):
    a: str
    software: dict[str, str] | None = None


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"a": "x", "a": "x"}', "a key occurs twice"),
        ('{"a": ":", "software": {":k": "1", ":k": "2"}}', "a key occurs twice"),
        ('{"a": "x", "software": {"b c": "1", "b c" : "2"}}', "a key occurs twice"),
        ('{"a": "x\x1b"}', "not JSON"),
        ('{"a": "x\u202e"}', "control character"),
    ],
)
def test_the_fast_way_refuses_what_the_slow_one_does(text, reason):
    with pytest.raises(Refused, match=reason):
        decode_guarded(text.encode(), _Pair)


def test_the_fast_way_reads_what_the_slow_one_does():
    text = '{"a": "\\":", "software": {":": ",", "é": ":"}}'
    for written in (text, text.replace('\\"', "")):
        assert decode_guarded(written.encode(), _Pair) == msgspec.convert(json.loads(written), _Pair)
