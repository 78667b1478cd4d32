"""A Python function of yours: `python:package.module:function`, called with (clips, rate, language).

The function returns one text per clip. A class or any callable that returns an object with a `transcribe` method may
stand there too: then it is called once without arguments, and its method takes the clips.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from speech_robust_bench.core.errors import UserError
from speech_robust_bench.models.interface import Clip, Described, Recogniser, Session


@dataclass
class Function(Described):
    """A recogniser made of one function."""

    function: Callable[..., Any] = lambda clips, rate, language: []
    owner: Any = None  # the object that the function belongs to; an attack asks it for its `losses`

    def transcribe(self, clips: list[Clip], rate: int, language: str | None) -> list[str]:
        return list(self.function(clips, rate, language))


class LiveFunction(Function):
    """One whose object can be used live too."""

    def stream(self, rate: int, language: str | None) -> Session:
        return self.owner.stream(rate, language)


def load(target: str, *, batch_size: int = 16) -> Recogniser:
    """The user's Python function or object as a recogniser."""
    target_object = imported(target)
    function = getattr(target_object, "transcribe", target_object)
    module = sys.modules[target.rpartition(":")[0]]
    revision = getattr(target_object, "revision", None) or getattr(module, "__version__", None)
    kind = LiveFunction if hasattr(target_object, "stream") else Function
    return kind(target, revision, dict(getattr(target_object, "options", {})), batch_size, function, target_object)


def imported(target: str) -> Any:
    """What `module:name` means, a class called once without arguments; the working directory counts."""
    module_name, _, attribute = target.rpartition(":")
    if not module_name or not attribute:
        raise UserError(f"'python:{target}' names no function; write python:module:function")
    if str(Path.cwd()) not in sys.path and "" not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        target_object = getattr(importlib.import_module(module_name), attribute)
    except ImportError as error:
        raise UserError(f"python:{target}: {error}; run from the folder that holds the module, or install it") from None
    except AttributeError:
        raise UserError(f"python:{target}: the module {module_name} has no '{attribute}'") from None
    return target_object() if isinstance(target_object, type) else target_object
