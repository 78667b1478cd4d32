"""What the `evaluate` modules of this folder share: their data columns, strict about types, and the paper to cite.

`evaluate` turns a number among the strings into its digits without a word, and lets None through to the metric. Both
are mistakes of the caller, so the columns are checked before they reach it.
"""

from __future__ import annotations

import datasets
import evaluate

from srb.metrics.scoring import check_texts

CITATION = """\
@article{shah2024speech,
    title = {Speech Robust Bench: A Robustness Benchmark For Speech Recognition},
    author = {Shah, Muhammad A. and Solans Noguero, David and Heikkila, Mikko A. and Raj, Bhiksha and
              Kourtellis, Nicolas},
    journal = {arXiv preprint arXiv:2403.07937},
    year = {2024}
}
"""


class TextColumns:
    """Mixin for `evaluate.Metric`: predictions and references are strings and of one length, or it says so."""

    def add_batch(self, *, predictions=None, references=None):
        """Add some predictions and references."""
        check_texts(references=references, predictions=predictions)
        super().add_batch(predictions=predictions, references=references)  # type: ignore[misc]

    def add(self, *, prediction=None, reference=None):
        """Add one prediction and its reference."""
        check_texts(reference=[reference], prediction=[prediction])
        super().add(prediction=prediction, reference=reference)  # type: ignore[misc]


def metric_info(description: str, inputs_description: str) -> evaluate.MetricInfo:
    """The description of a metric on predicted and reference transcripts."""
    return evaluate.MetricInfo(
        description=description,
        citation=CITATION,
        inputs_description=inputs_description,
        features=datasets.Features({"predictions": datasets.Value("string"), "references": datasets.Value("string")}),
        reference_urls=["https://arxiv.org/abs/2403.07937"],
    )
