"""A recogniser that is handed over as an object: a function, a transformers pipeline, or anything with `transcribe`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from speech_robust_bench.core.errors import UserError
from speech_robust_bench.models.adapters.python import Function, LiveFunction
from speech_robust_bench.models.interface import Clip, Recogniser, Spec

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
