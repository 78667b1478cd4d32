"""Two talkers at once: how many of the words of both, and of one of them, each recogniser has."""

from __future__ import annotations

from speech_robust_bench.report.html import Html, table
from speech_robust_bench.report.report_data import Report
from speech_robust_bench.report.sections.parts import name, number, score, section


def overlap(report: Report, language: str) -> Html | None:
    """One row a model and config; None where no model was run on two talkers."""
    rows = [
        [
            name(model),
            config,
            score(entry.wer),
            score(entry.overlap.best_wer),
            number(100 * entry.overlap.two_texts / entry.overlap.clips, 0),
        ]
        for model in report.ranked(language)
        for config, entry in model.results.configs.items()
        if entry.language == language and entry.overlap
    ]
    if not rows:
        return None
    lead = (
        "Two people talk at once, and the words of both count: each talker is compared with one of the texts that a "
        "recogniser wrote, whichever way has fewer errors. One that writes a single text deletes one talker; how well "
        "it has the other is the WER of the better talker. A separator as a front end gives two texts."
    )
    heads = ["model", "config", "WER of both", "WER of the better talker", "two texts %"]
    return section("overlap", "Two talkers at once", lead, table(heads, rows))
