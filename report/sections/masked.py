"""Masked words: how often each recogniser writes words that cannot be heard."""

from __future__ import annotations

from speech_robust_bench.report.html import Html, table
from speech_robust_bench.report.report_data import Report
from speech_robust_bench.report.sections.parts import name, number, score, section


def masked(report: Report, language: str) -> Html | None:
    """One row a model and config; None where no model was run on masked words."""
    rows = [
        [
            name(model),
            config,
            number(entry.masked.words, 0),
            score(entry.masked.rate),
            score(entry.werd),
        ]
        for model in report.ranked(language)
        for config, entry in model.results.configs.items()
        if entry.language == language and entry.masked
    ]
    if not rows:
        return None
    lead = (
        "Words were replaced by silence or noise, so a model that writes them guesses or remembers them. A share "
        "that is higher on famous sentences than on fresh ones speaks for memory; `srb table --masked` has a "
        "language model's guess beside it."
    )
    return section("masked", "Masked words", lead, table(["model", "config", "words", "written %", "WERD"], rows))
