"""What a scenario's noises, music, rooms or voices were, where they are not the paper's recordings.

Without `--noise-dir` and `--rir-dir` a build takes its noises and rooms from the built-in, synthesised bank, and
`--tts` may name any engine. The
paper's difficulties were measured on the recordings that it names (MS-SNSD, MUSAN, ...), so NWERD of such a config is
not on the paper's scale; it is marked wherever it is shown.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

STAND_IN = "built-in bank"
STAND_IN_VOICE = " (text-to-speech)"  # of any engine but the paper's
STAND_IN_NOTE = "Not the paper's recordings, so NWERD of these scenarios is not on the scale of its Table 1."


def is_stand_in(bank: str | None) -> bool:
    """Whether a config's bank stands in for the recordings or the voices of the paper.

    >>> is_stand_in("built-in bank (synthesised)"), is_stand_in("MS-SNSD"), is_stand_in(None)
    (True, False, False)
    >>> is_stand_in("espeak (text-to-speech)"), is_stand_in("yourtts (the paper's text-to-speech)")
    (True, False)
    """
    return any(name.startswith(STAND_IN) or name.endswith(STAND_IN_VOICE) for name in str(bank or "").split(" + "))


class BankedConfig(Protocol):
    """The part of a config's entry that says what it was made with."""

    @property
    def language(self) -> str: ...
    @property
    def scenario(self) -> str: ...
    @property
    def bank(self) -> str | None: ...


def stand_in_notes(configs: Iterable[BankedConfig], language: str) -> list[str]:
    """For each bank or voice that is not the paper's: the scenarios of a language that were made with it."""
    banks: dict[str, set[str]] = {}
    for config in configs:
        if config.language == language and is_stand_in(config.bank):
            banks.setdefault(str(config.bank), set()).add(config.scenario)
    return [f"{', '.join(sorted(scenarios))}: {bank}. {STAND_IN_NOTE}" for bank, scenarios in sorted(banks.items())]
