"""The section of the report about adversarial sparsity, for the models that `srb sparsity` has measured."""

from __future__ import annotations

from speech_robust_bench.extensions.sparsity.result import HEADS, of_folder, rows_of
from speech_robust_bench.report.html import Html, table
from speech_robust_bench.report.report_data import Report
from speech_robust_bench.report.sections.parts import name, section

LEAD = (
    "The mean angle between a random direction and the nearest adversarial perturbation of the same norm, over the "
    "vulnerable clips. The smaller the angle, the more directions are adversarial. It distinguishes models that PGD "
    "breaks equally."
)


def report_section(report: Report, language: str) -> Html | None:
    """The section, where some model was measured."""
    measured = [(model, found) for model in report.ranked(language) if (found := of_folder(model.folder))]
    if not measured:
        return None
    rows = [[name(model), *row] for model, found in measured for row in rows_of(found, model.results)]
    return section("sparsity", "How many directions are adversarial?", LEAD, table(["model", *HEADS], rows))
