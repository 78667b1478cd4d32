"""The difficulty tables that ship with the package: `data/difficulty_<name>.csv`.

A metric Space is made of Python files alone, so its copy of this module holds the text of the tables instead.
"""

from __future__ import annotations

from pathlib import Path

_DATA = Path(__file__).parent / "data"


def shipped() -> dict[str, str]:
    """Name and version of each table -> its text, as CSV."""
    return {
        path.stem.removeprefix("difficulty_"): path.read_text("utf-8")
        for path in sorted(_DATA.glob("difficulty_*.csv"))
    }
