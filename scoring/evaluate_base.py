"""What the `evaluate` modules of this folder share: their data columns, strict about types, and the paper to cite.

`evaluate` turns a number among the strings into its digits without a word, and lets None through to the metric. Both
are mistakes of the caller, so the columns are checked before they reach it.
"""

from __future__ import annotations

import datasets
import evaluate

from speech_robust_bench.core.about import BIBTEX
from speech_robust_bench.scoring.scoring import check_texts

# Numbers in a result that are settings, not measurements.
SETTINGS = frozenset({"level", "replicates", "seed"})


class TextColumns:
    """Mixin for `evaluate.Metric`: predictions and references are strings and of one length, or it says so.

    Loaded with the config name `numbers`, a metric returns its measured numbers alone: the bootstrap of
    `evaluate.evaluator` resamples every value of a result, and cannot do so with names and lists.
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
        result = super().compute(**inputs)  # type: ignore[misc]
        if self.config_name != "numbers" or result is None:  # type: ignore[attr-defined]
            return result
        return {key: value for key, value in result.items() if isinstance(value, int | float) and key not in SETTINGS}


def metric_info(description: str, inputs_description: str) -> evaluate.MetricInfo:
    """The description of a metric on predicted and reference transcripts."""
    return evaluate.MetricInfo(
        description=description,
        citation=BIBTEX,
        inputs_description=inputs_description,
        features=datasets.Features({"predictions": datasets.Value("string"), "references": datasets.Value("string")}),
        reference_urls=["https://arxiv.org/abs/2403.07937"],
    )
