"""The `evaluate` modules, one folder each, over the arithmetic of `scoring/`; and each of them as a plain function.

    srb.metrics.nwerd(references=[...], predictions=[...], clean_predictions=[...], difficulty="noise_sev3")

takes the arguments of the module's `compute` and returns its dict, without `evaluate`'s files and cache.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

_FOLDER = Path(__file__).parent
__all__ = sorted(path.parent.name for path in _FOLDER.glob("*/*.py") if path.stem == path.parent.name)


def __getattr__(name: str) -> Callable[..., dict[str, Any]]:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}; it has {', '.join(__all__)}")
    globals()[name] = _plain_function(name)
    return globals()[name]


def __dir__() -> list[str]:
    """The metrics."""
    return __all__


def _plain_function(name: str) -> Callable[..., dict[str, Any]]:
    """The arithmetic of a module, whose file is run under another name: imported, it would replace the function."""
    from speech_robust_bench.scoring.evaluate_base import TextColumns, check_arguments
    from speech_robust_bench.scoring.scoring import check_texts

    spec = importlib.util.spec_from_file_location(f"srb_metric_{name}", _FOLDER / name / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    kind: Any = next(
        v for v in vars(module).values() if isinstance(v, type) and issubclass(v, TextColumns) and v is not TextColumns
    )

    def metric(*, references: Any, predictions: Any, **options: Any) -> dict[str, Any]:
        check_texts(references=references, predictions=predictions)
        check_arguments(kind, options)
        return kind._compute(None, predictions=predictions, references=references, **options)

    metric.__name__ = metric.__qualname__ = name
    metric.__doc__ = f"{module._DESCRIPTION}{module._KWARGS_DESCRIPTION}"
    return metric
