"""The effect of a list of terms as a section of the report, of runs that `srb biasing` has compared."""

from __future__ import annotations

from speech_robust_bench.core.names import parse
from speech_robust_bench.core.records import read
from speech_robust_bench.extensions.biasing.api import FILE
from speech_robust_bench.extensions.biasing.effect import FIGURES, BiasingResult
from speech_robust_bench.report.html import Html, table, tag
from speech_robust_bench.report.report_data import Report
from speech_robust_bench.report.sections.parts import name, number, score, section
from speech_robust_bench.scoring.measures import Measure

LEAD = (
    "The same clips with and without a list of terms. Recall is the share of said terms that were written; a false "
    "alarm is a clip in which a term was written but none was said. Changes are in points, with 95 % intervals."
)
HEADS = (
    "recall, %",
    "change",
    "false alarms, %",
    "change",
    "WER of the other clips, %",
    "change",
    "clips with a term, other clips",
)


def biasing_section(report: Report, language: str) -> Html | None:
    """A row for each config of the runs with terms."""
    rows, reasons = [], []
    for model in report.ranked(language):
        if model.folder is None or not (model.folder / FILE).is_file():
            continue
        result = read(model.folder / FILE, BiasingResult)
        if result.no_verdict:
            reasons.append(tag("p", name(model), f": no verdict, {result.no_verdict}"))
        for config, effect in result.configs.items():
            if parse(config).language != language:
                continue
            changes = [getattr(effect, figure) for figure in FIGURES]
            cells = [
                cell
                for change in changes
                for cell in (number(change and change.with_terms), score(change and change.change))
            ]
            clips = f"{effect.biased_clips}, {effect.anti_clips}"
            rows.append([name(model), config, *cells, clips, effect.verdict])
    if not rows:
        return None
    return section("biasing", "Lists of terms", LEAD, table(["model", "config", *HEADS, "verdict"], rows), *reasons)


BIASING = Measure("biasing", section=f"{__name__}:biasing_section")
