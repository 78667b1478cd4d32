"""The random stream of a clip, written out step by step, and what sets two streams apart."""

import hashlib

import numpy as np
import pytest

from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.seeding import (
    clip_rng,
    content_id,
    edition_name,
    edition_version,
    later_version,
    read_secret,
    secret_seed,
)

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


def test_the_seed_of_a_private_edition_is_a_keyed_hash():
    """HMAC-like: BLAKE2b of 32 bytes under a key of 64, the SHA-512 of the secret."""
    expected = hashlib.blake2b(
        b"srb private edition 2", key=hashlib.sha512(b"0123456789abcdef").digest(), digest_size=32
    ).hexdigest()
    assert secret_seed(b"0123456789abcdef") == expected
    assert len(expected) == 64
    assert secret_seed(b"") == ""
    assert secret_seed(b"0123456789abcdeg") != expected


def test_a_secret_has_sixteen_bytes_without_white_space(tmp_path):
    path = tmp_path / "secret"
    path.write_bytes(b" 0123456789abcdef\n")
    assert read_secret(path) == b"0123456789abcdef"
    path.write_bytes(b"0123456789abcde\n")
    with pytest.raises(UserError, match=r"secret: a secret has at least 16 bytes; make one with `openssl"):
        read_secret(path)
    with pytest.raises(UserError, match=r"none: cannot be read \(No such file or directory\)"):
        read_secret(tmp_path / "none")


def test_only_a_later_version_of_a_scenario_is_told():
    assert later_version("1") is None
    assert later_version("2") == "2"


def test_a_private_edition_has_a_name_that_versions_carry():
    seeds = [secret_seed(key) for key in (b"a" * 16, b"b" * 16)]
    first, second = (edition_version("2", seed) for seed in seeds)
    assert first != second
    assert edition_version("2", "") == "2"
    assert edition_name(first) == "private-" + first.split("-private-")[1]
    assert edition_name("1, noise 2") == ""
    assert not any(part in first for part in (seeds[0], seeds[0][:8]))
