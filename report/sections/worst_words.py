"""The words that hard conditions cost most, and those that were never said."""

from __future__ import annotations

from speech_robust_bench.report.html import Html, table, tag
from speech_robust_bench.report.report_data import Report
from speech_robust_bench.report.sections.parts import name, number, section


def worst_words(report: Report, language: str) -> Html | None:
    """The words that hard conditions cost most, and those that were never said."""
    figures = []
    for model in report.ranked(language):
        study = model.studies.get(language)
        if not study or not study.words:
            continue
        rows = [
            [
                word.word,
                (f"{word.missed} of {word.said}", word.missed / word.said),
                number(100 * word.clean_missed / word.clean_said if word.clean_said else None, 0, " %"),
                ", ".join(text for text, _ in word.recognised_as.most_common(3)) or "nothing",
            ]
            for word in study.words
        ]
        inserted = ", ".join(f"{text} ({count})" for text, count in study.inserted) or "none"
        figures.append(
            tag(
                "figure",
                tag("figcaption", name(model)),
                table(["word", "missed", "missed, clean", "recognised as"], rows),
                tag("p", "Written but never said: ", inserted, class_="lead"),
            )
        )
    if not figures:
        return None
    lead = "Words that were missed most often beyond what clean speech explains."
    return section("words", "Worst words", lead, tag("div", figures, class_="columns"))
