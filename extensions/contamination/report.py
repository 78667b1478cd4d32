"""The section of the report about training data, for the models that `srb contamination` has tested."""

from __future__ import annotations

from speech_robust_bench.extensions.contamination.result import HEADS, conclusion, lines, of_folder
from speech_robust_bench.report.html import Html, table
from speech_robust_bench.report.report_data import Report
from speech_robust_bench.report.sections.parts import name, section

LEAD = (
    "How well a model's behaviour distinguishes suspected training data from fresh speech; an AUC of 0.5 means not at "
    "all. Hits are the share of suspects that are caught when at most 1 % of the fresh clips are accused."
)


def report_section(report: Report, language: str) -> Html | None:
    """The section, where some model was tested."""
    tested = [(model, found) for model in report.ranked(language) if (found := of_folder(model.folder))]
    if not tested:
        return None
    rows = [[name(model), *line] for model, found in tested for line in lines(found)]
    conclusions = [[name(model), conclusion(found)] for model, found in tested]
    tables = (table(["model", *HEADS], rows), table(["model", "conclusion"], conclusions))
    return section("contamination", "Was it trained on this speech?", LEAD, *tables)
