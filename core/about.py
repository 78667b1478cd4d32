"""About this package: its name and version (setup.cfg reads it here), how to install a part of it, how to cite it."""

from __future__ import annotations

import shlex
from pathlib import Path

DISTRIBUTION = "speech-robust-bench"
__version__ = "0.1.0"


_CLONE = Path(__file__).resolve().parents[1]


def install_hint(extra: str, clone: Path = _CLONE) -> str:
    """The pip command that adds an extra: `pip install -e '/home/me/srb[models]'` where SRB was installed from a clone.

    An installed wheel has no setup.cfg beside its rooms; there the name of the distribution is all that is known.
    """
    if (clone / "setup.cfg").is_file():
        return f"pip install -e {shlex.quote(f'{clone}[{extra}]')}"
    return f"pip install '{DISTRIBUTION}[{extra}]'"


BIBTEX = """\
@article{shah2024speech,
    title = {Speech Robust Bench: A Robustness Benchmark For Speech Recognition},
    author = {Shah, Muhammad A. and Solans Noguero, David and Heikkila, Mikko A. and Raj, Bhiksha and
              Kourtellis, Nicolas},
    journal = {arXiv preprint arXiv:2403.07937},
    year = {2024}
}
"""
