"""The version of this package: setup.cfg reads it from here."""

from __future__ import annotations

DISTRIBUTION = "speech-robust-bench"
__version__ = "0.1.0"
