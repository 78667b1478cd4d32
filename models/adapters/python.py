"""A Python function of yours: `python:package.module:function`, called with (clips, rate, language).

The function returns one text per clip. A class or any callable that returns an object with a `transcribe` method may
stand there too: then it is called once without arguments, and its method takes the clips.

A recogniser that is handed over as an object: a function, a transformers pipeline, or anything with `transcribe`.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from speech_robust_bench.core.errors import UserError
from speech_robust_bench.models.interface import Clip, Described, Recogniser, Session, Spec


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


BATCH_SIZE = 16


def as_recogniser(model: Any, name: str | None = None, batch_size: int | None = None) -> tuple[Spec, Recogniser]:
    """The object as a recogniser, and the spec that stands for it in run.json."""
    function = _function(model)
    target = name or _name(model)
    size = batch_size or getattr(model, "batch_size", None) or getattr(model, "_batch_size", None) or BATCH_SIZE
    options = getattr(model, "options", None)
    revision = getattr(model, "revision", None)
    kind = LiveFunction if callable(getattr(model, "stream", None)) else Function
    recogniser = kind(
        target,
        revision if isinstance(revision, str) else None,
        dict(options) if isinstance(options, dict) else {},
        size,
        function,
        model,
    )
    return Spec("python", target, {}), recogniser


def _function(model: Any) -> Callable[[list[Clip], int, str | None], list[str]]:
    if getattr(model, "task", None) == "automatic-speech-recognition" and callable(model):
        return lambda clips, rate, language: _by_pipeline(model, clips, rate)
    transcribe = getattr(model, "transcribe", None)
    if callable(transcribe):
        return transcribe
    if callable(model):
        return model
    raise UserError(
        f"a model is a spec such as 'moonshine', a function (clips, rate, language) -> texts, a pipeline for speech "
        f"recognition, or an object with transcribe, not {type(model).__name__}"
    )


def _by_pipeline(pipeline: Any, clips: list[Clip], rate: int) -> list[str]:
    """A pipeline takes its dicts apart, so each call gets new ones."""
    given = [{"raw": clip, "sampling_rate": rate} for clip in clips]
    return [str(answer["text"]) for answer in pipeline(given, batch_size=len(given))]


def _name(model: Any) -> str:
    inner = getattr(getattr(model, "model", None), "name_or_path", "")  # of a pipeline
    if isinstance(inner, str) and inner:
        return inner.rstrip("/").rsplit("/", 1)[-1]
    name = getattr(model, "name", None)
    if isinstance(name, str) and name:
        return name
    name = getattr(model, "__name__", None) or type(model).__name__
    return "function" if name == "<lambda>" else str(name)
