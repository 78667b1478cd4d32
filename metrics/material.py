"""What a scenario's noises, music, rooms or voices were, where they are not the paper's recordings.

Without `--noise-dir` and `--rir-dir` a build takes its noises and rooms from the built-in, synthesised bank. The
paper's difficulties were measured on the recordings that it names (MS-SNSD, MUSAN, ...), so NWERD of such a config is
not on the paper's scale; it is marked wherever it is shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

STAND_IN = "built-in bank"
STAND_IN_NOTE = "Not the paper's recordings, so NWERD of these scenarios is not on the scale of its Table 1."


def is_stand_in(bank: str | None) -> bool:
    """Whether a config's bank stands in for the recordings of the paper.

    >>> is_stand_in("built-in bank (synthesised)"), is_stand_in("MS-SNSD"), is_stand_in(None)
    (True, False, False)
    """
    return any(name.startswith(STAND_IN) for name in str(bank or "").split(" + "))


def stand_ins(configs: Mapping[str, Mapping[str, Any]], language: str) -> list[str]:
    """The scenarios of a language that were made with the built-in bank, from the `configs` of a results file."""
    return sorted({e["scenario"] for e in configs.values() if e["language"] == language and is_stand_in(e.get("bank"))})
