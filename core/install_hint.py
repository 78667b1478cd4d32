"""How to install an optional part of this package: the command that works for the installation at hand."""

from __future__ import annotations

import shlex
from pathlib import Path

from speech_robust_bench.core.version import DISTRIBUTION

_CLONE = Path(__file__).resolve().parents[1]


def install_hint(extra: str, clone: Path = _CLONE) -> str:
    """The pip command that adds an extra: `pip install -e '/home/me/srb[models]'` where SRB was installed from a clone.

    An installed wheel has no setup.cfg beside its rooms; there the name of the distribution is all that is known.
    """
    if (clone / "setup.cfg").is_file():
        return f"pip install -e {shlex.quote(f'{clone}[{extra}]')}"
    return f"pip install '{DISTRIBUTION}[{extra}]'"
