"""The hashes of rows and configs, by the program sha256sum."""

import numpy as np
import pytest

from speech_robust_bench.core.rows import content_digest, row_digest, transcripts_digest

PCM = np.array([0, 1, -2, 32767], np.int16)
# printf 'clip-1\037na\303\257ve words\037\000\000\001\000\376\377\377\177' | sha256sum
BY_SHA256SUM = "242f16569d6ab7e40f3f5142d6afade642483bb4f2c49d23ffe132e2f5711ee8"


@pytest.mark.parametrize("dtype", ["<i2", ">i2"])
def test_a_row_by_the_program_sha256sum(dtype):
    assert row_digest("clip-1", "naïve words", PCM.astype(dtype)) == BY_SHA256SUM


def test_a_config_by_the_program_sha256sum():
    # printf "$ROW$ROW" | sha256sum
    expected = "fa1a7f05dad9edd52807470fe3f4d8b02eefd9e999d12149e3cf06dc7502c7a3"
    assert content_digest([BY_SHA256SUM, BY_SHA256SUM]) == expected


@pytest.mark.parametrize(
    "other",
    [("clip-2", "words", PCM), ("clip-1", "word", PCM), ("clip-1", "words", PCM[:3]), ("clip-1", "words", PCM + 1)],
    ids=["id", "text", "length", "samples"],
)
def test_each_part_of_a_row_counts(other):
    assert row_digest(*other) != row_digest("clip-1", "words", PCM)


def test_the_order_of_rows_counts():
    assert content_digest(["a", "b"]) != content_digest(["b", "a"])


def test_ids_and_transcripts_by_the_program_sha256sum():
    """A transcript that is not known is not an empty one."""
    # printf 'clip-1\037na\303\257ve\036clip-2\037\000\036clip-3\037\036' | sha256sum
    expected = "5147f94e1bbd379ecd545c10feda66af8e912de0b1c4c43d2ec82b8454bc1491"
    assert transcripts_digest([("clip-1", "naïve"), ("clip-2", None), ("clip-3", "")]) == expected
    # printf 'clip-1\037\000\037\000\000\001\000\376\377\377\177' | sha256sum
    assert row_digest("clip-1", None, PCM) == "2e1c3f9f8001c92b880238d5c8c122a377426a2f0a00b45ca436d57d80e2783b"
