"""Config names: what their parts mean, and which names are none."""

import pytest

from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.names import ConfigName, default_corpus, parameter_word, parse


@pytest.mark.parametrize(
    ("name", "language", "corpus", "scenario", "severity", "model"),
    [
        ("en_clean", "en", "librispeech", "clean", 0, None),
        ("es_rir_sev2", "es", "mls", "rir", 2, None),
        ("en-tedlium_chorus_sev4", "en", "tedlium", "chorus", 4, None),
        ("en_social_ami_far", "en", "librispeech", "social_ami_far", 0, None),
        ("yue-cv17_noise_esc50_sev9", "yue", "cv17", "noise_esc50", 9, None),
        ("en_pgd_sev2-whisper-tiny.en", "en", "librispeech", "pgd", 2, "whisper-tiny.en"),
        ("en-demo_cw-Tiny_1", "en", "demo", "cw", 0, "Tiny_1"),
    ],
)
def test_a_name_comes_apart_and_together(name, language, corpus, scenario, severity, model):
    parts = parse(name)
    assert parts == ConfigName(language, scenario, severity, corpus, model)
    assert str(parts) == name


def test_the_default_corpus_need_not_be_said():
    assert default_corpus("en") == "librispeech"
    assert default_corpus("fr") == "mls"
    assert parse("en-librispeech_clean") == parse("en_clean")
    assert str(ConfigName("en", "clean")) == "en_clean"
    assert str(ConfigName("en", "clean", corpus="mls")) == "en-mls_clean"


def test_a_name_can_be_a_key():
    assert {parse("en_clean"): 1}[ConfigName("en", "clean", 0, "librispeech")] == 1


def test_the_clean_config_is_of_the_same_corpus():
    assert str(parse("en-tedlium_pgd_sev2-tiny").clean) == "en-tedlium_clean"
    assert parse("es_rir_sev2").clean == ConfigName("es", "clean", 0, "mls", None)


@pytest.mark.parametrize(
    "name",
    ["e_clean", "engl_clean", "en", "en_", "_clean", "en-_clean", "en_Clean", "en_clean-", "en_a/b", "en_clean\n"],
)
def test_what_is_not_a_name_is_refused_with_examples(name):
    with pytest.raises(UserError, match=r"is not a config name; they look like en_clean, en_noise_sev3"):
        parse(name)


def test_a_value_in_a_name_is_the_number_of_the_table():
    assert parse("en_noise_snr10").value == 10
    assert type(parse("en_noise_snr10").value) is int
    assert parse("en_noise_snr-2.5").value == -2.5
    assert [parameter_word(name) for name in ("snr_db", "delay_ms", "corner_hz", "kbps")] == [
        "snr",
        "delay",
        "corner",
        "kbps",
    ]
