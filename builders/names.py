"""Config names: `<lang>[-<corpus>]_<scenario>[_sev<N>][-<model>]`.

The corpus is left out where it is the language's default: LibriSpeech test-clean for English, Multilingual LibriSpeech
for every other language. An adversarial config belongs to one model, whose name follows the severity.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from srb.builders.errors import UserError

_GRAMMAR = re.compile(
    r"(?P<language>[a-z]{2,3})(?:-(?P<corpus>[a-z0-9]+))?_(?P<scenario>[a-z0-9_]+?)(?:_sev(?P<severity>[1-9]))?"
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

    def __str__(self) -> str:
        corpus = f"-{self.corpus}" if self.corpus and self.corpus != default_corpus(self.language) else ""
        severity = f"_sev{self.severity}" if self.severity else ""
        model = f"-{self.model}" if self.model else ""
        return f"{self.language}{corpus}_{self.scenario}{severity}{model}"

    @property
    def clean(self) -> ConfigName:
        """The clean config that a config is compared with."""
        return ConfigName(self.language, "clean", corpus=self.corpus)


def default_corpus(language: str) -> str:
    """The corpus that a name without one means."""
    return "librispeech" if language == "en" else "mls"


def parse(name: str) -> ConfigName:
    """Take a config name apart."""
    found = _GRAMMAR.fullmatch(name)
    if not found:
        raise UserError(
            f"'{name}' is not a config name; they look like en_clean, en_noise_sev3 or en-tedlium_echo_sev1"
        )
    parts = found.groupdict()
    return ConfigName(
        language=parts["language"],
        scenario=parts["scenario"],
        severity=int(parts["severity"] or 0),
        corpus=parts["corpus"] or default_corpus(parts["language"]),
        model=parts["model"],
    )
