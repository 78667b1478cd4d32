"""SpeechBrain and NeMo in tests: imported where they are installed, and gone afterwards.

Both import torchaudio, which the tests need nothing of and which has no build for every torch; where it cannot be
loaded, an empty one will do. SpeechBrain leaves modules behind that import other packages as soon as somebody looks
through `sys.modules`, as `inspect` does, so nothing of it may stay.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager

import pytest


def skip_without(package: str) -> None:
    """Skip the test, or the module where it is called at its head. Nothing is imported."""
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed", allow_module_level=True)


@contextmanager
def importable(package: str) -> Iterator[None]:
    """While it lasts, the package can be imported, with torchaudio or without."""
    before = set(sys.modules)
    try:
        import torchaudio  # noqa: F401
    except (ImportError, OSError):
        empty = types.ModuleType("torchaudio")
        empty.__spec__ = importlib.machinery.ModuleSpec("torchaudio", None)
        empty.__version__ = "2.8.0"  # type: ignore[attr-defined]
        empty.list_audio_backends = lambda: ["soundfile"]  # type: ignore[attr-defined]
        sys.modules["torchaudio"] = empty
    try:
        yield
    finally:
        for name in set(sys.modules) - before:
            if name.split(".")[0] in (package, "torchaudio"):
                del sys.modules[name]
