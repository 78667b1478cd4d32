"""Keys are found by their entropy too, and names, hashes, commits and commands are no keys."""

import hashlib
import random
import string

import pytest

from srb.core.secrets import entropy, has_secret

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


def test_entropy_is_shannons():
    assert entropy("aabb") == 1.0
    assert entropy(string.ascii_lowercase) == pytest.approx(4.700439718)
