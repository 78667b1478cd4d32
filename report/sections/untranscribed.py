"""Clips without references: how much each recogniser wrote, and how far that is from its words on the clean clip."""

from __future__ import annotations

from speech_robust_bench.report.html import Html, table
from speech_robust_bench.report.report_data import Report
from speech_robust_bench.report.sections.parts import name, number, score, section


def untranscribed(report: Report) -> Html | None:
    """One row a model and config; None where every clip has a reference."""
    rows = [
        [
            name(model),
            config,
            number(entry["clips"], 0),
            number(entry["words_per_minute"]),
            number(entry["clips"] - entry["clips_with_words"], 0),
            score(entry["difference"]),
        ]
        for model in report.models
        for config, entry in model.results.get("untranscribed", {}).items()
    ]
    if not rows:
        return None
    lead = (
        "Clips that nobody has transcribed have no error rate. The difference is that of the transcript under the "
        "scenario from the one of the clean clip: words that differ, per cent of the longer of the two."
    )
    heads = ["model", "config", "clips", "words a minute", "clips without words", "difference"]
    return section("untranscribed", "Without transcripts", lead, table(heads, rows))
