"""Keys are found by how they look too, and names, hashes, commits and commands are no keys."""

import hashlib
import random
import string

import pytest

from speech_robust_bench.core.secrets import has_secret, looks_random, mask_secrets, redacted, texts

PUBLIC = [
    "hf:openai/whisper-large-v3-turbo?dtype=float16&revision=0123456789abcdef0123456789abcdef01234567",
    "openai-api:https://api.example.com/v1/audio/transcriptions?model=whisper-large-v3",
    "cmd:my-recogniser --language {language} --beam-size 5 {}",
    "2026-01-01T00:00:00+00:00 nvidia/parakeet-tdt_ctc-1.1b facebook/wav2vec2-large-960h-lv60-self",
    hashlib.sha256(b"x").hexdigest(),
    hashlib.sha1(b"x").hexdigest(),
    "sha256:0123456789abcdef",
    "en_noise_sev3_wav2vec2_large_xlsr_53_spanish",
]


@pytest.mark.parametrize("text", PUBLIC)
def test_what_is_public_is_no_secret(text):
    assert not has_secret(text)


@pytest.mark.parametrize("prefix", ["hf_", "sk-", "sk-proj-", "ghp_", "Bearer ", "cmd:KEY=", "https://h/v1/", "key: "])
def test_a_random_key_is_found_behind_anything(prefix):
    rng = random.Random(prefix)
    keys = ["".join(rng.choices(string.ascii_letters + string.digits, k=32)) for _ in range(200)]
    missed = [key for key in keys if not has_secret(f"{prefix}{key} {{}}")]
    assert len(missed) <= 2  # one key in a hundred looks like a word


def test_a_key_in_hexadecimal_is_found():
    assert has_secret("9f86d081884c7d659a2feaa0c55ad015")


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("https://ann:pw@example.org/v1", "https://***@example.org/v1"),
        ("curl -H 'Bearer abcdefgh'", "curl -H 'Bearer ***'"),
        ("API_KEY=short run", "API_KEY=*** run"),
        ('{"my_password": "x", "b": 1}', '{"my_password": "***", "b": 1}'),
        ("https://h/v1?api_key=abc&model=m", "https://h/v1?api_key=***&model=m"),
        ("prog --auth-token abc {}", "prog --auth-token *** {}"),
        ("hf_abcdefghijkl", "***"),
        ("id 6fa459ea-ee8a-3ca4-894e-db77e160355e.", "id ***."),
        ("x a1B2c3D4e5F6g7H8i9J0 y", "x *** y"),
        ("--api-key ***", "--api-key ***"),
    ],
)
def test_a_secret_is_masked_and_what_stands_around_it_stays(text, masked):
    assert mask_secrets(text) == masked


@pytest.mark.parametrize(
    ("word", "random"),
    [
        ("a1B2c3D4e5F6g7H8i9J0", True),
        ("a1B2c3D4e5F6g7H8i9J", False),  # 19 characters
        ("aBcDeFgHiJkLmNoPqRsT", False),  # no digit
        ("1a2b3c4d5e6f1a2b3c4d5e6f", True),
        ("abcdefghijklmnopqrstuvwx1", False),  # one change of kind in 25 characters
    ],
)
def test_what_looks_random_is_long_has_digits_and_changes_often(word, random):
    assert looks_random(word) is random


def test_every_text_of_a_json_value_is_looked_at():
    assert list(texts({"a": ["x", {"b": "y", "c": 3}], "d": None, "e": "z"})) == ["x", "y", "z"]


def test_values_are_redacted_everywhere_and_commits_stay():
    commit = "0123456789abcdef0123456789abcdef01234567"
    options = {
        "environment": [
            f"a @ git+https://me:pass@host/a@{commit}",
            "b @ https://host/b.whl?token=abcdef",
            "torch==2.1",
        ],
        "api_key": "plain",
        "beams": 5,
        "nested": {"header": "Bearer abcdefghij"},
    }
    assert redacted(options) == {
        "environment": [f"a @ git+https://***@host/a@{commit}", "b @ https://host/b.whl?token=***", "torch==2.1"],
        "api_key": "***",
        "beams": 5,
        "nested": {"header": "Bearer ***"},
    }
