"""What the `evaluate` modules of this folder share: their data columns, strict about types, and the paper to cite.

`evaluate` turns a number among the strings into its digits without a word, and lets None through to the metric. Both
are mistakes of the caller, so the columns are checked before they reach it.
"""

from __future__ import annotations

import inspect
import sys

import datasets
import evaluate

from speech_robust_bench.core import BIBTEX
from speech_robust_bench.core.errors import UserError, did_you_mean
from speech_robust_bench.scoring.scoring import check_texts

# Numbers in a result that are settings, not measurements.
SETTINGS = frozenset({"level", "replicates", "seed"})


class TextColumns:
    """Mixin for `evaluate.Metric`: predictions and references are strings and of one length, or it says so.

    Loaded with the config name `numbers`, or called by the bootstrap of `evaluate.evaluator`, a metric returns its
    measured numbers alone: that bootstrap resamples every value of a result, and cannot do so with names and lists.
    """

    def add_batch(self, *, predictions=None, references=None):
        """Add some predictions and references."""
        check_texts(references=references, predictions=predictions)
        super().add_batch(predictions=predictions, references=references)  # type: ignore[misc]

    def add(self, *, prediction=None, reference=None, **columns):
        """Add one prediction and its reference; `evaluate.combine` gives them under the columns' names.

        As a batch of one, because `datasets` before 5 keeps single rows back and writes later batches before them.
        """
        example = {"predictions": prediction, "references": reference, **columns}
        check_texts(reference=[example["references"]], prediction=[example["predictions"]])
        super().add_batch(**{name: [text] for name, text in example.items()})  # type: ignore[misc]

    def compute(self, **inputs):
        """The scores of everything that was added, or of `predictions` and `references`."""
        check_arguments(self, inputs)
        result = super().compute(**inputs)  # type: ignore[misc]
        if result is None or not (self.config_name == "numbers" or _is_bootstrapped()):  # type: ignore[attr-defined]
            return result
        return {key: value for key, value in result.items() if isinstance(value, int | float) and key not in SETTINGS}


def check_arguments(metric: TextColumns | type, given) -> None:
    """One clear error for arguments of `_compute` that are missing, and for those that it does not have."""
    name = (metric if isinstance(metric, type) else type(metric)).__name__.lower()
    known = dict(inspect.signature(metric._compute).parameters)  # type: ignore[union-attr]
    known.pop("self", None)
    columns = {"predictions", "references"}  # may have been added before
    needed = [key for key, argument in known.items() if argument.default is argument.empty and key not in columns]
    if unknown := [key for key in given if key not in known]:
        raise UserError(f"{name} takes no argument '{unknown[0]}'; {did_you_mean(unknown[0], tuple(known))}")
    if missing := [key for key in needed if given.get(key) is None]:
        raise UserError(f"{name}: {' and '.join(missing)} must be given; see its card, metrics/{name}/README.md")


def _is_bootstrapped() -> bool:
    """Whether `evaluator.compute_metric(strategy="bootstrap")` asks: it says so nowhere but in its own variables."""
    caller = sys._getframe(2)
    asks = caller.f_code.co_name == "compute_metric" and caller.f_globals.get("__name__") == "evaluate.evaluator.base"
    return asks and caller.f_locals.get("strategy") == "bootstrap"


def metric_info(description: str, inputs_description: str) -> evaluate.MetricInfo:
    """The description of a metric on predicted and reference transcripts."""
    return evaluate.MetricInfo(
        description=description,
        citation=BIBTEX,
        inputs_description=inputs_description,
        features=datasets.Features({"predictions": datasets.Value("string"), "references": datasets.Value("string")}),
        reference_urls=["https://arxiv.org/abs/2403.07937"],
    )
