"""The random stream of a clip, written out step by step, and what sets two streams apart."""

import hashlib

import numpy as np
import pytest

from srb.core.seeding import clip_rng, content_id

CLIP = ("librispeech", "1089-134686-0000", "noise", 3)


def test_the_stream_is_sfc64_seeded_by_blake2b_of_the_parts():
    key = b"1\x1flibrispeech\x1f1089-134686-0000\x1fnoise\x1f3\x1f"
    seed = int.from_bytes(hashlib.blake2b(key, digest_size=16).digest(), "little")
    expected = np.random.Generator(np.random.SFC64(seed)).integers(2**63, size=8)
    np.testing.assert_array_equal(clip_rng(*CLIP).integers(2**63, size=8), expected)


@pytest.mark.parametrize(
    "other",
    [
        ("mls", "1089-134686-0000", "noise", 3),
        ("librispeech", "1089-134686-0001", "noise", 3),
        ("librispeech", "1089-134686-0000", "music", 3),
        ("librispeech", "1089-134686-0000", "noise", 4),
        ("librispeech", "1089-134686-0000", "noise", 2.5),
        (*CLIP, "mine"),
    ],
    ids=["corpus", "clip", "scenario", "severity", "between severities", "seed"],
)
def test_each_part_makes_another_stream(other):
    assert clip_rng(*other).integers(2**63) != clip_rng(*CLIP).integers(2**63)


def test_a_whole_severity_is_the_same_however_it_is_written():
    assert clip_rng(*CLIP[:3], 3.0).integers(2**63) == clip_rng(*CLIP).integers(2**63)


def test_a_clip_without_a_name_goes_by_its_samples():
    samples = np.array([0, 0.5, -1], np.float32)
    expected = hashlib.blake2b(bytes.fromhex("00000000 0000003f 000080bf"), digest_size=16).hexdigest()
    assert content_id(samples) == content_id(np.repeat(samples, 2)[::2]) == expected
