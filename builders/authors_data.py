"""The authors' published data under our names.

Hub dataset `mshah1/speech_robust_bench_public`: a config is a corpus, a split is `<perturbation>.<severity>` and the
clean one `None.0`. Which split their own evaluation reads where there are several: `test.clean` of `accented_cv` (640
clips with DNSMOS >= 3.4, the paper's number), `nearfield` and `farfield` of the social sets.
"""

from __future__ import annotations

from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.names import ConfigName, parse

REPO = "mshah1/speech_robust_bench_public"

# their config -> (language, our corpus)
CORPORA = {
    "librispeech_asr-test.clean": ("en", "librispeech"),
    "tedlium-release3_test": ("en", "tedlium"),
    "multilingual_librispeech-spanish_test": ("es", "mls"),
    "multilingual_librispeech-french_test": ("fr", "mls"),
    "multilingual_librispeech-german_test": ("de", "mls"),
}
# their (config, split) -> our config, where the split is not a perturbation
RECORDINGS = {
    ("accented_cv", "test.clean"): "en_accent",
    ("accented_cv_es", "test"): "es_accent",
    ("accented_cv_fr", "test"): "fr_accent",
    ("social_ami", "nearfield"): "en_social_ami_near",
    ("social_ami", "farfield"): "en_social_ami_far",
    ("social_chime", "nearfield"): "en_social_chime_near",
    ("social_chime", "farfield"): "en_social_chime_far",
}
# their perturbation -> our scenario, where the names differ
SCENARIOS = {
    "None": "clean",
    "gnoise": "gaussian",
    "env_noise": "noise",
    "env_noise_esc50": "noise_esc50",
    "env_noise_musan": "noise_musan",
    "env_noise_wham": "noise_wham",
    "universal_adv": "universal",
    "voice_conversion_vctk": "tts",
    "voice_conversion_bark": "tts",
}
_PUBLISHED = {scenario: perturbation for perturbation, scenario in SCENARIOS.items() if scenario != "tts"}
_WITHOUT_SEVERITY = {"clean", "tts"}


def config_name(config: str, split: str) -> str | None:
    """Our config name for one of their splits; None for one that we have no name for."""
    if (config, split) in RECORDINGS:
        return RECORDINGS[config, split]
    perturbation, dot, severity = split.rpartition(".")
    if config not in CORPORA or not dot or not severity.isdigit():
        return None
    language, corpus = CORPORA[config]
    scenario = SCENARIOS.get(perturbation, perturbation)
    return str(ConfigName(language, scenario, 0 if scenario in _WITHOUT_SEVERITY else int(severity), corpus))


def published_split(name: str) -> tuple[str, str]:
    """Their (config, split) for one of our config names."""
    for recording, own in RECORDINGS.items():
        if own == name:
            return recording
    parts = parse(name)
    for config, (language, corpus) in CORPORA.items():
        if parts.value is None and (language, corpus) == (parts.language, parts.corpus):
            if parts.scenario == "tts":
                perturbation = "voice_conversion_bark" if parts.language == "es" else "voice_conversion_vctk"
                return config, f"{perturbation}.1"
            return config, f"{_PUBLISHED.get(parts.scenario, parts.scenario)}.{parts.severity}"
    raise UserError(f"{REPO} holds nothing for '{name}'")
