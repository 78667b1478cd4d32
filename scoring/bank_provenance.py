"""What a scenario's noises, music, rooms or voices were, where they are not the paper's recordings.

Without `--noise-dir` and `--rir-dir` a build takes its noises and rooms from the built-in, synthesised bank, and
`--tts` may name any engine. The
paper's difficulties were measured on the recordings that it names (MS-SNSD, MUSAN, ...), so NWERD of such a config is
not on the paper's scale; it is marked wherever it is shown.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

STAND_IN_NOTE = "Not the paper's recordings, so NWERD of these scenarios is not on the scale of its Table 1."


class BankedConfig(Protocol):
    """The part of a config's entry that says what it was made with."""

    @property
    def language(self) -> str: ...
    @property
    def scenario(self) -> str: ...
    @property
    def bank(self) -> str | None: ...
    @property
    def stand_in(self) -> bool | None: ...


def is_stand_in(config: BankedConfig) -> bool:
    """Whether what went into a config stands in for the recordings or the voices of the paper."""
    if config.stand_in is not None:
        return config.stand_in
    titles = (config.bank or "").split(" + ")  # a file of a version that did not say it
    return any(title.startswith("built-in bank") or title.endswith(" (text-to-speech)") for title in titles)


def stand_in_notes(configs: Iterable[BankedConfig], language: str) -> list[str]:
    """For each bank or voice that is not the paper's: the scenarios of a language that were made with it."""
    banks: dict[str, set[str]] = {}
    for config in configs:
        if config.language == language and is_stand_in(config):
            banks.setdefault(str(config.bank), set()).add(config.scenario)
    return [f"{', '.join(sorted(scenarios))}: {bank}. {STAND_IN_NOTE}" for bank, scenarios in sorted(banks.items())]
