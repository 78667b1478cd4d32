"""The version of this package, as installed. It is written in setup.cfg and nowhere else in the code."""

from __future__ import annotations

from importlib import metadata

DISTRIBUTION = "speech-robust-bench"
__version__ = metadata.version(DISTRIBUTION)
