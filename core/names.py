"""Config names: `<lang>[-<corpus>]_<scenario>[_sev<N>|_<parameter><value>][-<model>]`.

A scenario is asked for at one of its severities (`en_noise_sev3`) or at any value of its parameter (`en_noise_snr-5`).
The corpus is left out where it is the language's default: LibriSpeech test-clean for English, Multilingual LibriSpeech
for every other language. An adversarial config belongs to one model, whose name follows the severity.

Language codes: what may stand in a `language` column (BCP 47, RFC 5646, section 2.1).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from speech_robust_bench.core.errors import UserError

# What a value in a name can be a value of: the parameters of the scenario table, without their units. They are listed
# so that the end of a scenario's own name (`noise_esc50`) is never taken for one.
PARAMETERS = (
    "chunk|corner|cut|decay|delay|depth|factor|fraction|gain|kbps|level|loss|percent|quality|rate|semitones|snr"
)
_UNITS = ("_db", "_ms", "_hz", "_percent")
_NUMBER = r"0|-?[1-9][0-9]*(?:\.[0-9]*[1-9])?|-?0\.[0-9]*[1-9]"  # each number in one way only
_GRAMMAR = re.compile(
    r"(?P<language>[a-z]{2,3})(?:-(?P<corpus>[a-z0-9]+))?_(?P<scenario>[a-z0-9_]+?)"
    rf"(?:_sev(?P<severity>[1-9])|_(?P<parameter>{PARAMETERS})(?P<value>{_NUMBER}))?"
    r"(?:-(?P<model>[A-Za-z0-9._-]+))?"
)


@dataclass(frozen=True)
class ConfigName:
    """The parts of a config's name; `str()` puts them together again."""

    language: str
    scenario: str
    severity: int = 0
    corpus: str | None = None
    model: str | None = None
    parameter: str | None = None  # with `value`, in place of a severity
    value: float | None = None

    def __str__(self) -> str:
        corpus = f"-{self.corpus}" if self.corpus and self.corpus != default_corpus(self.language) else ""
        model = f"-{self.model}" if self.model else ""
        return f"{self.language}{corpus}_{self.level}{model}"

    @property
    def level(self) -> str:
        """The scenario and how strong it is: `noise_sev3`, `noise_snr-5`, `clean`."""
        if self.parameter is not None:
            return f"{self.scenario}_{self.parameter}{self.value:.12g}"
        return f"{self.scenario}_sev{self.severity}" if self.severity else self.scenario

    @property
    def data(self) -> tuple[str, str]:
        """The corpus that it is made from: its language and name."""
        return self.language, self.corpus or default_corpus(self.language)

    @property
    def clean(self) -> ConfigName:
        """The clean config that a config is compared with."""
        return ConfigName(self.language, "clean", corpus=self.corpus)


def default_corpus(language: str) -> str:
    """The corpus that a name without one means."""
    return "librispeech" if language == "en" else "mls"


def parse(name: str) -> ConfigName:
    """Take a config name apart."""
    match = _GRAMMAR.fullmatch(name)
    if not match:
        raise UserError(
            f"'{name}' is not a config name; they look like en_clean, en_noise_sev3, en_noise_snr-5 or "
            "en-tedlium_echo_sev1"
        )
    parts = match.groupdict()
    return ConfigName(
        language=parts["language"],
        scenario=parts["scenario"],
        severity=int(parts["severity"] or 0),
        corpus=parts["corpus"] or default_corpus(parts["language"]),
        model=parts["model"],
        parameter=parts["parameter"],
        value=None if parts["value"] is None else number(parts["value"]),
    )


def with_clean(names: Sequence[str], there: Collection[str] | None = None) -> list[str]:
    """The configs with their clean ones first, of those that are there: what was lost is said by comparing with them.

    >>> with_clean(["en_noise_sev1", "en_clean", "es_gsm"])
    ['en_clean', 'es_clean', 'en_noise_sev1', 'es_gsm']
    """
    clean = dict.fromkeys(str(parse(name).clean) for name in names)
    return list(dict.fromkeys([*(name for name in clean if there is None or name in there), *names]))


def number(text: str) -> float:
    """A number as the table writes it: a whole one is an int."""
    value = float(text)
    return int(value) if value.is_integer() else value


def parameter_word(parameter: str) -> str:
    """How a parameter of the scenario table is called in a name: without its unit.

    >>> parameter_word("snr_db"), parameter_word("kbps")
    ('snr', 'kbps')
    """
    for unit in _UNITS:
        parameter = parameter.removesuffix(unit)
    return parameter


# language, extended language, script, region, variants, extensions: letters and digits in parts of up to eight
_CODE = re.compile(r"[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*")
LONGEST = 35  # RFC 5646, 4.4.1: what every implementation must have room for


def is_language_code(text: str) -> bool:
    """Whether this has the form of a language code: `en`, `yue`, `zh-Hant-TW`."""
    return len(text) <= LONGEST and _CODE.fullmatch(text) is not None
